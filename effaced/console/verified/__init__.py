"""The page of verified erasures."""
