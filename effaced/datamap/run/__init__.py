"""Carrying out a plan for one person: erase, correct, count, sample."""
