"""The page of one system."""
