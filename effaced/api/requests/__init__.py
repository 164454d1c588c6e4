"""Subject requests over HTTP."""
