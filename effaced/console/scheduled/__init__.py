"""The page of steps that wait for a date."""
