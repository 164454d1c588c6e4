"""Read the schema of a live database: most of it through SQLAlchemy, the rest from the `catalog`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from sqlalchemy import Connection, Inspector, inspect
from sqlalchemy.dialects.postgresql import CITEXT, DOMAIN
from sqlalchemy.exc import SAWarning

from effaced.datamap.model.data_map import OWN_PREFIX
from effaced.datamap.schema import catalog
from effaced.datamap.schema import partitions as catalog_partitions
from effaced.datamap.schema import uniques as catalog_uniques
from effaced.datamap.schema.catalog import Collations
from effaced.datamap.schema.partitions import PartitionRules
from effaced.datamap.schema.tables import (
    Check,
    ForeignKey,
    LiveColumn,
    LiveIndex,
    LiveSchema,
    LiveTable,
    Unique,
)
from effaced.datamap.schema.uniques import InvalidUniques

# The kinds of PostgreSQL index that find rows by an equal value.
_FINDING = ("btree", "hash")


def read_schema(connection: Connection, schemas: Sequence[str] = ()) -> LiveSchema:
    """Read tables, constraints and keys. A handful of queries per schema, however many tables there are."""
    with warnings.catch_warnings():
        # Types and indexes that SQLAlchemy does not know are no concern here.
        warnings.simplefilter("ignore", SAWarning)
        return _read(connection, inspect(connection), schemas)


def _read(connection: Connection, inspector: Inspector, schemas: Sequence[str]) -> LiveSchema:
    tables: dict[str, LiveTable] = {}
    for schema in (None, *_out_of_sight(connection, schemas)):
        tables |= _tables(connection, inspector, _names(inspector, schema), schema)
    sqlite = connection.dialect.name == "sqlite"
    keys = _sqlite_keys(connection, tables) if sqlite else _postgres_keys(connection)
    pointing = [key for key in keys if key.to in tables]
    return LiveSchema(
        connection.dialect.name,
        tables,
        tuple(sorted((key for key in pointing if key.table in tables), key=str)),
        tuple(key for key in pointing if key.table not in tables),
        {} if sqlite else catalog.inheriting_tables(connection),
    )


def _out_of_sight(connection: Connection, schemas: Sequence[str]) -> list[str]:
    """Those of the schemas whose tables need a prefix; SQLite has none."""
    if connection.dialect.name == "sqlite":
        return []
    in_sight = catalog.search_path(connection)
    return [schema for schema in schemas if schema not in in_sight]


def _names(inspector: Inspector, schema: str | None) -> list[str]:
    """The tables to ask SQLAlchemy about: all but effaced's own, which are many and in no map."""
    names = [name for name in inspector.get_table_names(schema) if not name.startswith(OWN_PREFIX)]
    return names or [""]  # an empty list would mean every table


def name_in_map(table: str, schema: str | None) -> str:
    """What the map calls a table: its schema is part of the name unless it is on the search path."""
    return f"{schema}.{table}" if schema else table


@dataclass(frozen=True, slots=True)
class _Facts:
    """What SQLAlchemy does not tell about tables, by their names in the map."""

    collations: Collations
    loose: InvalidUniques
    unique_expressions: Iterable[tuple[str, str]]
    """A table, and the SQL of what may not repeat in it."""
    partitions: Collection[str] = ()
    of_partitions: Mapping[str, PartitionRules] = field(default_factory=dict)
    """What the partitions of a table ask for."""


@dataclass(frozen=True, slots=True)
class _Reflected:
    """What SQLAlchemy tells about one table."""

    name: str
    schema: str | None
    columns: Sequence[Mapping[str, Any]]
    primary: tuple[str, ...]
    constraints: Sequence[Mapping[str, Any]]
    """Of the kind UNIQUE."""
    indexes: Sequence[Mapping[str, Any]]
    checks: Sequence[Mapping[str, Any]]


def _tables(
    connection: Connection, inspector: Inspector, names: list[str], schema: str | None
) -> dict[str, LiveTable]:
    reflected = _reflect(inspector, names, schema)
    facts = (
        _sqlite_facts(connection, reflected)
        if inspector.dialect.name == "sqlite"
        else _postgres_facts(connection)
    )
    types: dict[Any, Any] = {}
    whole = (each for each in reflected if each.name not in facts.partitions)
    return {each.name: _table(each, facts, types) for each in whole}


