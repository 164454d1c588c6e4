"""Retry policies over HTTP, and figures of attempts."""
