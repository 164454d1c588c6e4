"""Which columns point at which tables: by foreign keys, and by names where there are none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from effaced.datamap.schema.tables import LiveColumn, LiveSchema, LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.abbreviations import SHORT
from effaced.datamap.vocabulary.names import (
    concept_in,
    pointer,
    singular,
    split_and_expand,
    split_name,
    system_of,
    table_words,
)
from effaced.draft.find_people import key_of
from effaced.draft.repeats import repeated
from effaced.draft.samples import Samples, Share
from effaced.draft.sketch import Edge

# From this share on, values that fit are no accident; below the lower one they are.
SURE, UNLIKELY = 0.95, 0.5
_IDS = ("id", "fk", "uuid", "uid", "guid")
# Unique in many tables without being the same thing; and e-mail addresses are a matter of their own.
_ELSEWHERE = {
    "email", "secret", "name", "state", "moment", "street", "photo", "web", "free_text", "device", "ip",
}  # fmt: skip


def find_pointers(schema: LiveSchema, samples: Samples) -> list[Edge]:
    """Every foreign key, and every column whose name says the same without one."""
    edges = [
        Edge(key.table, key.to, key.on, "foreign key", foreign_key=True)
        for key in dict.fromkeys(schema.foreign_keys)
        if key.table in schema.tables and key.to in schema.tables
    ]
    bound = {(edge.table, name) for edge in edges for name in edge.columns}
    whole = {(edge.table, edge.to, frozenset(edge.columns)) for edge in edges}
    keys = _key_names(schema)
    for table in schema.tables.values():
        composite = list(_by_composite_key(schema, samples, table, whole))
        edges += composite
        taken = {name for edge in composite for name in edge.columns}
        for column in table.columns.values():
            if (table.name, column.name) not in bound and column.name not in taken:
                edge = (
                    _by_key(samples, table, column, keys)
                    or _by_name(schema, samples, table, column)
                    or _by_end_of_name(samples, table, column, keys)
                )
                edges += [edge] if edge else []
    return edges


def _by_key(
    samples: Samples, table: LiveTable, column: LiveColumn, keys: Mapping[str, list[tuple[LiveTable, str]]]
) -> Edge | None:
    """The very name of another table's key, or of what else tells its rows apart, and of no second one's."""
    own_key = table.determines([column.name])
    called_so = [pair for pair in keys.get(column.name.lower(), []) if pair[0] is not table]
    said = pointer(column.name)
    if said and (own_key or len(called_so) > 1):
        # Rows with the same key extend each other; the one called after the key was there first.
        named = [pair for pair in called_so if _alike(said.stem, table_words(pair[0].name))]
        rivals = [*called_so, (table, column.name)] if own_key else called_so
        own_key = _alike(said.stem, table_words(table.name))
        called_so = named or repeated(samples, rivals, SURE)
    if own_key or len(called_so) != 1 or called_so[0][0] is table:
        return None
    [(target, name)] = called_so
    concept = concept_in(target, target.columns[name])
    if concept and concept.word == "number" and len(split_name(name)) == 1:
        share = samples.share(table.name, target.name, ((column.name, name),))
        if share is None or share.of < 3:
            return None
    reason = f"has the name of {target.name}'s key"
    if key_of(target) == (name,):
        return judged(samples, table, column, target, target.columns[name], reason)
    # Not the key, but a number that somebody is known by: one that is found there says enough.
    reason = f"has the name of {target.name}.{name}, which is unique"
    if not comparable(column, target.columns[name]):
        return None
    share = samples.share(table.name, target.name, ((column.name, name),))
    if share is None:
        return Edge(table.name, target.name, ((column.name, name),), reason, doubt="no value to see it by")
    return judged(samples, table, column, target, target.columns[name], reason)


def _by_name(schema: LiveSchema, samples: Samples, table: LiveTable, column: LiveColumn) -> Edge | None:
    said = None if system_of(column.name) else pointer(column.name)
    bare = column.family in ("number", "uuid") and concept_in(table, column) is None
    if said is None and bare:
        return _by_bare_name(schema, samples, table, column)
    if said is None or not said.stem or said.ending in ("by", "to"):
        return None
    if not said.ending and column.family not in ("number", "uuid"):
        return None
    own_key = key_of(table) == (column.name,)
    targets = [
        (target, named)
        for target in schema.tables.values()
        if (named := table_words(target.name))
        and not (target.name == table.name and (own_key or len(said.stem) <= len(named)))
    ]
    exact = [target for target, named in targets if _alike(said.stem[-len(named) :], named)]
    # order_id leads to shop_orders too, if there is only one table whose name ends so.
    ending = [target for target, named in targets if _alike(said.stem, named[-len(said.stem) :])]
    bent = [target for target, named in targets if _bent(said.stem[-1], named[-1]) and len(named) == 1]
    near = ending if len(ending) == 1 else bent if len(bent) == 1 and not ending else []
    for target in exact or near:
        other = _target_column(target, column, said.ending)
        if other is None or (own_key and key_of(target) != (other.name,)):
            continue
        # An order's number need not be its id.
        same_ending = said.ending in (*_IDS, "") or said.ending in split_name(other.name)
        reason = f"named like {target.name}.{other.name}"
        edge = judged(
            samples, table, column, target, other, reason, guessed=not same_ending or target not in exact
        )
        if edge is not None:
            return edge
    return None


def _by_end_of_name(
    samples: Samples, table: LiveTable, column: LiveColumn, keys: Mapping[str, list[tuple[LiveTable, str]]]
) -> Edge | None:
    """A key's own name with something before or a number after it: host_cont_id, cont_id_2."""
    called = split_name(column.name)
    numbered = len(called) > 1 and called[-1].isdigit()
    called = called[:-1] if numbered else called
    for found in keys.values():
        target, name = found[0]
        own = split_name(name)
        if len(found) > 1 or len(own) < 2 or called[-len(own) :] != own or (name,) != key_of(target):
            continue
        if column.name == name or table.determines([column.name]):
            continue
        edge = judged(samples, table, column, target, target.columns[name], f"ends like {target.name}.{name}")
        if edge and (called == own or edge.doubt or target is table):
            return edge
        # What the word before it makes of the row, nobody can tell.
        doubt = "whether the row is theirs or only names them is for you to say"
        return replace(edge, doubt=doubt) if edge else None
    return None


