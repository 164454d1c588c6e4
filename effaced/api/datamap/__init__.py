"""The data map over HTTP."""
