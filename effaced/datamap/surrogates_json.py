"""JSON documents by path, in SQL: one expression that takes the document apart and puts it together again.

On PostgreSQL each level is a subselect over the members or elements, so that the expression grows with the
paths and not with their product. SQLite has a function for it (`functions.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from sqlalchemy import (
    JSON,
    BindParameter,
    ColumnElement,
    FunctionElement,
    LargeBinary,
    String,
    TableValuedAlias,
    Text,
    and_,
    bindparam,
    case,
    cast,
    column,
    exists,
    false,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    true,
    types,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by

from effaced.datamap.json_paths import Tree, as_tree
from effaced.datamap.model import ColumnRule, Strategy, Surrogate
from effaced.datamap.parameters import HASH_INNER, HASH_LABEL, HASH_OUTER, scrub_name

Cell = ColumnElement[Any]
_EMPTY = r'^(\{\s*\}|\[\s*\]|"")$'


@dataclass(frozen=True, slots=True)
class Rules:
    """What is written over a text, and whether it has to be: as for a column."""

    replacement: Callable[[Cell, ColumnRule, str], ColumnElement[Any]]
    still_personal: Callable[[Cell, ColumnRule, str], ColumnElement[bool]]


def edited(cell: Cell, rule: ColumnRule, dialect: str, rules: Rules) -> ColumnElement[Any]:
    """The document with every path changed; what is no JSON, or would be too long, goes as a whole.

    On PostgreSQL for a cell of which `holds_any` is true.
    """
    if dialect == "sqlite":
        return _on_sqlite(cell, rule)
    document = _Documents(rules, cell)
    new = document.new(document.whole, as_tree(rule.paths))
    if document.binary:
        return new
    text = cast(new, Text)
    fitting: Cell = cast(text, cell.type)
    if (length := getattr(cell.type, "length", None)) is not None:
        fitting = case((func.length(text) > length, _nothing(cell)), else_=text)
    return case((document.valid, fitting), else_=_nothing(cell))


def holds_any(cell: Cell, rule: ColumnRule, dialect: str, rules: Rules) -> ColumnElement[bool]:
    """Whether there is anything at the paths that has not been changed yet."""
    if dialect == "sqlite":
        return and_(cell.is_not(None), cell.is_distinct_from(_on_sqlite(cell, rule)))
    document = _Documents(rules, cell)
    holds = document.holds(document.whole, as_tree(rule.paths))
    if document.binary:
        return func.coalesce(holds, false())
    return case((cell.is_(None), false()), (~document.valid, true()), else_=holds)


def _nothing(cell: Cell) -> ColumnElement[Any]:
    if getattr(cell, "nullable", True):
        return null()
    return (
        literal_column("'{}'") if isinstance(cell.type, String) else cast(literal_column("'{}'"), cell.type)
    )


def as_text(rule: ColumnRule) -> str:
    """A rule's paths for the function on SQLite, and for its memory."""
    return json.dumps(
        [
            [path, each.strategy, each.surrogate, each.text, each.value, each.names]
            for path, each in rule.paths
        ]
    )


def _on_sqlite(cell: Cell, rule: ColumnRule) -> ColumnElement[str]:
    asked: list[BindParameter[Any]] = []
    if rule.pseudonymises:
        asked += [bindparam(name, type_=LargeBinary()) for name in (HASH_INNER, HASH_OUTER)]
        asked += [bindparam(HASH_LABEL, type_=String())]
    scrubs = {scrub_name(each) for _, each in rule.paths if each.strategy is Strategy.SCRUB}
    asked += [bindparam(name, type_=String()) for name in sorted(scrubs)]
    named: list[Any] = [part for each in asked for part in (literal(each.key, String()), each)]
    nothing = _nothing(cell)
    length = literal(getattr(cell.type, "length", None), types.Integer())
    return func.effaced_json(cell, nothing, length, literal(as_text(rule), String()), *named, type_=String())


