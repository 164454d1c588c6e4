"""Which columns point at which tables: by foreign keys, and by names where there are none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from effaced.datamap.draft import words
from effaced.datamap.draft.find_people import key_of
from effaced.datamap.draft.names import pieces, pointer, singular, system_of, table_words
from effaced.datamap.draft.samples import Samples, Share
from effaced.datamap.draft.sketch import Edge
from effaced.datamap.schema import LiveColumn, LiveSchema, LiveTable

# From this share on, values that fit are no accident; below the lower one they are.
SURE, UNLIKELY = 0.95, 0.5
_IDS = ("id", "fk", "uuid", "uid", "guid")


def find_pointers(schema: LiveSchema, samples: Samples) -> list[Edge]:
    """Every foreign key, and every column whose name says the same without one."""
    edges = [
        Edge(key.table, key.to, key.on, "foreign key", foreign_key=True)
        for key in dict.fromkeys(schema.foreign_keys)
        if key.table in schema.tables and key.to in schema.tables
    ]
    bound = {(edge.table, name) for edge in edges for name in edge.columns}
    keys = _key_names(schema)
    for table in schema.tables.values():
        composite = list(_by_composite_key(schema, samples, table, bound))
        edges += composite
        taken = {name for edge in composite for name in edge.columns}
        for column in table.columns.values():
            if (table.name, column.name) not in bound and column.name not in taken:
                edges += _by_name(schema, samples, table, column, keys)
    return edges


def _by_name(
    schema: LiveSchema,
    samples: Samples,
    table: LiveTable,
    column: LiveColumn,
    keys: Mapping[str, list[LiveTable]],
) -> Iterator[Edge]:
    said = None if system_of(column.name) else pointer(column.name)
    if said is None or not said.stem or not said.ending or said.ending in ("by", "to"):
        return
    own_key = key_of(table) == (column.name,)
    called_so = keys.get(column.name.lower(), [])
    if not own_key and len(called_so) == 1:
        # The very name of another table's key, and of no second one's.
        [target] = called_so
        key = target.columns[key_of(target)[0]]
        edge = judged(samples, table, column, target, key, f"has the name of {target.name}'s key")
        if edge is not None:
            yield edge
            return
    for target in schema.tables.values():
        named = table_words(target.name)
        if target.name == table.name and (own_key or len(said.stem) <= len(named)):
            continue
        if not named or not _alike(said.stem[-len(named) :], named):
            continue
        other = _target_column(target, column, said.ending)
        if other is None or (own_key and key_of(target) != (other.name,)):
            continue
        # An order's number need not be its id.
        loose = said.ending not in _IDS and pieces(other.name)[-1:] != (said.ending,)
        reason = f"named like {target.name}.{other.name}"
        edge = judged(samples, table, column, target, other, reason, guessed=loose)
        if edge is not None:
            yield edge
            return


def _key_names(schema: LiveSchema) -> dict[str, list[LiveTable]]:
    """Which tables call their key what; keys of several columns are another matter."""
    found: dict[str, list[LiveTable]] = {}
    for table in schema.tables.values():
        key = key_of(table)
        if len(key) == 1:
            found.setdefault(key[0].lower(), []).append(table)
    return found


def _by_composite_key(
    schema: LiveSchema, samples: Samples, table: LiveTable, bound: set[tuple[str, str]]
) -> Iterator[Edge]:
    """Old databases repeat the whole key of a row where they point at it."""
    for target in schema.tables.values():
        key = key_of(target)
        if len(key) < 2 or target.name == table.name or not set(key) <= table.columns.keys():
            continue
        names_it = any(
            (said := pointer(name)) and _alike(said.stem, table_words(target.name)) for name in key
        )
        fit = all(comparable(table.columns[name], target.columns[name]) for name in key)
        if (
            not names_it
            or not fit
            or any((table.name, name) in bound for name in key)
            or key_of(table) == key
        ):
            continue
        on = tuple((name, name) for name in key)
        share = samples.share(table.name, target.name, on)
        if share is None or share.part >= SURE:
            seen = f"; {share}" if share else ""
            yield Edge(table.name, target.name, on, f"holds the whole key of {target.name}{seen}")


def judged(
    samples: Samples,
    table: LiveTable,
    column: LiveColumn,
    target: LiveTable,
    other: LiveColumn,
    reason: str,
    *,
    guessed: bool = False,
) -> Edge | None:
    """The pointer, with what the sample says about it; None if the sample says that it is none."""
    as_text = not comparable(column, other)
    if as_text and not {column.family, other.family} <= {"text", "number", "uuid"}:
        return None
    on = ((column.name, other.name),)
    share = samples.share(table.name, target.name, on)
    if share is not None and share.part < UNLIKELY:
        return None
    doubt = _doubt(share, as_text, guessed)
    if share is not None:
        reason += f", {share}"
    return Edge(table.name, target.name, on, reason, as_text=as_text, doubt=doubt)


def _doubt(share: Share | None, as_text: bool, guessed: bool) -> str:
    if share is not None and share.part < SURE:
        return "not every sampled value is found there"
    if as_text:
        return "the two columns have different types"
    if guessed and (share is None or share.of < 3):
        return "too few values to be sure"
    return ""


def comparable(one: LiveColumn, other: LiveColumn) -> bool:
    return one.family == other.family and one.family is not None and one.collation == other.collation


def _target_column(target: LiveTable, column: LiveColumn, ending: str) -> LiveColumn | None:
    """The column of the other table that is meant: of the same name, of the same ending, or its key."""
    single = [
        target.columns[next(iter(unique.columns))]
        for unique in target.uniques
        if unique.whole and len(unique.columns) == 1
    ]
    key = key_of(target)
    full = _full(column.name)
    for each in single:
        if _full(each.name) == full or (each.name.lower() == column.name.lower()):
            return each
    if ending not in _IDS:
        for each in single:
            if pieces(each.name)[-1:] == (ending,):
                return each
    return target.columns[key[0]] if len(key) == 1 else None


def _full(name: str) -> tuple[str, ...]:
    return tuple(singular(words.SHORT.get(word, word)) for word in pieces(name))


def _alike(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return len(some) == len(others) and all(_same_word(a, b) for a, b in zip(some, others, strict=True))


@cache
def _same_word(one: str, other: str) -> bool:
    """Equal, shortened, or a German plural of each other."""
    one, other = words.SHORT.get(one, one), words.SHORT.get(other, other)
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) >= 4 and long.removeprefix(short) in ("n", "en", "e", "er"))
