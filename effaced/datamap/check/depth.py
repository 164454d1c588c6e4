"""Can SQLite parse the statements? Its parser has a limit for nested conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import OperationalError

from effaced.datamap.compile.key import KeyColumns
from effaced.datamap.compile.order import pointers
from effaced.datamap.compile.ownership import Ownership
from effaced.datamap.model.data_map import DataMap, Link
from effaced.datamap.schema.tables import LiveSchema

Finding = tuple[int, str]
_WORTH_ASKING = 5
"""What is not nested as deeply can be read by any SQLite."""


def depth_problems(connection: Connection, schema: LiveSchema, data_map: DataMap) -> Iterator[Finding]:
    """Tables whose links nest deeper than SQLite can parse.

    The statements are explained and not run; the map must have passed all other checks.
    """
    if schema.dialect != "sqlite":
        return
    columns = schema.tables[data_map.subject].columns
    key = KeyColumns(tuple(columns[name] for name in data_map.key), schema.dialect)
    belonging, nesting = Ownership(schema, data_map, key), _Nesting(schema, data_map)
    for name, table in data_map.tables.items():
        if table.owned and nesting.depth(name) >= _WORTH_ASKING:
            # A little deeper than any statement of a plan has it.
            theirs = belonging.rows(name).is_not(None)
            rows = select(func.count()).select_from(schema.table(name)).where(theirs).scalar_subquery()
            counts = select(select(rows).scalar_subquery()).compile(connection)
            values = tuple(None for _ in counts.positiontup or ())
            try:
                connection.exec_driver_sql(f"EXPLAIN {counts}", values).close()
            except OperationalError:
                yield (
                    table.line,
                    f"{name}: its links lead to {data_map.subject} over more steps and 'from' than SQLite can"
                    " read in one statement; link it to a table that is nearer",
                )


@dataclass(frozen=True, slots=True)
class _Nesting:
    schema: LiveSchema
    data_map: DataMap
    known: dict[tuple[str, frozenset[str]], int] = field(default_factory=dict)

    def depth(self, table: str, but_through: frozenset[str] = frozenset()) -> int:
        """How many nested SELECTs it takes to find the person's rows of this table."""
        asked = table, but_through
        if table == self.data_map.subject or table in but_through:
            return 0
        if asked not in self.known:
            ways = (self._behind(each, *asked) for each in self._links(table))
            self.known[asked] = 1 + max(ways, default=0)
        return self.known[asked]

    def _links(self, table: str) -> tuple[Link, ...]:
        return self.data_map.tables[table].links

    def _behind(self, link: Link, table: str, but_through: frozenset[str]) -> int:
        if link.to == table:
            others = (each for each in self._links(table) if each.to != table)
            return 1 + max(self._behind(each, table, but_through) for each in others)
        ahead = [self.depth(link.to, but_through)]
        if link.back:
            names = {name for name, _, _ in pointers(self.schema, self.data_map, table)}
            owned = [name for name in names if name in self.data_map.own_tables]
            ahead += [self.depth(name, but_through | {table}) for name in owned]
        return max(ahead)
