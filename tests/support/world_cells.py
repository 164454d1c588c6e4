"""What the map's reference says becomes of a cell, in plain Python."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from world import Row
from world_content import ERASED, IDENTIFIERS, LOWEST, SEPARATOR, TOKENS, Column, Rule

from effaced.core.crypto import Keyring

KEYRING = Keyring((("k1", b"\x07" * 32),))
"""What keyed hashes are made with."""


def text(value: Any) -> str:
    """A cell as a text, whichever database it is from."""
    return str(value)


Fits = Callable[[Any], bool]


@dataclass(frozen=True)
class Fate:
    """Whether the cell is as it should be afterwards, whether it changes, and whether a name was in it."""

    fits: Fits
    changes: bool
    found: bool = False


@dataclass
class Person:
    """What is known of the person while their row is there: the words that name them, by kind."""

    words: dict[str, str] = field(default_factory=dict)

    def named(self, rule: Rule) -> Callable[[str], str]:
        kinds = ("email", "name", "phone") if rule["scrub"] == "all" else rule["scrub"]
        found = {word for word, kind in self.words.items() if kind in kinds}
        return lambda value: SEPARATOR.join(
            ERASED if word in found else word for word in value.split(SEPARATOR)
        )


def person_of(row: Row | None) -> Person:
    """By their row of the subject table, if they have one."""
    words: dict[str, str] = {}
    for word, (person, kind) in TOKENS.items():
        if row is not None and row[kind] == IDENTIFIERS[person][kind][0]:
            words[word] = kind
    return Person(words)


def fate(column: Column, rule: Rule, cell: Any, person: Person) -> Fate:
    """What the map's reference says becomes of the cell."""
    if cell is None or rule in ("not_personal", "derived") or "retain" in rule:
        return Fate(lambda after: bool(after == cell and type(after) is type(cell)), changes=False)
    if rule == "delete":
        return Fate(lambda after: after is None, changes=True)
    if "scrub" in rule:
        return _scrubbed(column, rule, cell, person)
    if "json" in rule:
        return _edited(column, rule["json"], cell, person)
    wanted = _surrogate(column, rule, cell)
    if wanted is None:
        return Fate(lambda after: after is None, changes=True)
    if isinstance(wanted, re.Pattern):
        done = wanted.fullmatch(text(cell)) is not None
        return Fate(lambda after: after == cell if done else bool(wanted.fullmatch(text(after))), not done)
    if isinstance(wanted, tuple):
        low, high = wanted
        done = low <= float(cell) <= high
        return Fate(lambda after: after == cell if done else low <= float(after) <= high, not done)
    done = text(cell) == wanted
    return Fate(lambda after: text(after) == wanted, not done)


def _surrogate(column: Column, rule: Rule, cell: Any) -> str | tuple[int, int] | re.Pattern[str] | None:
    """What is written: a text, a range of numbers, or a form."""
    match rule["anonymise"]:
        case None | "null":
            return None
        case "fixed_text":
            return str(rule["text"])
        case "fixed":
            return _fixed(column, rule["value"], cell)
        case "random_unique" | "random_email" as form:
            ending = "@erased.invalid" if form == "random_email" else ""
            length = 120 if column.type == "mail_address" else column.length or 120
            return re.compile(rf"erased-[0-9a-f]{{{min(32, length - 7 - len(ending))}}}{re.escape(ending)}")
        case "random_number":
            return LOWEST[column.type.split("(")[0]]
        case "random_uuid":
            dash = "" if column.length is not None and column.length < 36 else "-"
            return re.compile("effaced0" + "".join(f"{dash}[0-9a-f]{{{n}}}" for n in (4, 4, 4, 12)))
        case "truncated_date":
            day = f"{text(cell)[:4]}-01-01" if rule.get("to") != "month" else f"{text(cell)[:7]}-01"
            midnight = " 00:00:00+00" if column.type == "timestamptz" else " 00:00:00"
            return day + (midnight if column.kind == "moment" else "")
        case "empty":
            return _empty(column, cell)
        case "keyed_hash":
            return None if cell is None else _done_hash(cell) or keyed_hash(text(cell))
    raise AssertionError(rule)


def _done_hash(cell: Any) -> str | None:
    return text(cell) if re.fullmatch(r"hashed-[0-9A-Za-z]{1,16}-[0-9a-f]{64}", text(cell)) else None


def keyed_hash(value: str) -> str:
    secret = KEYRING.secret("datamap:keyed_hash")
    return f"hashed-k1-{hmac.new(secret, value.encode(), hashlib.sha256).hexdigest()}"


