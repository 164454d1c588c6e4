"""What failed for good, over HTTP."""
