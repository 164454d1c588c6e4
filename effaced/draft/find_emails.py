"""Rows that know people by their e-mail addresses alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from effaced.datamap.schema.tables import LiveColumn, LiveSchema, LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.names import concept_in, is_one_of, split_name
from effaced.draft.find_pointers import SURE, UNLIKELY, comparable
from effaced.draft.samples import Samples, shape
from effaced.draft.sketch import Edge, Person

_OTHERS = {
    *words.OWNING_ROLES, *words.RECEIVING_ROLES, *words.MENTIONING_ROLES, "guest", "friend", "visitor",
    "spouse",
}  # fmt: skip


def find_by_email(
    schema: LiveSchema,
    samples: Samples,
    people: list[Person],
    reached: dict[str, list[Edge]],
    pointers: Iterable[Edge],
) -> Iterator[Edge]:
    """Rows that know the person by the e-mail address alone: newsletters, orders of guests, sent mail."""
    pointed_at = {edge.to for edge in pointers}
    targets = list(_with_own_email(schema, samples, people, reached))
    unlinkable = list(_with_repeated_email(schema, samples, people))
    for table in schema.tables.values():
        own = reached.get(table.name, [])
        needed = all(
            not schema.tables[table.name].columns[name].nullable for edge in own for name in edge.columns
        )
        # Where the owner is known anyway, an address matters only if it is somebody else's.
        owned = bool(own) and needed
        if table.name in {each.table for each in people}:
            continue
        for mine in table.columns.values():
            if holds_email(samples, table, mine) and (not owned or _of_another(mine)):
                edges = [
                    _email_edge(
                        samples, table, mine, target, other, alone=not own and table.name in pointed_at
                    )
                    for target, other in targets
                    if target is not table
                    and (comparable(mine, other) or (not own and differ_in_case(mine, other)))
                ]
                best = next((edge for edge in edges if edge and not (owned and edge.doubt)), None)
                if best and not any(_more(samples, table, mine, best, each) for each in unlinkable):
                    yield replace(best, only_names=owned)


def _of_another(column: LiveColumn) -> bool:
    """holder_email, to_email: whoever has the row, this may be another."""
    return any(word in _OTHERS for word in split_name(column.name)[:-1])


def _with_own_email(
    schema: LiveSchema, samples: Samples, people: list[Person], reached: dict[str, list[Edge]]
) -> Iterator[tuple[LiveTable, LiveColumn]]:
    """Where an address leads to one person: people's own rows first, then lists of their addresses."""
    first = [each.table for each in people]
    for name in [*first, *(name for name, edges in reached.items() if any(e.to in first for e in edges))]:
        table = schema.tables[name]
        for column in table.columns.values():
            if table.determines([column.name]) and holds_email(samples, table, column):
                yield table, column


def _with_repeated_email(
    schema: LiveSchema, samples: Samples, people: list[Person]
) -> Iterator[tuple[LiveTable, LiveColumn]]:
    for person in people:
        table = schema.tables[person.table]
        for column in table.columns.values():
            if not table.determines([column.name]) and holds_email(samples, table, column):
                yield table, column


def _more(
    samples: Samples, table: LiveTable, mine: LiveColumn, best: Edge, other: tuple[LiveTable, LiveColumn]
) -> bool:
    """Whether more of the addresses are in a column that no link can go by: the link would hide those."""
    seen = samples.share(table.name, best.to, best.on)
    there = samples.share(table.name, other[0].name, ((mine.name, other[1].name),))
    return bool(seen and there and there.found > seen.found and other[0].name != best.to)


def _email_edge(
    samples: Samples,
    table: LiveTable,
    mine: LiveColumn,
    target: LiveTable,
    other: LiveColumn,
    *,
    alone: bool,
) -> Edge | None:
    """`alone`: nothing else says that the rows are people's, and others hang on them. That a supplier's
    contact happens to be a customer as well must not make the supplier's rows theirs."""
    on = ((mine.name, other.name),)
    share = samples.share(table.name, target.name, on)
    if alone and (share is None or share.part < SURE):
        return None
    if share is None and not is_one_of(table.name, [*words.ORGANISATIONS, *words.PEOPLE, *words.STAFF]):
        doubt = "there is no row to see whether these are the same addresses"
        return Edge(
            table.name, target.name, on, f"an e-mail address, as in {target.name}", doubt=doubt, by_email=True
        )
    if share is None or not share.found:
        return None
    caveat = ""
    if as_text := differ_in_case(mine, other):
        caveat = (
            f"it is compared as text, so an address with other capital letters than in {target.name} is"
            " passed over; see that there is none, or give both columns the same type"
        )
    reason = f"the same e-mail address as in {target.name}, {share}"
    return Edge(table.name, target.name, on, reason, as_text=as_text, caveat=caveat, by_email=True)


def differ_in_case(one: LiveColumn, other: LiveColumn) -> bool:
    """Whether one is of citext and the other a plain text: only `as: text` compares them."""
    return one.family == other.family == "text" and (one.collation == "citext") is not (
        other.collation == "citext"
    )


def _is_email(table: LiveTable, column: LiveColumn) -> bool:
    concept = concept_in(table, column)
    return concept is not None and concept.word == "email"


def holds_email(samples: Samples, table: LiveTable, column: LiveColumn) -> bool:
    """By its name, or by its values: recipient, identifier, to_address."""
    if column.family != "text":
        return False
    return _is_email(table, column) or shape(samples.values(table.name, column.name)) == "email"


def same_addresses(samples: Samples, table: LiveTable, other: LiveTable) -> Iterator[tuple[str, str]]:
    """The columns of both that hold the same e-mail addresses, most of them."""
    theirs = [each.name for each in other.columns.values() if holds_email(samples, other, each)]
    for mine in (each.name for each in table.columns.values() if holds_email(samples, table, each)):
        shares = {name: samples.share(table.name, other.name, ((mine, name),)) for name in theirs}
        found = next((name for name, share in shares.items() if share and share.part > UNLIKELY), None)
        if found:
            yield mine, found
