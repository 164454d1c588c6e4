"""A YAML file of named blocks (`version: 1`, and one mapping of names), and everything wrong with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from effaced.core.errors import ConfigurationError, Problem
from effaced.core.strict import suggest
from effaced.core.yaml.environment import fill_in
from effaced.core.yaml.file import Place, YamlFile

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")


class Reading:
    """One pass over one file; collects problems. `under` is the key that holds the blocks."""

    under: str
    block_has: str

    def __init__(self, file: YamlFile, environ: Mapping[str, str]) -> None:
        self.file = file
        self.environ = environ
        self.problems: list[Problem] = []
        self.unset: set[Place] = set()

    def require_no_problems(self) -> None:
        if self.problems:
            raise ConfigurationError(f"{self.file.path} can't be used.", problems=self.problems)

    def complain(self, place: Place, message: str) -> None:
        # A value that could not be filled in is wrong already; what follows from that is noise.
        if not any(place[:size] in self.unset for size in range(len(place) + 1)):
            self.problems.append(self.file.problem(place, message))

    def pass_on(self, place: Place, problems: Collection[Problem]) -> None:
        """Complain about what was found within a block, by dotted key."""
        for each in problems:
            inner: Place = tuple(
                int(part) if part.isdecimal() and len(part) <= 9 else part
                for part in each.where.split(".")
                if part
            )
            self.complain((*place, *inner), each.message)

    def blocks(self) -> list[tuple[str, dict[str, Any]]]:
        """The blocks with their names, `${NAME}` not filled in yet."""
        data, top = self.file.data, {"version", self.under}
        if not isinstance(data, dict):
            self.complain((), f"expected the keys `version: 1` and `{self.under}:`")
            return []
        for key in data:
            if key not in top:
                self.complain((str(key),), f"unknown key{suggest(str(key), top)}")
        if data.get("version") != 1 or data["version"] is True:
            self.complain(("version",), "expected 1, the only version there is")
        blocks = data.get(self.under)
        if not isinstance(blocks, dict):
            self.complain((self.under,), f"expected a mapping of names to {self.under} ({{}} for none)")
            return []
        for name, block in blocks.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                self.complain(
                    (self.under, str(name)),
                    "a name has small letters, digits, - and _, starts with a letter and is at most 63 long",
                )
            if not isinstance(block, dict):
                self.complain((self.under, str(name)), f"expected a mapping with {self.block_has}")
        return [(str(name), block) for name, block in blocks.items() if isinstance(block, dict)]

    def filled(self, place: Place, block: dict[str, Any]) -> dict[str, Any]:
        """The block with its variables filled in; what is not set is complained about by name."""
        filled: dict[str, Any] = fill_in(block, self.environ, self._note_unset, place)
        return filled

    def _note_unset(self, place: Place, message: str) -> None:
        self.complain(place, message)
        self.unset.add(place)
