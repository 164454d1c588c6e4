"""The page of one dead letter."""
