"""Circuit breakers over HTTP."""
