"""Exports as jobs: asked for by an API key, made by whoever works the queue, fetched for a day."""
