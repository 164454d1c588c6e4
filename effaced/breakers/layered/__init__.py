"""A process's memory in front of Redis, and what happens while Redis is away."""