def _by_bare_name(schema: LiveSchema, samples: Samples, table: LiveTable, column: LiveColumn) -> Edge | None:
    """A number called like a table: `contact`, `booking`."""
    called = _full(column.name)
    for target in schema.tables.values():
        key = key_of(target)
        if target.name != table.name and len(key) == 1 and _alike(called, table_words(target.name)):
            reason = f"called like {target.name}"
            return judged(samples, table, column, target, target.columns[key[0]], reason, guessed=True)
    return None


def _key_names(schema: LiveSchema) -> dict[str, list[tuple[LiveTable, str]]]:
    """Which tables tell rows apart by a column of which name; keys of several columns are another matter."""
    found: dict[str, list[tuple[LiveTable, str]]] = {}
    bound = {(key.table, name) for key in schema.foreign_keys for name in key.columns}
    called = {table_words(name) for name in schema.tables}
    for table in schema.tables.values():
        for unique in table.uniques:
            name = next(iter(unique.columns))
            said = pointer(name)
            # What itself points elsewhere is no place to point at.
            away = (table.name, name) in bound or (
                said is not None and said.stem in called and said.stem != table_words(table.name)
            )
            if (
                unique.whole
                and len(unique.columns) == 1
                and not away
                and _says_whose(table, table.columns[name])
            ):
                found.setdefault(name.lower(), []).append((table, name))
    return found


def _says_whose(table: LiveTable, column: LiveColumn) -> bool:
    """Any table may have an `id`, a `code` or a `title`, but not a customer_no or a passport number."""
    concept = concept_in(table, column)
    said = pointer(column.name)
    if said and said.ending and said.stem == table_words(table.name) and key_of(table) == (column.name,):
        # staff_cd of staff is no mere code.
        return True
    if column.family not in ("text", "number", "uuid") or (concept and concept.word in _ELSEWHERE):
        return False
    if len(split_name(column.name)) > 1 or column.name.lower() == "uid" or (concept and concept.personal):
        return True
    # A card number that is called just `card`; texts like barcodes must be found there to count.
    long = column.name.lower() not in words.POINTER_ENDINGS and len(column.name) > 3
    return long and key_of(table) == (column.name,) and (concept is None or column.family == "text")


def _by_composite_key(
    schema: LiveSchema,
    samples: Samples,
    table: LiveTable,
    whole: set[tuple[str, str, frozenset[str]]],
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
        known = (table.name, target.name, frozenset(key)) in whole
        if not names_it or not fit or known or key_of(table) == key:
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
    if as_text and share is None:
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
            if split_name(each.name)[-1:] == (ending,):
                return each
    return target.columns[key[0]] if len(key) == 1 else None


def _full(name: str) -> tuple[str, ...]:
    return tuple(singular(word) for word in split_and_expand(name))


def _alike(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return len(some) == len(others) and all(_same_word(a, b) for a, b in zip(some, others, strict=True))


@cache
def _same_word(one: str, other: str) -> bool:
    """Equal, shortened, or a German plural of each other."""
    one, other = SHORT.get(one, one), SHORT.get(other, other)
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) >= 4 and long.removeprefix(short) in ("n", "en", "e", "er"))


@cache
def _bent(one: str, other: str) -> bool:
    """Other forms of one word, as far as two letters at the end can tell: pacjenta, pacjenci."""
    stem = max(len(one), len(other)) - 2
    return stem >= 5 and one[:stem] == other[:stem]
