"""Ids in paths."""

from __future__ import annotations

from uuid import UUID

from effaced.core.errors import NotFound


def read_path_id(text: str, missing: str) -> UUID:
    """The id that a path names. What is none belongs to nothing: it is refused with the words `missing`."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(missing) from None
