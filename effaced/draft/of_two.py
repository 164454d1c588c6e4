"""Rows that two people have together: a match, a chat, a complaint of one about the other."""

from __future__ import annotations

from effaced.draft.find_owners import ancestors
from effaced.draft.sketch import Edge, Sketch


def is_of_two(sketch: Sketch, table: str) -> bool:
    """Whether each row leads to two people of one kind at once."""
    direct = [edge.to for edge in _to_people(sketch, table) if not edge.where]
    return len(direct) > len(set(direct))


def takes_others(sketch: Sketch, edge: Edge) -> bool:
    """Whether rows with an author of their own also go with what two people have together: a chat."""
    own = [each for each in _to_people(sketch, edge.table) if not each.where]
    shared = is_of_two(sketch, edge.to) or not _to_people(sketch, edge.to)
    above = ancestors(sketch, edge.to) if shared else ()
    return bool(own) and edge not in own and any(is_of_two(sketch, name) for name in above)


def _to_people(sketch: Sketch, table: str) -> list[Edge]:
    return [edge for edge in sketch.links.get(table, ()) if sketch.person(edge.to)]
