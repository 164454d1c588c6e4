"""Paths into a JSON document, as the map names them: `$.name`, `$["a name"]`, `$.list[*].x`, `$[0].x`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from effaced.datamap.model.data_map import ColumnRule, JsonPath

_STEP = re.compile(
    r"""\.(?P<plain>[^\s.\[\]"'*$]+) | \["(?P<double>[^"]+)"\] | \['(?P<single>[^']+)'\]"""
    r"""| \[(?P<number>0|[1-9][0-9]{0,8})\] | (?P<every>\[\*\])""",
    re.VERBOSE,
)


def parse_path(text: str) -> JsonPath | None:
    """The steps of a path; None if the text is no path, or means the whole document."""
    steps: list[str | int | None] = []
    at = 1
    while text.startswith("$") and at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            return None
        if step["every"]:
            steps.append(None)
        elif step["number"]:
            steps.append(int(step["number"]))
        else:
            steps.append(step["plain"] or step["double"] or step["single"])
        at = step.end()
    return tuple(steps) or None


def show_path(path: JsonPath) -> str:
    """The path as it may be written in a map."""
    return "$" + "".join(_shown(step) for step in path)


def _shown(step: str | int | None) -> str:
    if step is None:
        return "[*]"
    if isinstance(step, int):
        return f"[{step}]"
    found = _STEP.fullmatch(f".{step}")
    return found[0] if found else f"['{step}']" if '"' in step else f'["{step}"]'


def overlap(one: JsonPath, other: JsonPath) -> bool:
    """Whether both can lead to the same value, or one into what the other changes.

    `[*]` and `[0]` at the same place do, whatever comes after them: one of them is enough.
    """
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            return not (isinstance(mine, str) or isinstance(theirs, str)) and None in (mine, theirs)
    return True


@dataclass(slots=True)
class Tree:
    """All paths of a column as a tree: the rule for this place, and the places below it."""

    rule: ColumnRule | None = None
    members: dict[str, Tree] = field(default_factory=dict)
    every: Tree | None = None
    elements: dict[int, Tree] = field(default_factory=dict)

    @property
    def in_arrays(self) -> bool:
        return self.every is not None or bool(self.elements)


def as_tree(paths: Iterable[tuple[JsonPath, ColumnRule]]) -> Tree:
    root = Tree()
    for path, rule in paths:
        place = root
        for step in path:
            if isinstance(step, str):
                place = place.members.setdefault(step, Tree())
            elif step is None:
                place.every = place.every or Tree()
                place = place.every
            else:
                place = place.elements.setdefault(step, Tree())
        place.rule = rule
    return root
