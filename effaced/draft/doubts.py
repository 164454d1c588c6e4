"""Why somebody has to look at rows that go, or at a pointer that is a guess."""

from __future__ import annotations

from effaced.datamap.schema.tables import LiveColumn, LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.names import is_one_of
from effaced.draft.find_fates import amounts
from effaced.draft.find_people import key_of
from effaced.draft.of_two import is_of_two, takes_others
from effaced.draft.private import telling
from effaced.draft.roles import role
from effaced.draft.sketch import Edge, Sketch

_PATIENTS = ("patient", "patienten", "paciente")


def link_doubt(sketch: Sketch, edge: Edge, *, first: bool) -> str:
    """Why somebody has to look at a table whose rows go; what concerns the table, at its first link."""
    table = sketch.schema.tables[edge.table]
    guess = guessed_link(sketch, table, table.columns[edge.columns[0]])
    doubts = [guess] if guess else []
    if takes_others(sketch, edge):
        doubts.append(
            f"{edge.to} may be several people's, and what the others have put into {edge.table} goes as"
            " well; if theirs is to stay, take this link away"
        )
    if first and _is_line(sketch, table):
        doubts.append(
            f"rows of {edge.to} stay, and these may be lines of theirs that a law wants kept as well; delete"
            " them, or retain with a basis"
        )
    ends = (sketch.person(each.to) for each in sketch.links.get(edge.table, ()))
    person = next((each for each in ends if each), None)
    if first and person:
        silent = not telling(table)
        if role(edge) in ("making", "acting"):
            doubts.append("who made a row may not be the one it is about; if not, say so under mentions")
        if is_one_of(edge.table, words.LOGS) and "password or secret" not in telling(table).values():
            doubts.append("rows of a log may be needed as evidence; delete them, or retain with a basis")
        elif is_one_of(edge.table, words.CASES) and is_of_two(sketch, edge.table):
            doubts.append(
                "the other one may need these rows as evidence; delete them, or retain with a basis"
            )
        elif person.kind in _PATIENTS and silent:
            doubts.append(f"rows about a {person.kind} may be part of a medical record to be kept by law")
    return "; ".join(doubts)


def _is_line(sketch: Sketch, table: LiveTable) -> bool:
    """Amounts, or numbered rows that say nothing of anybody, and belong to nothing but what stays."""
    links = sketch.links.get(table.name, ())
    if not all(edge.to in sketch.stays and not sketch.is_self(edge.to) for edge in links):
        return False
    key = set(key_of(table))
    rests = [key - set(edge.columns) for edge in links if set(edge.columns) < key]
    numbered = any(len(rest) == 1 and table.columns[min(rest)].family == "number" for rest in rests)
    return bool(amounts(table)) or (numbered and not telling(table))


def guessed_link(sketch: Sketch, table: LiveTable, column: LiveColumn) -> str:
    for edge in sketch.links.get(table.name, ()):
        if edge.doubt and column.name in edge.columns:
            return f"that these rows are those of {edge.to} is a guess ({edge.reason}): {edge.doubt}"
        if edge.caveat and column.name in edge.columns:
            return edge.caveat
    return ""


def mention_doubt(sketch: Sketch, table: LiveTable, column: LiveColumn) -> str:
    for edge in sketch.mentions.get(table.name, ()):
        goes = any(name not in sketch.stays for name in (edge.to, *edge.also))
        if edge.doubt and column.name in edge.columns and goes:
            return f"it may point at {edge.to} ({edge.reason}: {edge.doubt}); if so, say it under mentions"
    return ""
