"""API keys over HTTP, and who the caller is."""
