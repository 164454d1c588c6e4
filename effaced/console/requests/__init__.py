"""The list of requests, with its filters."""