def _reflect(inspector: Inspector, names: list[str], schema: str | None) -> list[_Reflected]:
    columns = inspector.get_multi_columns(schema=schema, filter_names=names)
    keys = inspector.get_multi_pk_constraint(schema=schema, filter_names=names)
    constraints = inspector.get_multi_unique_constraints(schema=schema, filter_names=names)
    checks = inspector.get_multi_check_constraints(schema=schema, filter_names=names)
    # On SQLite only the automatic indexes tell of every UNIQUE in a table's SQL text.
    if inspector.dialect.name == "sqlite":
        indexes = inspector.get_multi_indexes(filter_names=names, include_auto_indexes=True)
    else:
        indexes = inspector.get_multi_indexes(schema=schema, filter_names=names)
    return [
        _Reflected(
            name_in_map(str(place[1]), schema),
            schema,
            columns[place],
            tuple(keys[place]["constrained_columns"]),
            constraints[place],
            indexes[place],
            checks.get(place, ()),
        )
        for place in sorted(columns, key=str)
    ]


def _sqlite_facts(connection: Connection, tables: Iterable[_Reflected]) -> _Facts:
    """What reflection leaves out: collations, invalid uniques, and uniques over expressions."""
    named = {table.name: [each["name"] for each in table.columns] for table in tables}
    collations = catalog.sqlite_collations(connection, named)
    return _Facts(
        collations,
        catalog_uniques.sqlite_invalid_uniques(connection, collations),
        catalog.sqlite_expression_uniques(connection),
    )


def _postgres_facts(connection: Connection) -> _Facts:
    partitions = catalog.partitions(connection)
    return _Facts(
        catalog.postgres_collations(connection),
        catalog_uniques.postgres_invalid_uniques(connection),
        catalog_uniques.exclusion_constraints(connection),
        partitions,
        catalog_partitions.partition_rules(connection) if partitions else {},
    )


def _table(table: _Reflected, facts: _Facts, types: dict[Any, Any]) -> LiveTable:
    demands = facts.of_partitions.get(table.name, PartitionRules())
    filled = {*table.primary, *demands.not_null}
    columns = {
        each["name"]: _live_column(
            each,
            _reuse_type(each["type"], types),
            filled,
            facts.collations.get((table.name, each["name"])),
        )
        for each in table.columns
    }
    checks = [(each["name"] or "", each["sqltext"]) for each in table.checks]
    indexes = (_live_index(each) for each in (*table.constraints, *table.indexes))
    return LiveTable(
        table.name,
        columns,
        _uniques(table, facts, demands, columns),
        table.primary,
        table.schema,
        tuple(Check(word, sql, columns_in_sql(sql, columns)) for word, sql in (*checks, *demands.checks)),
        tuple(dict.fromkeys((LiveIndex(table.primary), *indexes))),
    )


def _uniques(
    table: _Reflected, facts: _Facts, demands: PartitionRules, columns: Mapping[str, LiveColumn]
) -> tuple[Unique, ...]:
    """Everything that may not repeat in the table, whatever declares it."""
    declared = (*table.constraints, *(each for each in table.indexes if each["unique"]))
    expressions = (sql for name, sql in facts.unique_expressions if name == table.name)
    uniques = [
        *([Unique(frozenset(table.primary))] if table.primary else []),
        *(_unique(each, columns) for each in declared),
        *(Unique(columns_in_sql(sql, columns), whole=False) for sql in expressions),
        *(
            Unique(columns_in_sql(sql, columns), whole=False, nulls_repeat=nulls_repeat)
            for sql, nulls_repeat in demands.uniques
        ),
    ]
    uniques += _through_generated(uniques, table.columns)
    valid = (
        replace(each, whole=each.whole and (table.name, each.columns) not in facts.loose) for each in uniques
    )
    return tuple(dict.fromkeys(valid))


def _live_index(reflected: Mapping[str, Any]) -> LiveIndex:
    options = reflected.get("dialect_options", {})
    # Up to the first expression: what is behind it finds nothing by itself.
    columns = tuple(takewhile(lambda name: name is not None, reflected["column_names"]))
    partial = any(name.endswith("_where") for name in options)
    return LiveIndex(columns if options.get("postgresql_using", "btree") in _FINDING else (), partial)


