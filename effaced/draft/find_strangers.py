"""Whether the pointers of a row name the same person: where not, somebody would reach others' rows."""

from __future__ import annotations

from dataclasses import replace

from effaced.draft.samples import Samples
from effaced.draft.sketch import Edge, Sketch

_SOME, _MOST = 3, 0.5


def find_strangers(sketch: Sketch, samples: Samples) -> None:
    """Doubt links over another table, where the row itself names somebody else than that table does.

    A comment under somebody's task is its author's: the one whose task it is must not take it along.
    """
    for table, edges in sketch.links.items():
        own = [edge for edge in edges if sketch.person(edge.to) and _is_plain(edge)]
        for place, edge in enumerate(edges):
            if edge.doubt or sketch.person(edge.to) or len(edge.on) != 1:
                continue
            above = [each for each in sketch.links.get(edge.to, ()) if _is_plain(each)]
            for mine, theirs in (
                (a, b) for a in own for b in above if (a.to, a.on[0][1]) == (b.to, b.on[0][1])
            ):
                if _differ(samples, edge, mine, theirs):
                    column = theirs.columns[0]
                    doubt = (
                        f"{mine.columns[0]} mostly names somebody else than {edge.to}.{column} does, and who"
                        " is named there would take these rows along; if they should not, take that link away"
                    )
                    sketch.links[table][place] = replace(edge, caveat=doubt)


def name_the_same(samples: Samples, edge: Edge, address: Edge) -> bool:
    """Whether a pointer mostly names the very person whose e-mail address the row has: accepted_by, email."""
    if edge.to != address.to or len(edge.on) != 1:
        return False
    [(column, key)], [(mine, theirs)] = edge.on, address.on
    known = {str(row.get(key)): str(row.get(theirs)).casefold() for row in samples.rows(edge.to)}
    pairs = [
        (known[str(row[column])], str(row.get(mine)).casefold())
        for row in samples.rows(edge.table)
        if row.get(column) is not None and str(row[column]) in known
    ]
    same = [pair for pair in pairs if pair[0] == pair[1]]
    return len(pairs) >= _SOME and len(same) > _MOST * len(pairs)


def _is_plain(edge: Edge) -> bool:
    return len(edge.on) == 1 and not edge.where and not edge.as_text and not edge.doubt


def _differ(samples: Samples, edge: Edge, mine: Edge, theirs: Edge) -> bool:
    [(column, key)] = edge.on
    whose = {str(row.get(key)): row.get(theirs.columns[0]) for row in samples.rows(edge.to)}
    pairs = [
        (row[mine.columns[0]], whose[str(row[column])])
        for row in samples.rows(edge.table)
        if row.get(mine.columns[0]) is not None
        and whose.get(str(row.get(column))) is not None
        and all(row.get(name) == value for name, value in (edge.where or {}).items())
    ]
    others = [pair for pair in pairs if pair[0] != pair[1]]
    return len(pairs) >= _SOME and len(others) > _MOST * len(pairs)
