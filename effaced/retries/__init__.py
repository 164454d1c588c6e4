"""Attempts at external calls, and when to try again."""
