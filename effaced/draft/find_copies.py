"""Tables that keep what was in another: person_aud, customers_history, historicalbooking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from effaced.datamap.schema.tables import LiveSchema, LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.names import singular, split_name
from effaced.draft.find_people import key_of
from effaced.draft.find_pointers import SURE, comparable
from effaced.draft.samples import Samples
from effaced.draft.sketch import Edge


def find_copies(schema: LiveSchema, samples: Samples, known: Iterable[Edge]) -> Iterator[Edge]:
    """A copy has the key of what it was copied from, under the same name."""
    joined = {(edge.table, edge.to) for edge in known}
    originals = {_words(table.name): table for table in schema.tables.values()}
    for table in schema.tables.values():
        original = next((originals[name] for name in _original(table.name) if name in originals), None)
        key = key_of(original) if original else ()
        if original is None or not key or (table.name, original.name) in joined or key == key_of(table):
            continue
        if not set(key) <= table.columns.keys() or not _comparable(table, original, key):
            continue
        on = tuple((name, name) for name in key)
        share = samples.share(table.name, original.name, on)
        # What was deleted since is in the copy alone.
        if share is None or share.found:
            seen = f", {share}" if share else ""
            doubt = "" if share and share.part >= SURE else "only the names of the tables say so"
            yield Edge(table.name, original.name, on, f"a copy of {original.name}{seen}", doubt=doubt)


def _comparable(table: LiveTable, original: LiveTable, key: tuple[str, ...]) -> bool:
    return all(comparable(table.columns[name], original.columns[name]) for name in key)


def _words(name: str) -> str:
    return "".join(singular(word) for word in split_name(name.rpartition(".")[2]))


def _original(name: str) -> Iterator[str]:
    parts = [singular(word) for word in split_name(name.rpartition(".")[2])]
    if len(parts) > 1 and parts[-1] in words.COPIES:
        yield "".join(parts[:-1])
    if len(parts) > 1 and parts[0] in words.COPIES:
        yield "".join(parts[1:])
    if parts and parts[-1].startswith("historical"):
        yield "".join([*parts[:-1], parts[-1].removeprefix("historical")])
