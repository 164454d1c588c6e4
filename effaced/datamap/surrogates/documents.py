"""A JSON document on PostgreSQL: the SQL that takes it apart and puts it together again.

Each level is a subselect over the members or elements, so that the SQL grows with the paths and not with
their product. It is put together as text: as SQLAlchemy's objects, one document cost as much as 25 tables.
What comes from the map is never part of that text; it stands in it as an expression or a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from sqlalchemy import JSON, ColumnElement, FromClause, String, Text, cast, literal, literal_column, types
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.visitors import InternalTraversal

from effaced.datamap.model.data_map import ColumnRule, Strategy, Surrogate
from effaced.datamap.model.json_paths import Tree

Cell = ColumnElement[Any]
Sql = str
"""A piece of SQL, with `{0}`, `{1}` and so on for the expressions in it."""
_EMPTY = r'^(\{\s*\}|\[\s*\]|"")$'


@dataclass(frozen=True, slots=True)
class LeafRules:
    """What is written over a text, and when: the same functions as for a column."""

    replacement: Callable[[Cell, ColumnRule, str], ColumnElement[Any]]
    still_personal: Callable[[Cell, ColumnRule, str], ColumnElement[bool]]


class Fragment(ColumnElement[Any]):
    """SQL as text, with SQLAlchemy's expressions in it."""

    inherit_cache = True
    _traverse_internals = [  # noqa: RUF012 - as SQLAlchemy declares it
        ("sql", InternalTraversal.dp_string),
        ("parts", InternalTraversal.dp_clauseelement_tuple),
        ("type", InternalTraversal.dp_type),
    ]

    def __init__(self, sql: Sql, parts: Iterable[Cell], kind: types.TypeEngine[Any]) -> None:
        self.sql = sql
        self.parts = tuple(parts)
        self.type = kind

    @property
    def _from_objects(self) -> list[FromClause]:
        return list(chain.from_iterable(part._from_objects for part in self.parts))


@compiles(Fragment)
def _compile(element: Fragment, compiler: SQLCompiler, **options: Any) -> str:
    return element.sql.format(*(compiler.process(part, **options) for part in element.parts))


