"""What erasures had to keep, over HTTP."""
