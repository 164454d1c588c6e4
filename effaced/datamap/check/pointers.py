"""Can rows be deleted and cells changed without a foreign key that refuses, or acts by itself?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from effaced.datamap.compile.key import KEY_FAMILIES
from effaced.datamap.compile.order import Order, releasing_mentions
from effaced.datamap.load.reader import one_of
from effaced.datamap.model.data_map import ColumnRule, DataMap, Link, Surrogate, TableRule
from effaced.datamap.schema.tables import ForeignKey, LiveSchema

Finding = tuple[int, str]


def pointer_problems(schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    for key in schema.foreign_keys:
        child = data_map.tables.get(key.table)
        for written in _written_columns(child) if child else ():
            yield from _surrogates_in_foreign_key(written, key)
        yield from _conflicts(data_map, key)
    for key in schema.keys_from_outside:
        yield from _from_outside(data_map, key)


def order_problems(schema: LiveSchema, data_map: DataMap, order: Order) -> Iterator[Finding]:
    """Why the statements can't be put in an order, or rows can't be looked up beforehand."""
    if order.cycle:
        yield (
            data_map.tables[order.cycle[0]].line,
            f"{order.cycle[0]}: rows that are deleted point at each other in a cycle:"
            f" {', '.join(order.cycle)}; make one of the pointers nullable, or"
            " keep the rows of one of the tables (anonymise)",
        )
    for name in order.captured:
        live = schema.tables[name]
        kinds = [live.columns[column] for column in live.primary]
        if not kinds or any(each.family not in KEY_FAMILIES for each in kinds):
            yield (
                data_map.tables[name].line,
                f"{name}: its rows must be looked up before the erasure begins, which takes a primary key"
                f" of {one_of(KEY_FAMILIES)}",
            )


def _written_columns(child: TableRule) -> Iterator[dict[str, ColumnRule]]:
    if child.stays:
        yield child.changed
    for mention in child.mentions:
        yield dict(mention.columns)


def _conflicts(data_map: DataMap, key: ForeignKey) -> Iterator[Finding]:
    """Whether rows that the map does not deal with may point where it deletes or changes."""
    parent = data_map.tables.get(key.to)
    if parent is None or not any(parent.loses(column) for _, column in key.on):
        return
    conflict = _Conflict(data_map, key, parent)
    child = data_map.tables.get(key.table)
    if child is None:
        yield from conflict.from_undeclared_table()
    elif child is parent:
        yield from conflict.within_table()
    else:
        yield from conflict.from_table(child)


@dataclass(frozen=True, slots=True)
class _Conflict:
    """A foreign key to rows that the map deletes, or whose referenced cells it changes."""

    data_map: DataMap
    key: ForeignKey
    parent: TableRule

    @property
    def _problem(self) -> str:
        verb = "changes" if self.parent.stays else "deletes"
        rows = f"rows of {self.key.to} that the map {verb}"
        return f"{self.key.table}: its foreign key {self.key} points at {rows}"

    @property
    def _is_released(self) -> bool:
        """Whether a mention sets the pointers to NULL, or the row stays while somebody else points at it."""
        # Rows that are the person's only while nobody else points at them stay where somebody does.
        guarded = bool(self.parent.links) and all(link.back for link in self.parent.links)
        child = self.data_map.tables.get(self.key.table)
        return guarded or next(releasing_mentions(child, self.key), None) is not None

    def from_undeclared_table(self) -> Iterator[Finding]:
        """From a table declared not_personal, or one in which only other kinds of people have rows."""
        if self._is_released:
            return
        name, whole = self.key.table, self.data_map.whole
        if name in self.data_map.not_personal:
            line = self.data_map.not_personal[name]
            yield line, f"{self._problem}, so it is not without personal data; give it a link"
        elif whole and name in self.data_map.tables_of_others:
            yield whole.tables[name].line, f"{self._problem}{_mention(self.key)}"

    def within_table(self) -> Iterator[Finding]:
        # One statement takes all of a person's rows, so they may point at each other. If somebody else's
        # row points at one, the database refuses, unless it is declared to act on that row instead.
        parent = self.parent
        if self._is_released or not (parent.stays or self.key.acts or parent.name == self.data_map.subject):
            return
        yield (
            parent.line,
            f"{self._problem}, from other people's rows too; anonymise instead, or say what becomes of"
            f" them{_mention(self.key)}",
        )

    def from_table(self, child: TableRule) -> Iterator[Finding]:
        linked = any(_follows(link, self.key) for link in child.links)
        if not linked and not self._is_released:
            yield child.line, f"{self._problem}{_not_covered(self.data_map, self.key)}"
            return
        keeps = child.owned and child.stays and not any(child.clears(column) for column in self.key.columns)
        if keeps and (self.parent.stays or not linked):
            yield child.line, f"{self._problem}, but {self.key.table}.{self.key.columns[0]} is kept"


def _follows(link: Link, key: ForeignKey) -> bool:
    """Whether the link reaches every row that has the foreign key."""
    return link.to == key.to and not link.back and not link.where and set(link.on) <= set(key.on)


def _from_outside(data_map: DataMap, key: ForeignKey) -> Iterator[Finding]:
    parent = data_map.tables.get(key.to)
    if parent and any(parent.loses(column) for _, column in key.on):
        yield (
            parent.line,
            f"{key.to}: the foreign key {key.name} of {key.table}, a table that is not looked at, points at"
            f" rows that the map {'changes' if parent.stays else 'deletes'}, and no link can reach its rows;"
            f" name its schema under schemas and declare the table, or keep the rows of {key.to}",
        )


def _not_covered(data_map: DataMap, key: ForeignKey) -> str:
    pairs = ", ".join(f"{own}: {other}" for own, other in key.on)
    link = f"add the link {{to: {key.to}, on: {{{pairs}}}}}"
    if key.table in data_map.tables_between(key.to):  # a link would form a cycle
        return f", from rows that are not the person's, too{_mention(key)}"
    return f", from rows that no link reaches; {link}, or, if they are not the person's{_mention(key)}"


def _mention(key: ForeignKey) -> str:
    pairs = ", ".join(f"{own}: {other}" for own, other in key.on)
    return (
        f": add to {key.table} the mentions {{to: {key.to}, on: {{{pairs}}},"
        f" columns: {{{key.columns[0]}: {{anonymise: null}}}}}}"
    )


def _surrogates_in_foreign_key(written: dict[str, ColumnRule], key: ForeignKey) -> Iterator[Finding]:
    for column in key.columns:
        rule = written.get(column)
        if rule and rule.changes and rule.written is not Surrogate.NULL:
            yield (
                rule.line,
                f"{key.table}.{column}: the foreign key {key} allows no {rule.word} here; use null",
            )
