"""Executing a plan for one person: erase, correct, count, sample."""
