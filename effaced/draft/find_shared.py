"""What several people have together: organisations, and what join tables tie people to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.names import is_one_of, split_name
from effaced.draft.find_people import key_of
from effaced.draft.roles import role
from effaced.draft.sketch import Edge, Sketch


@dataclass(frozen=True, slots=True)
class Shared:
    """`selves`: tables of people, and those with the same key, such as students who are persons.

    `tables`: whose rows are several people's. `joint`: which join table ties people to what. `led`: from
    which tables some way leads to people, at any distance.
    """

    selves: frozenset[str]
    tables: frozenset[str]
    joint: Mapping[str, str]
    led: frozenset[str]


def find_shared(sketch: Sketch, known: Mapping[str, list[Edge]]) -> Shared:
    selves = {person.table for person in sketch.people}
    selves |= {
        edge.table
        for edges in known.values()
        for edge in edges
        if edge.to in selves and set(key_of(sketch.schema.tables[edge.table])) == set(edge.columns)
    }
    joint = {name: to for name in known if (to := _joined(sketch, known[name], selves))}
    staff = {person.table for person in sketch.people if person.staff}
    attended = set(joint.values()) - {
        to for name, to in joint.items() if not staff & {edge.to for edge in known[name]}
    }
    written = _written(sketch, known, selves, attended)
    tables = {name for name in sketch.schema.tables if is_one_of(name, words.ORGANISATIONS)} - joint.keys()
    # What somebody has written is theirs, however many others like it.
    tables |= set(joint.values()) - written
    return Shared(frozenset(selves), frozenset(tables - selves), joint, frozenset(_led(known, selves)))


def _led(known: Mapping[str, list[Edge]], selves: set[str]) -> set[str]:
    """Tables whose rows belong to somebody, or to rows that do."""
    found = set(selves)
    while more := {
        name
        for name, edges in known.items()
        if name not in found and any(each.to in found and role(each) in ("", "owning") for each in edges)
    }:
        found |= more
    return found


def _joined(sketch: Sketch, edges: list[Edge], people: set[str]) -> str | None:
    """What the rows of a join table tie people to, each pair once."""
    plain = list({edge.columns: edge for edge in edges if not edge.where}.values())
    ends = [edge for edge in plain if edge.to in people]
    others = [edge for edge in plain if edge.to not in people and edge.to != edge.table]
    if len(ends) != 1 or len(others) != 1:
        return None
    pair = {*ends[0].columns, *others[0].columns}
    table = sketch.schema.tables[others[0].table]
    return others[0].to if any(unique.columns == pair for unique in table.uniques) else None


def _written(
    sketch: Sketch, known: Mapping[str, list[Edge]], selves: set[str], attended: set[str]
) -> set[str]:
    """Tables whose rows each have an author, and what is part of those: posts, polls in them, options.

    `attended`: what only staff are tied to. An interview is about the applicant, whoever takes part.
    """
    found: set[str] = set()
    while True:
        more = {
            edge.table
            for edges in known.values()
            for edge in edges
            if edge.table not in found
            and (not sketch.nullable(edge) or edge.table in attended)
            and not is_one_of(edge.table, words.ORGANISATIONS)
            and (edge.to in found or (edge.to in selves and _writes(edge)))
        }
        if not more:
            return found
        found |= more


def _writes(edge: Edge) -> bool:
    """An owner may have something for others as well; an author has written it."""
    return role(edge) in ("", "owning") and "owner" not in split_name(edge.columns[0])
