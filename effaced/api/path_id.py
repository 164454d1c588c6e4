"""Ids in paths."""

from __future__ import annotations

from uuid import UUID

from effaced.core.errors import NotFound


def read_path_id(text: str, what: str) -> UUID:
    """The id that a path names; what is none belongs to nothing."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f"There is no such {what}.") from None