def _fixed(column: Column, value: Any, cell: Any) -> str:
    if column.kind == "truth":
        return str(value).lower() if isinstance(cell, str) else str(int(value))
    if column.type.startswith("numeric") and isinstance(cell, str):
        return f"{value}.00"
    return str(value)


def _empty(column: Column, cell: Any) -> Any:
    if column.kind == "bytes":
        return "\\x" if isinstance(cell, str) else "b''"
    if column.kind == "array":
        return "[]"
    if column.type in ("json", "jsonb"):
        if re.fullmatch(r"\s*(\{\s*\}|\[\s*\]|null)\s*", cell):
            return cell
        return "[]" if cell.lstrip().startswith("[") else "{}"
    return ""


def _scrubbed(column: Column, rule: Rule, cell: Any, person: Person) -> Fate:
    clean = person.named(rule)
    if column.kind == "array":
        items = json.loads(cell)
        wanted: Any = [
            _cut(clean(each), 40 if "(" in column.type else None) if each else each for each in items
        ]
        return Fate(lambda after: json.loads(after) == wanted, wanted != items, wanted != items)
    wanted = _cut(clean(cell), column.length)
    return Fate(lambda after: bool(after == wanted), wanted != cell, wanted != cell)


def _cut(value: str, length: int | None) -> str:
    return ERASED if length is not None and len(value) > length else value


# --- documents ---------------------------------------------------------------------------------------------


class Gone:
    """In place of a member or an element that is removed."""


def _number(value: str) -> tuple[str, str]:
    """As it is written, and like nothing else in JSON."""
    return ("number", value)


def read_json(value: str) -> Any:
    return json.loads(value, parse_int=_number, parse_float=_number)


def _edited(column: Column, paths: dict[str, Rule], cell: str, person: Person) -> Fate:
    try:
        document = read_json(cell)
    except ValueError:
        nothing = None if column.nullable else "{}"
        scrubs = any("scrub" in rule for rule in paths.values())
        return Fate(lambda after: after == nothing, changes=True, found=scrubs)
    new, found = document, False
    for path, rule in paths.items():
        before = new
        new = _walk(new, _steps(path), rule, person)
        found |= "scrub" in rule and new != before
    if new == document:
        return Fate(lambda after: after == cell, changes=False)
    return Fate(lambda after: after is not None and _alike(new, read_json(after)), changes=True, found=found)


def _steps(path: str) -> list[str | int | None]:
    found = re.findall(r'\.(\w+)|\["([^"]+)"\]|\[(\d+)\]|(\[\*\])', path)
    return [
        int(number) if number else None if every else plain or quoted
        for plain, quoted, number, every in found
    ]


def _walk(value: Any, steps: list[str | int | None], rule: Rule, person: Person) -> Any:
    if not steps:
        return _leaf(value, rule, person)
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict) and isinstance(step, str):
        parts = {n: _walk(each, rest, rule, person) if n == step else each for n, each in value.items()}
        return {name: each for name, each in parts.items() if each is not Gone}
    if isinstance(value, list) and not isinstance(step, str):
        items = [
            _walk(each, rest, rule, person) if step in (None, place) else each
            for place, each in enumerate(value)
        ]
        return [each for each in items if each is not Gone]
    return value


def _leaf(value: Any, rule: Rule, person: Person) -> Any:
    if rule == "delete":
        return Gone
    if value is None:
        return None
    if "scrub" in rule:
        return person.named(rule)(value) if isinstance(value, str) else value
    plain = Column("", "text", "text")
    match rule["anonymise"]:
        case "fixed":
            told = rule["value"]
            return told if isinstance(told, bool | str) else _number(str(told))
        case "empty":
            return type(value)() if isinstance(value, dict | list | str) else None
        case "keyed_hash":
            if isinstance(value, dict | list):
                return None
            done = _done_hash(value) if isinstance(value, str) else None
            shown = value[1] if isinstance(value, tuple) else json.dumps(value).strip('"')
            return done or keyed_hash(value if isinstance(value, str) else shown)
    wanted = _surrogate(plain, rule, value if isinstance(value, str) else "")
    if isinstance(wanted, re.Pattern) and isinstance(value, str) and wanted.fullmatch(value):
        return value
    return wanted


def _alike(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, re.Pattern):
        return isinstance(value, str) and wanted.fullmatch(value) is not None
    if isinstance(wanted, dict) and isinstance(value, dict):
        return wanted.keys() == value.keys() and all(_alike(wanted[name], value[name]) for name in wanted)
    if isinstance(wanted, list) and isinstance(value, list):
        return len(wanted) == len(value) and all(map(_alike, wanted, value))
    return type(wanted) is type(value) and bool(wanted == value)
