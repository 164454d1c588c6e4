"""How two data maps differ, by what they do and not by how they are written.

A line that changes nothing for anybody (`delete` for `not_personal` in a row that is deleted anyway, another
order, a comment) is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from effaced.datamap.model.data_map import DataMap, Link, Mention, SubjectRule, TableRule
from effaced.datamap.model.wording import describe_columns, describe_link, describe_links, describe_rows
from effaced.datamap.show.effects import UNTOUCHED, Cell, Strength, cells_of, mentioned_cells


class Group(StrEnum):
    """What a difference is about, the gravest first."""

    NO_LONGER_ERASED = "no longer erased"
    NEWLY_ERASED = "newly erased"
    OTHERWISE = "erased in another way"
    KEPT = "kept for another reason or time"
    LINKS = "links changed"
    PEOPLE = "people, and how others know them"
    NAMES = "new or gone tables and columns"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: where, and what in words."""

    group: Group
    where: str
    what: str


def compare(old: DataMap, new: DataMap) -> list[Difference]:
    """Every difference, the gravest first; an empty list if both maps do the same."""
    found = {
        *_people(old, new),
        *(each for name in _sorted_names(old.tables, new.tables) for each in _table(old, new, name)),
        *_rectify(old, new),
    }
    order = list(Group)
    return sorted(found, key=lambda each: (order.index(each.group), each.where, each.what))


def _sorted_names(old: Iterable[str], new: Iterable[str]) -> list[str]:
    return sorted({*old, *new})


# --- tables ---


def _table(old: DataMap, new: DataMap, name: str) -> Iterator[Difference]:
    before, after = old.tables.get(name), new.tables.get(name)
    if before is None and after is not None:
        yield from _added_table(old, new, after)
    elif after is None and before is not None:
        yield from _removed_table(new, before)
    elif before is not None and after is not None:
        yield from _rows(before, after)
        yield from _links(name, before.links, after.links)
        yield from _mentions(before, after)


def _added_table(old: DataMap, new: DataMap, rule: TableRule) -> Iterator[Difference]:
    ways = "; ".join(describe_links(new, rule))
    description = f"rows {describe_rows(rule)}; {ways}"
    if rule.name not in old.not_personal:
        yield Difference(Group.NAMES, rule.name, f"new in the map: {description}")
        return
    erases = not rule.stays or rule.changed or rule.mentions
    group = Group.NEWLY_ERASED if erases else Group.KEPT
    yield Difference(group, rule.name, f"was without personal data, now {description}")


def _removed_table(new: DataMap, rule: TableRule) -> Iterator[Difference]:
    if rule.name not in new.not_personal:
        how = "to be decided" if rule.name in new.undecided else "gone from the map"
        yield Difference(Group.NAMES, rule.name, f"{how}; was: rows {describe_rows(rule)}")
        return
    erased = not rule.stays or rule.changed or rule.mentions
    group = Group.NO_LONGER_ERASED if erased else Group.KEPT
    yield Difference(group, rule.name, f"now without personal data; was: rows {describe_rows(rule)}")


def _rows(before: TableRule, after: TableRule) -> Iterator[Difference]:
    if before.owned != after.owned:
        group = Group.NEWLY_ERASED if after.owned else Group.NO_LONGER_ERASED
        yield Difference(group, after.name, f"rows were {describe_rows(before)}, now {describe_rows(after)}")
        return
    one, other = cells_of(before), cells_of(after)
    if before.stays and not after.stays:
        yield Difference(
            Group.NEWLY_ERASED, after.name, f"its rows were {describe_rows(before)}, now deleted"
        )
    elif after.stays and not before.stays:
        kept = [name for name, cell in other.items() if cell.strength is Strength.NONE]
        more = f"; what stays in them: {', '.join(kept)}" if kept else ""
        what = f"its rows were deleted, now {describe_rows(after)}{more}"
        yield Difference(Group.NO_LONGER_ERASED, after.name, what)
    if before.stays == after.stays:
        yield from _cells(after.name, one, other)
    for name in _sorted_names(before.columns, after.columns):
        if name not in after.columns:
            yield Difference(Group.NAMES, f"{after.name}.{name}", f"gone; was: {one[name].words}")
        elif name not in before.columns:
            yield Difference(Group.NAMES, f"{after.name}.{name}", f"new: {other[name].words}")


def _cells(place: str, before: Mapping[str, Cell], after: Mapping[str, Cell]) -> Iterator[Difference]:
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        if old.effect == new.effect:
            continue
        if old.paths and new.paths:
            every = dict.fromkeys([*old.paths, *new.paths], UNTOUCHED)
            yield from _cells(f"{place}.{name} ", {**every, **old.paths}, {**every, **new.paths})
            continue
        if new.strength != old.strength:
            weaker = new.strength < old.strength
            group = Group.NO_LONGER_ERASED if weaker else Group.NEWLY_ERASED
        else:
            group = Group.OTHERWISE if new.strength > Strength.NONE else Group.KEPT
        yield Difference(group, _place(place, name), f"was {old.words}, now {new.words}")


