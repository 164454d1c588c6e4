"""What PostgreSQL can do in SQL and SQLite can't: functions of our own, registered on a connection."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection

from effaced.datamap.compile.parameters import HASH_INNER, HASH_LABEL, HASH_OUTER, scrub_name
from effaced.datamap.model.data_map import ColumnRule, Strategy, Surrogate
from effaced.datamap.model.json_paths import Tree, as_tree
from effaced.datamap.surrogates.json_edit import REMOVED, Number, edit
from effaced.datamap.surrogates.scrub_pattern import scrub
from effaced.datamap.surrogates.shapes import RANDOM_TEXTS, Hashing, is_text_surrogate, make_uuid


def register(connection: Connection) -> None:
    """Register the functions on an SQLite connection; doing it again changes nothing.

    Here and not where connections are made: an application that embeds effaced makes its own.
    """
    raw = connection.connection.driver_connection
    assert raw is not None
    raw.create_function("effaced_hash", 4, _hash, deterministic=True)
    raw.create_function("effaced_scrub", 2, _scrub, deterministic=True)
    raw.create_function("effaced_json", -1, _json)


def _hash(cell: Any, inner: bytes, outer: bytes, label: str) -> str | None:
    return None if cell is None else Hashing(inner, outer, label).hash(str(cell))


def _scrub(cell: Any, pattern: str | None) -> Any:
    return scrub(cell, pattern) if isinstance(cell, str) else cell


def _json(cell: Any, nothing: str | None, length: int | None, rules: str, *named: Any) -> str | None:
    if cell is None:
        return None
    values = dict(zip(named[::2], named[1::2], strict=True))
    try:
        text = edit(str(cell), _tree(rules), lambda rule, value: _changed(rule, value, values))
    except ValueError:
        return nothing
    return nothing if length is not None and len(text) > length and text != cell else text


@lru_cache(maxsize=256)
def _tree(rules: str) -> Tree:
    """The paths, from the JSON that `paths_as_json` writes."""
    return as_tree(
        (
            tuple(path),
            ColumnRule(
                Strategy(strategy),
                Surrogate(surrogate) if surrogate else None,
                text=text,
                value=value,
                names=tuple(names),
            ),
        )
        for path, strategy, surrogate, text, value, names in json.loads(rules)
    )


def _changed(rule: ColumnRule, value: Any, values: dict[str, Any]) -> Any:
    """The new value at a path; the same object if it needs no change."""
    if rule.strategy is Strategy.DELETE:
        return REMOVED
    text = value if isinstance(value, str) and not isinstance(value, Number) else None
    if value is None:
        return value
    if rule.strategy is Strategy.SCRUB:
        return value if text is None or (new := scrub(text, values[scrub_name(rule)])) == text else new
    if text is not None and is_text_surrogate(text, rule.surrogate):
        return value
    new = _new(rule, value, values)
    return value if _written(new) == _written(value) else new


def _new(rule: ColumnRule, value: Any, values: dict[str, Any]) -> Any:
    match rule.surrogate:
        case Surrogate.FIXED_TEXT:
            return rule.text
        case Surrogate.FIXED:
            return json.loads(rule.value or "null")
        case Surrogate.RANDOM_UNIQUE | Surrogate.RANDOM_EMAIL:
            return RANDOM_TEXTS[rule.surrogate].make()
        case Surrogate.RANDOM_UUID:
            return make_uuid()
        case Surrogate.EMPTY:
            if isinstance(value, Number):
                return None
            return type(value)() if isinstance(value, dict | list | str) else None
        case Surrogate.KEYED_HASH if not isinstance(value, dict | list):
            text = value if isinstance(value, str) else _written(value)
            return Hashing(values[HASH_INNER], values[HASH_OUTER], values[HASH_LABEL]).hash(text)
        case _:
            return None


def _written(value: Any) -> str:
    return str(value) if isinstance(value, Number) else json.dumps(value)
