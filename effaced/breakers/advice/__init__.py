"""Advice on breaker policies and rate limits, and changes of both at run time."""
