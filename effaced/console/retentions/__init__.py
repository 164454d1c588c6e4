"""The page of what is kept by law."""
