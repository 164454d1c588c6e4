"""Read a YAML tree and go on after a mistake, so that all mistakes are reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from effaced.core.errors import Problem
from effaced.core.strict import LONGEST_COMPARED

_NULL = "tag:yaml.org,2002:null"


@dataclass(slots=True)
class Reader:
    """A YAML file's node tree and the problems found in it so far.

    Scalars are taken as they are written: a column may be called `on`, `no` or `null`.
    """

    path: str
    found: set[tuple[int, str]] = field(default_factory=set)

    def report(self, at: Node | int, message: str) -> None:
        """Record a problem at a node or line."""
        line = at if isinstance(at, int) else line_of(at)
        # A node that an alias shows twice is still one mistake.
        self.found.add((line, message))

    def problems(self) -> list[Problem]:
        """The problems found so far, by line."""
        return [Problem(f"{self.path}:{line}", message) for line, message in sorted(self.found)]

    def mapping(self, node: Node | None, what: str) -> dict[str, tuple[ScalarNode, Node]]:
        """Key -> (key node, value node); empty if the map leaves it out.

        A key that is there twice is refused: YAML would keep the last.
        """
        if node is None:
            return {}
        if not isinstance(node, MappingNode):
            self.report(node, f"{what} must be a mapping of names to values")
            return {}
        entries: dict[str, tuple[ScalarNode, Node]] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or not key.value.strip():
                self.report(key, f"{what}: a name must be a plain word")
            elif key.value in entries:
                self.report(key, f"{what}: '{key.value}' is there twice")
            else:
                entries[key.value] = (key, value)
        return entries

    def fields(
        self, node: Node, what: str, allowed: Iterable[str], required: Iterable[str] = ()
    ) -> dict[str, Node]:
        """A mapping whose keys are known in advance; others are refused with the closest known one."""
        entries = self.mapping(node, what)
        known = list(allowed)
        for name, (key, _) in entries.items():
            if name not in known:
                self.report(key, f"{what}: unknown key '{name}'{did_you_mean(name, known)}")
        if isinstance(node, MappingNode):
            for name in required:
                if name not in entries:
                    self.report(node, f"{what}: '{name}' is missing")
        return {name: value for name, (_, value) in entries.items() if name in known}

    def text(self, node: Node, what: str) -> str | None:
        """A scalar's text, which must not be empty; None after reporting a problem."""
        if not isinstance(node, ScalarNode) or is_null(node) or not node.value.strip():
            self.report(node, f"{what} must be a text")
            return None
        return str(node.value)

    def texts(self, node: Node | None, what: str) -> Iterator[tuple[str, Node]]:
        """The texts of a list; none if the map leaves it out."""
        if node is None:
            return
        if not isinstance(node, SequenceNode):
            self.report(node, f"{what} must be a list")
            return
        for item in node.value:
            value = self.text(item, f"{what}: each item")
            if value is not None:
                yield value, item

    def word(self, node: Node, what: str, allowed: Iterable[str]) -> str | None:
        """One of these words; None after reporting a problem."""
        known = list(allowed)
        value = str(node.value) if isinstance(node, ScalarNode) else None
        if value not in known:
            self.report(node, f"{what} must be {one_of(known)}{did_you_mean(value or '', known)}")
            return None
        return value


def line_of(node: Node) -> int:
    return int(node.start_mark.line) + 1


def is_null(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == _NULL


def one_of(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean '...'?` if one of the known words is close, else an empty text."""
    near = get_close_matches(word, list(known), 1) if len(word) <= LONGEST_COMPARED else []
    return f"; did you mean '{near[0]}'?" if near else ""
