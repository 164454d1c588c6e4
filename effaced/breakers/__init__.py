"""Circuit breakers: one per resolver and one per host, shared by all processes."""
