"""The page of failed steps, with its filters."""