class _Documents:
    """Makes the expressions for one column. `json` and `jsonb` have the same functions under two names."""

    def __init__(self, rules: Rules, cell: Cell) -> None:
        self._rules = rules
        self._numbers = count()
        self.binary = isinstance(cell.type, JSONB)
        self._name = "jsonb" if self.binary else "json"
        self._type: types.TypeEngine[Any] = JSONB() if self.binary else JSON()
        self.whole: Cell = cast(cell, self._type) if isinstance(cell.type, String) else cell
        # What jsonb can't hold (\u0000), the functions of json can't take apart either.
        self.valid: ColumnElement[bool] = func.pg_input_is_valid(
            cast(cell, Text), literal_column("'jsonb'"), type_=types.Boolean()
        )

    def new(self, value: Cell, tree: Tree) -> Cell:
        if tree.rule is not None:
            return case((self.holds(value, tree), self._leaf(value, tree.rule)), else_=value)
        ways = []
        if tree.members:
            members = self._members(value)
            inner = [
                (members.c.key == name, self.new(members.c.value, each))
                for name, each in tree.members.items()
            ]
            pairs = self._call("object_agg", members.c.key, case(*inner, else_=members.c.value))
            kept = [members.c.key != name for name, each in tree.members.items() if _goes(each)]
            ways.append(("object", pairs.filter(*kept) if kept else pairs, members, "{}"))
        if tree.in_arrays:
            elements = self._elements(value)
            item: Cell = elements.c.value
            if tree.every is not None:
                item = self.new(item, tree.every)
            elif tree.elements:
                # PostgreSQL counts from one.
                numbered = [
                    (elements.c.place == n + 1, self.new(item, each)) for n, each in tree.elements.items()
                ]
                item = case(*numbered, else_=item)
            items = self._call("agg", aggregate_order_by(item, elements.c.place))
            gone = tree.every is not None and _goes(tree.every)
            ways.append(("array", items.filter(false()) if gone else items, elements, "[]"))
        return case(
            *(
                (self._kind(value) == kind, func.coalesce(self._select(made, source), self._literal(empty)))
                for kind, made, source, empty in ways
            ),
            else_=value,
        )

    def holds(self, value: Cell, tree: Tree) -> ColumnElement[bool]:
        if tree.rule is not None:
            return self._leaf_holds(value, tree.rule)
        ways = []
        if tree.members:
            members = self._members(value)
            inner = [
                and_(members.c.key == name, self.holds(members.c.value, each))
                for name, each in tree.members.items()
            ]
            ways.append(
                (self._kind(value) == "object", exists(_one().select_from(members).where(or_(*inner))))
            )
        if tree.in_arrays:
            elements = self._elements(value)
            if tree.every is not None:
                any_of = self.holds(elements.c.value, tree.every)
            else:
                any_of = or_(
                    *(
                        and_(elements.c.place == n + 1, self.holds(elements.c.value, each))
                        for n, each in tree.elements.items()
                    )
                )
            ways.append((self._kind(value) == "array", exists(_one().select_from(elements).where(any_of))))
        return case(*ways, else_=false())

    def _leaf(self, value: Cell, rule: ColumnRule) -> Cell:
        match rule.surrogate:
            case Surrogate.NULL:
                return self._literal("null")
            case Surrogate.FIXED:
                return self._literal(rule.value or "null")
            case Surrogate.EMPTY:
                shapes = {"object": "{}", "array": "[]", "string": '""'}
                return case(
                    *((self._kind(value) == kind, self._literal(empty)) for kind, empty in shapes.items()),
                    else_=self._literal("null"),
                )
            case _:
                return self._text_leaf(value, rule)

    def _text_leaf(self, value: Cell, rule: ColumnRule) -> Cell:
        # What it was is of no matter here: `holds` has been asked. A hash needs a text to be made of.
        text = self._text(value)
        written = func.to_json if not self.binary else func.to_jsonb
        new = written(cast(self._rules.replacement(text, rule, "postgresql"), Text), type_=self._type)
        if rule.surrogate is Surrogate.KEYED_HASH:
            nested = or_(*(self._kind(value) == kind for kind in ("object", "array")))
            return case((nested, self._literal("null")), else_=new)
        return new

    def _leaf_holds(self, value: Cell, rule: ColumnRule) -> ColumnElement[bool]:
        if rule.strategy is Strategy.DELETE:
            return true()
        kind, text = self._kind(value), self._text(value)
        there = kind != "null"
        match rule.surrogate:
            case Surrogate.NULL:
                return there
            case Surrogate.FIXED:
                same = cast(cast(value, Text), JSONB) == cast(literal(rule.value, String()), JSONB)
                return and_(there, ~same)
            case Surrogate.EMPTY:
                return and_(there, ~cast(value, Text).regexp_match(_EMPTY))
            case None:  # scrub
                return and_(kind == "string", self._rules.still_personal(text, rule, "postgresql"))
            case _:
                done = ~self._rules.still_personal(text, rule, "postgresql")
                return and_(there, ~and_(kind == "string", done))

    def _kind(self, value: Cell) -> ColumnElement[str]:
        kind: ColumnElement[str] = self._call("typeof", value, kind=String())
        return kind

    def _text(self, value: Cell) -> ColumnElement[str]:
        return value.op("#>>", return_type=Text())(literal_column("'{}'"))

    def _literal(self, text: str) -> Cell:
        return cast(literal(text, String()), self._type)

    def _call(self, name: str, *arguments: Any, kind: types.TypeEngine[Any] | None = None) -> Any:
        return getattr(func, f"{self._name}_{name}")(*arguments, type_=kind or self._type)

    def _members(self, value: Cell) -> TableValuedAlias:
        columns = column("key", Text()), column("value", self._type)
        name = f"effaced_m{next(self._numbers)}"
        each: FunctionElement[Any] = self._call("each", value)
        return each.table_valued(*columns, name=name)

    def _elements(self, value: Cell) -> TableValuedAlias:
        element = column("value", self._type)
        name = f"effaced_e{next(self._numbers)}"
        each: FunctionElement[Any] = self._call("array_elements", value)
        return each.table_valued(element, with_ordinality="place", name=name).render_derived()

    def _select(self, made: Any, source: Any) -> Cell:
        return select(made).select_from(source).scalar_subquery()


def _one() -> Any:
    return select(literal_column("1"))


def _goes(tree: Tree) -> bool:
    return tree.rule is not None and tree.rule.strategy is Strategy.DELETE