class Document:
    """Builds the expressions for one column. `json` and `jsonb` have the same functions under two names."""

    def __init__(self, rules: LeafRules, cell: Cell) -> None:
        self._rules = rules
        self._numbers = count()
        self._parts: list[Cell] = []
        self._name = "jsonb" if isinstance(cell.type, JSONB) else "json"
        self._type: types.TypeEngine[Any] = JSONB() if isinstance(cell.type, JSONB) else JSON()
        self._whole = self._part(cast(cell, self._type) if isinstance(cell.type, String) else cell)

    def new(self, tree: Tree) -> ColumnElement[Any]:
        """The document with every value replaced that is still personal."""
        return Fragment(self._new(self._whole, tree), self._parts, self._type)

    def holds(self, tree: Tree) -> ColumnElement[bool]:
        """Whether a path leads to a value that is still personal."""
        return Fragment(self._holds(self._whole, tree), self._parts, types.Boolean())

    def _new(self, value: Sql, tree: Tree) -> Sql:
        if tree.rule is not None:
            held, leaf = self._leaf_holds(value, tree.rule), self._leaf(value, tree.rule)
            return f"CASE WHEN {held} THEN {leaf} ELSE {value} END"
        ways = []
        if tree.members:
            rows = f"effaced_m{next(self._numbers)}"
            inner = {
                f"{rows}.key = {self._text_part(name)}": self._new(f"{rows}.value", each)
                for name, each in tree.members.items()
                if not _is_deleted(each)
            }
            gone = [self._text_part(name) for name, each in tree.members.items() if _is_deleted(each)]
            pairs = f"{self._name}_object_agg({rows}.key, {_case(inner, f'{rows}.value')})"
            kept = f" FILTER (WHERE {rows}.key NOT IN ({', '.join(gone)}))" if gone else ""
            ways.append(("object", f"{pairs}{kept} FROM {self._members(value, rows)}", "{{}}"))
        if tree.in_arrays:
            rows = f"effaced_e{next(self._numbers)}"
            item, place = f"{rows}.value", f"{rows}.place"
            if tree.every is not None:
                item = self._new(item, tree.every)
            else:
                # PostgreSQL counts from one.
                numbered = {f"{place} = {n + 1}": self._new(item, each) for n, each in tree.elements.items()}
                item = _case(numbered, item)
            kept = " FILTER (WHERE false)" if tree.every is not None and _is_deleted(tree.every) else ""
            made = f"{self._name}_agg({item} ORDER BY {place}){kept}"
            ways.append(("array", f"{made} FROM {self._elements(value, rows)}", "[]"))
        whens = {
            self._is(value, kind): f"coalesce((SELECT {made}), {self._json(empty)})"
            for kind, made, empty in ways
        }
        return _case(whens, value)

    def _holds(self, value: Sql, tree: Tree) -> Sql:
        if tree.rule is not None:
            return self._leaf_holds(value, tree.rule)
        whens = {}
        if tree.members:
            rows = f"effaced_m{next(self._numbers)}"
            any_of = " OR ".join(
                f"{rows}.key = {self._text_part(name)} AND {self._holds(f'{rows}.value', each)}"
                for name, each in tree.members.items()
            )
            whens[self._is(value, "object")] = _exists(self._members(value, rows), any_of)
        if tree.in_arrays:
            rows = f"effaced_e{next(self._numbers)}"
            if tree.every is not None:
                any_of = self._holds(f"{rows}.value", tree.every)
            else:
                any_of = " OR ".join(
                    f"{rows}.place = {n + 1} AND {self._holds(f'{rows}.value', each)}"
                    for n, each in tree.elements.items()
                )
            whens[self._is(value, "array")] = _exists(self._elements(value, rows), any_of)
        return _case(whens, "false")

    def _leaf(self, value: Sql, rule: ColumnRule) -> Sql:
        match rule.surrogate:
            case Surrogate.NULL:
                return self._json("null")
            case Surrogate.FIXED:
                return f"CAST({self._text_part(rule.value or 'null')} AS {self._name})"
            case Surrogate.EMPTY:
                shapes = {"object": "{{}}", "array": "[]", "string": '""'}
                empty = {self._is(value, kind): self._json(shape) for kind, shape in shapes.items()}
                return _case(empty, self._json("null"))
        # What it was is of no matter here: `holds` has been asked. A hash needs a text to be made of.
        text = self._part(self._rules.replacement(self._text(value), rule, "postgresql"))
        new = f"to_{self._name}(CAST({text} AS text))"
        if rule.surrogate is Surrogate.KEYED_HASH:
            return _case({self._is(value, "object", "array"): self._json("null")}, new)
        return new

    def _leaf_holds(self, value: Sql, rule: ColumnRule) -> Sql:
        if rule.strategy is Strategy.DELETE:
            return "true"
        there, is_text = f"NOT {self._is(value, 'null')}", self._is(value, "string")
        match rule.surrogate:
            case Surrogate.NULL:
                return f"({there})"
            case Surrogate.FIXED:
                fixed = self._text_part(rule.value or "null")
                return f"({there} AND CAST(CAST({value} AS text) AS jsonb) <> CAST({fixed} AS jsonb))"
            case Surrogate.EMPTY:
                return f"({there} AND CAST({value} AS text) !~ {self._text_part(_EMPTY)})"
        personal = self._part(self._rules.still_personal(self._text(value), rule, "postgresql"))
        if rule.strategy is Strategy.SCRUB:
            return f"({is_text} AND ({personal}))"
        return f"({there} AND NOT ({is_text} AND NOT ({personal})))"

    def _is(self, value: Sql, *kinds: str) -> Sql:
        return f"{self._name}_typeof({value}) IN ({', '.join(map(repr, kinds))})"

    def _json(self, text: Sql) -> Sql:
        return f"CAST('{text}' AS {self._name})"

    def _members(self, value: Sql, rows: str) -> Sql:
        return f"{self._name}_each({value}) AS {rows}(key, value)"

    def _elements(self, value: Sql, rows: str) -> Sql:
        return f"{self._name}_array_elements({value}) WITH ORDINALITY AS {rows}(value, place)"

    def _text(self, value: Sql) -> ColumnElement[str]:
        """The value as a plain text, without JSON's quotes."""
        return literal_column(f"({value} #>> '{{}}')", Text())

    def _text_part(self, text: str) -> Sql:
        return self._part(literal(text, Text()))

    def _part(self, expression: Cell) -> Sql:
        self._parts.append(expression)
        return f"{{{len(self._parts) - 1}}}"


def _case(whens: dict[Sql, Sql], otherwise: Sql) -> Sql:
    if not whens:
        return otherwise
    branches = " ".join(f"WHEN {when} THEN {then}" for when, then in whens.items())
    return f"CASE {branches} ELSE {otherwise} END"


def _exists(rows: Sql, condition: Sql) -> Sql:
    return f"EXISTS (SELECT FROM {rows} WHERE {condition})"


def _is_deleted(tree: Tree) -> bool:
    return tree.rule is not None and tree.rule.strategy is Strategy.DELETE
