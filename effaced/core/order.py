"""Whether an order can be kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter


def find_circle(after: Mapping[str, Collection[str]]) -> list[str] | None:
    """A circle among names of which each comes after others, as `[a, b, a]`; None if there is none."""
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return None