def _place(table: str, column: str) -> str:
    return f"{table}.{column}" if not table.endswith(" ") else f"{table}{column}"


def _links(name: str, before: Iterable[Link], after: Iterable[Link]) -> Iterator[Difference]:
    old, new = _by_meaning(before), _by_meaning(after)
    for meaning in old.keys() - new.keys():
        yield Difference(Group.LINKS, name, f"rows no longer belong {describe_link(old[meaning])}")
    for meaning in new.keys() - old.keys():
        yield Difference(Group.LINKS, name, f"rows now belong {describe_link(new[meaning])}")


def _mentions(before: TableRule, after: TableRule) -> Iterator[Difference]:
    old, new = _mentions_by_meaning(before), _mentions_by_meaning(after)
    for meaning in old.keys() | new.keys():
        gone, come = old.get(meaning), new.get(meaning)
        if gone and come:
            where = f"{after.name} (mentions {come.link.to})"
            one, other = mentioned_cells(gone), mentioned_cells(come)
            yield from _cells(where, one, other)
            for name in one.keys() - other.keys():
                yield Difference(Group.NO_LONGER_ERASED, f"{where}.{name}", f"was {one[name].words}")
            for name in other.keys() - one.keys():
                yield Difference(Group.NEWLY_ERASED, f"{where}.{name}", f"now {other[name].words}")
        elif gone:
            was = describe_columns(gone.columns)
            what = f"rows that mention people {describe_link(gone.link)} keep it; was: {was}"
            yield Difference(Group.NO_LONGER_ERASED, after.name, what)
        elif come:
            what = f"rows that mention people {describe_link(come.link)}: {describe_columns(come.columns)}"
            yield Difference(Group.NEWLY_ERASED, after.name, what)


def _by_meaning(links: Iterable[Link]) -> dict[Any, Link]:
    return {_meaning(link): link for link in links}


def _mentions_by_meaning(rule: TableRule) -> dict[Any, Mention]:
    return {_meaning(mention.link): mention for mention in rule.mentions}


def _meaning(link: Link) -> tuple[Any, ...]:
    # By type too: in Python 1 is True, in a column of texts it is not.
    where = {(column, type(value), value) for column, values in link.where for value in values}
    return link.to, frozenset(link.on), link.back, link.as_text, frozenset(where)


# --- people, references, corrections ---


def _people(old: DataMap, new: DataMap) -> Iterator[Difference]:
    before = {each.name: each for each in old.people}
    after = {each.name: each for each in new.people}
    if len(before) == len(after) == 1:
        # One kind needs no name; giving it one changes nothing.
        [one], [other] = before.values(), after.values()
        before, after = {other.name: one}, after
    for name in _sorted_names(before, after):
        if name not in after:
            yield Difference(Group.PEOPLE, name, f"gone as a kind of people; was in {before[name].table}")
        elif name not in before:
            yield Difference(Group.PEOPLE, name, f"a new kind of people, in {after[name].table}")
        else:
            yield from _person(name, before[name], after[name])
    if old.schemas != new.schemas:
        was, now = (", ".join(each.schemas) or "the search path" for each in (old, new))
        yield Difference(Group.NAMES, "schemas", f"were {was}, now {now}")


def _person(name: str, old: SubjectRule, new: SubjectRule) -> Iterator[Difference]:
    if (old.table, old.key) != (new.table, new.key):
        was, now = (f"{each.table}({', '.join(each.key)})" for each in (old, new))
        yield Difference(Group.PEOPLE, name, f"were named by {was}, now by {now}")
    identifiers = [{rule.kind: rule.column for rule in each.identifiers} for each in (old, new)]
    yield from _diff_by_kind(name, "found by", *identifiers)
    references = [{rule.kind: _reference(rule.parts) for rule in each.refs} for each in (old, new)]
    yield from _diff_by_kind(name, "known elsewhere as", *references)


def _diff_by_kind(name: str, how: str, old: dict[str, str], new: dict[str, str]) -> Iterator[Difference]:
    for kind in _sorted_names(old, new):
        if old.get(kind) != new.get(kind):
            was = f"was {old[kind]}" if kind in old else "is new"
            now = f"now {new[kind]}" if kind in new else "is gone"
            yield Difference(Group.PEOPLE, name, f"{how} {kind}: {was}, {now}")


def _reference(parts: Iterable[tuple[str, str | None]]) -> str:
    return "".join(literal + (f"{{{column}}}" if column else "") for literal, column in parts)


def _rectify(old: DataMap, new: DataMap) -> Iterator[Difference]:
    yield from _diff_by_kind("rectify", "corrected as", _categories(old), _categories(new))


def _categories(data_map: DataMap) -> dict[str, str]:
    return {
        name: ", ".join(sorted(".".join(each) for each in rule.columns))
        for name, rule in data_map.rectify.items()
    }