def _reuse_type(kind: Any, kinds: dict[Any, Any]) -> Any:
    """An equal type that was seen before, if there is one: SQLAlchemy caches per type object."""
    try:
        return kinds.setdefault((type(kind), *sorted(vars(kind).items())), kind)
    except TypeError:  # made of what can't be compared
        return kind


def _live_column(
    reflected: Mapping[str, Any], kind: Any, filled: Collection[str], collation: str | None
) -> LiveColumn:
    nullable = reflected["nullable"]
    domain = kind if isinstance(kind, DOMAIN) else None
    # One domain may stand for another.
    while isinstance(kind, DOMAIN):
        nullable = nullable and not kind.not_null
        kind = kind.data_type
    always = reflected.get("identity", {}).get("always", False)
    return LiveColumn(
        name=reflected["name"],
        type=kind,
        # SQLite calls the columns of a primary key nullable.
        nullable=nullable and reflected["name"] not in filled,
        generated=always or "computed" in reflected,
        # The type itself takes large and small letters for the same.
        collation="citext" if isinstance(kind, CITEXT) else collation,
        computed="computed" in reflected,
        domain=domain,
    )


def _unique(reflected: Mapping[str, Any], columns: Mapping[str, LiveColumn]) -> Unique:
    named = {name for name in reflected["column_names"] if name is not None}
    spoken_of = columns_in_sql(" ".join(reflected.get("expressions", ())), columns)
    options = reflected.get("dialect_options", {})
    partial = any(name.endswith("_where") for name in options)
    return Unique(
        columns=frozenset(named | spoken_of),
        whole=not partial and None not in reflected["column_names"],
        nulls_repeat=not options.get("postgresql_nulls_not_distinct", False),
    )


def columns_in_sql(sql: str, columns: Iterable[str]) -> frozenset[str]:
    """The columns that an expression may speak of: rather one too many than one too few."""
    sql = sql.replace('""', '"')
    return frozenset(
        name for name in columns if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.IGNORECASE)
    )


def _through_generated(uniques: Iterable[Unique], columns: Iterable[Mapping[str, Any]]) -> list[Unique]:
    """A unique generated column restricts the columns it is made from: these are unique with it."""
    columns = list(columns)
    names = [each["name"] for each in columns]
    made_from = {
        # An expression that can't be read may speak of anything.
        each["name"]: columns_in_sql(sql, names) if (sql := each["computed"]["sqltext"]) else frozenset(names)
        for each in columns
        if "computed" in each
    }
    found = []
    for unique in uniques:
        reach = unique.columns
        while (wider := reach.union(*(made_from.get(name, ()) for name in reach))) != reach:
            reach = wider
        if reach != unique.columns:
            found.append(Unique(reach, whole=False, nulls_repeat=unique.nulls_repeat))
    return found


def _postgres_keys(connection: Connection) -> list[ForeignKey]:
    return [
        ForeignKey(key.table, key.to, key.on, key.acts, key.name)
        for key in catalog.foreign_keys(connection)
        if not key.table.startswith(OWN_PREFIX)
    ]


def _sqlite_keys(connection: Connection, tables: Mapping[str, LiveTable]) -> Iterator[ForeignKey]:
    """The foreign keys whose tables and columns exist; SQLite accepts any declaration."""
    # SQLite takes `REFERENCES Customers(ID)` for `customers(id)`.
    targets = {name.lower(): table for name, table in tables.items()}
    for table, to, pairs, acts in catalog.sqlite_keys(connection):
        target = targets.get(to.lower())
        if target is None or table not in tables:  # to nowhere, or effaced's own
            continue
        declared = {column.lower(): column for column in target.columns}
        mine = {column.lower(): column for column in tables[table].columns}
        own = [mine.get(column.lower(), column) for column, _ in pairs]
        others = [declared.get(other.lower(), other) for _, other in pairs if other] or target.primary
        # SQLite takes any declaration, but follows only those that fit.
        if len(others) == len(own):
            yield ForeignKey(table, target.name, tuple(zip(own, others, strict=True)), acts)
