"""The data map as objects, and the words for it."""
