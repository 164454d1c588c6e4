"""The systems that the suite for resolver authors is run against."""

from card_conformance import served

__all__ = ["served"]
