"""Carrying outbox entries to an end that is always known."""
