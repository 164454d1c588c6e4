"""Which rows stay, and why: a law may want them, kept rows need them, or nothing can let go of them."""

from __future__ import annotations

from collections.abc import Iterator

from effaced.datamap.schema.tables import LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.names import concept_in, is_one_of, split_name, table_words
from effaced.draft.find_owners import ancestors
from effaced.draft.find_people import key_of
from effaced.draft.private import tells
from effaced.draft.sketch import Edge, Sketch

_LAWS = (
    (words.MEDICAL, "medical"),
    (words.FINANCIAL, "financial"),
    (words.EMPLOYMENT, "employment"),
)


def find_fates(sketch: Sketch) -> None:
    """Fill in records and stays."""
    _records(sketch)
    sketch.stays = {table: _why(sketch, table, law) for table, law in sketch.records.items()}
    while needed := {table: why for table, why in _needs(sketch) if table not in sketch.stays}:
        sketch.stays |= needed
    _leave_to_their_own(sketch)


def _leave_to_their_own(sketch: Sketch) -> None:
    """Who else is insured by a policy: such a row is theirs, not the holder's, while the policy stays."""
    for table, edges in sketch.links.items():
        key = set(key_of(sketch.schema.tables[table]))
        whole = [edge for edge in edges if set(edge.columns) < key]
        own = {edge.to for edge in whole if sketch.person(edge.to)}
        for edge in whole:
            owners = {name for name in ancestors(sketch, edge.to) if sketch.person(name)}
            if edge.to in sketch.stays and edge.to not in own and owners and owners <= own:
                edges.remove(edge)
                sketch.mentions.setdefault(table, []).append(edge)


def _why(sketch: Sketch, table: str, law: str) -> str:
    for edge in sketch.sources.get(table, ()):
        if edge.table in sketch.records:
            return f"{edge.table}.{edge.columns[0]} points at them and is part of a record"
    return f"they look like records that {law} law wants kept"


def _records(sketch: Sketch) -> None:
    for table in [*sketch.links, *sketch.sources]:
        law = next((law for known, law in _LAWS if is_one_of(table, known)), None)
        if law is None and _is_taxed(sketch.schema.tables[table]):
            law = "financial"
        letters = any(word in words.LETTERS for word in table_words(table))
        if law is not None and not letters and not is_one_of(table, words.LOGS):
            sketch.records[table] = law
    # What belongs to a record and says nothing of its own is part of it; one level after the other.
    while parts := dict(_parts(sketch)):
        sketch.records |= parts


def _parts(sketch: Sketch) -> Iterator[tuple[str, str]]:
    for table, edges in sketch.links.items():
        laws = [sketch.records[edge.to] for edge in edges if edge.to in sketch.records]
        if table not in sketch.records and laws:
            named = is_one_of(table, words.PARTS) and len(table_words(table)) > 1
            paid = laws[0] == "financial" and _is_dated_amount(sketch.schema.tables[table])
            if named or paid or (len(laws) == len(edges) and not tells(sketch.schema.tables[table])):
                yield table, laws[0]
    for table, edges in sketch.sources.items():
        pointing = [sketch.records[edge.table] for edge in edges if edge.table in sketch.records]
        if table not in sketch.records and pointing:
            yield table, pointing[0]


def amounts(table: LiveTable) -> list[str]:
    found = {column.name: concept_in(table, column) for column in table.columns.values()}
    return [name for name, concept in found.items() if concept and concept.word == "amount"]


def _is_taxed(table: LiveTable) -> bool:
    """Amounts with their tax are an invoice's, whatever it is called."""
    found = amounts(table)
    taxes = [name for name in found if set(split_name(name)) & set(words.TAXES)]
    return bool(taxes) and len(found) > len(taxes) and _is_dated_amount(table)


def _is_dated_amount(table: LiveTable) -> bool:
    dated = any(column.family in ("date", "date and time") for column in table.columns.values())
    return dated and bool(amounts(table))


def _needs(sketch: Sketch) -> Iterator[tuple[str, str]]:
    """The tables whose rows can't go while others stay as they are."""
    for table in sketch.stays:
        for edge in sketch.links.get(table, ()):
            yield edge.to, f"rows of {table} stay and belong to them"
    for target, edges in sketch.sources.items():
        for edge in edges:
            if edge.table in sketch.stays and not can_forget(sketch, edge):
                yield target, f"{edge.table}.{edge.columns[0]} points at them and stays"
    for edges in sketch.mentions.values():
        for edge in edges:
            if edge.by_email:
                # An address is changed where it stands.
                continue
            sure = edge.foreign_key or not edge.doubt or edge.table in sketch.records
            if sure and not can_forget(sketch, edge):
                why = "is part of a record" if edge.table in sketch.records else "can't be NULL"
                yield edge.to, f"{edge.table}.{edge.columns[0]} points at them and {why}"


def can_forget(sketch: Sketch, edge: Edge) -> bool:
    """Whether the pointer may become NULL when what it points at goes."""
    return sketch.nullable(edge) and edge.table not in sketch.records
