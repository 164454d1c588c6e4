"""Targets of messages, and what was delivered to them, over HTTP."""
