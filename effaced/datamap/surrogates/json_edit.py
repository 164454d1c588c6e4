"""Change the values at some paths of a JSON text, and leave everything else exactly as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from effaced.datamap.model.data_map import ColumnRule
from effaced.datamap.model.json_paths import Tree

REMOVED = object()
"""What `change` answers for a member or an element that goes."""
Change = Callable[[ColumnRule, Any], Any]
_BLANK = re.compile(r"[ \t\n\r]*")


def edit(text: str, tree: Tree, change: Change) -> str:
    """The text with `change(rule, value)` in place of each value that the tree leads to.

    `change` returns a new value, the very same one to leave it alone, or REMOVED. ValueError for no JSON.
    """
    editor = _Editor(text, change)
    try:
        start = editor.blank(0)
        edited, end = editor.value(start, tree)
        if editor.blank(end) != len(text):
            raise ValueError("more than one value")
    except (IndexError, RecursionError):
        raise ValueError("no JSON") from None
    return text if edited is None else edited


def _refuse(_: str) -> Any:
    raise ValueError("no number of JSON's")


class Number(str):
    """A number as it is written, so that none is too big and none is rounded."""


_decoder = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_refuse)


def _to_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Half a pair of code units can be escaped in JSON, and kept nowhere else.
    return (
        text if text.isprintable() or text.encode("utf-8", "replace").decode() == text else json.dumps(value)
    )


@dataclass(slots=True)
class _Editor:
    text: str
    change: Change

    def blank(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int, tree: Tree | None) -> tuple[str | None, int]:
        """The value's new text ("" to remove it, None to leave it as it is), and where the value ends."""
        if tree is not None and tree.members and self.text[at] == "{":
            return self._parts(at, "}", lambda place, _: self._member(place, tree))
        if tree is not None and tree.in_arrays and self.text[at] == "[":
            return self._parts(
                at, "]", lambda place, number: self.value(place, tree.every or tree.elements.get(number))
            )
        value, end = _decoder.raw_decode(self.text, at)
        if tree is None or tree.rule is None:
            return None, end
        changed = self.change(tree.rule, value)
        if changed is value:
            return None, end
        return "" if changed is REMOVED else _to_json(changed), end

    def _parts(
        self, at: int, closing: str, read: Callable[[int, int], tuple[str | None, int]]
    ) -> tuple[str | None, int]:
        """Everything up to the closing bracket."""
        parts: list[str] = []
        same, number, place = True, 0, self.blank(at + 1)
        while self.text[place] != closing or number:
            part, end = read(place, number)
            same = same and part is None
            parts.append(self.text[place:end] if part is None else part)
            number += 1
            place = self.blank(end)
            if self.text[place] == closing:
                break
            if self.text[place] != ",":
                raise ValueError("a comma is missing")
            place = self.blank(place + 1)
        whole = f"{self.text[at]}{', '.join(filter(None, parts))}{closing}"
        return None if same else whole, place + 1

    def _member(self, at: int, tree: Tree) -> tuple[str | None, int]:
        if self.text[at] != '"':
            raise ValueError("a name is missing")
        name, end = _decoder.raw_decode(self.text, at)
        colon = self.blank(end)
        if self.text[colon] != ":":
            raise ValueError("a colon is missing")
        start = self.blank(colon + 1)
        part, end = self.value(start, tree.members.get(name))
        return self.text[at:start] + part if part else part, end
