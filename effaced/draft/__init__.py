"""A first data map from a live schema: what can be guessed is guessed, and each guess says why."""
