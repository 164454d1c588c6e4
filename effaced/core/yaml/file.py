"""A YAML file whose every key still knows its line, so that a complaint can point at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from effaced.core.errors import ConfigurationError, Problem
from effaced.core.yaml.tree import read_tree

Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class YamlFile:
    """What a file says, and where it says it."""

    path: Path
    data: Any
    lines: Mapping[Place, int]

    def problem(self, place: Place, message: str) -> Problem:
        """A problem at that place, or at the nearest place around it that the file has."""
        known = place
        while known and known not in self.lines:
            known = known[:-1]
        name = ".".join(str(part) for part in place)
        where = f"{self.path}:{self.lines.get(known, 1)}"
        return Problem(where, f"{name}: {message}" if name else message)


def read_yaml(path: Path) -> YamlFile:
    """Read one file. Refuses what is not YAML and keys that are there twice, never quoting the file."""
    root = read_tree(path)
    places: list[tuple[Place, int]] = []
    unknown = False
    try:
        places = list(_walk(root, ())) if root is not None else []
        data = SafeConstructor().construct_document(root) if root is not None else None
    except (yaml.YAMLError, ValueError, RecursionError):
        unknown = True
    if unknown:
        # Raised out here so that no exception that quotes the file hangs on to this one.
        broken = Problem(f"{path}:1", "is not valid YAML: it holds a tag or a value that YAML does not know")
        raise ConfigurationError(f"{path} can't be used.", problems=[broken])
    file = YamlFile(path, data, dict(reversed(places)))
    _refuse_duplicate_keys(file, places)
    return file


def _refuse_duplicate_keys(file: YamlFile, places: list[tuple[Place, int]]) -> None:
    seen: dict[Place, int] = {}
    repeated: set[Place] = set()
    problems = []
    for place, line in places:
        if any(place[:size] in repeated for size in range(len(place))):
            continue  # said once, for the block as a whole
        if place in seen:
            repeated.add(place)
            where = f"{file.path}:{line}"
            name = ".".join(str(part) for part in place)
            problems.append(Problem(where, f"{name}: already there in line {seen[place]}"))
        seen.setdefault(place, line)
    if problems:
        raise ConfigurationError(f"{file.path} can't be used.", problems=problems)


def _walk(node: yaml.Node, place: Place) -> Iterator[tuple[Place, int]]:
    yield place, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = (*place, str(key.value))
            yield below, key.start_mark.line + 1
            # The value's own line would hide the key's, which is where people look.
            yield from (each for each in _walk(value, below) if each[0] != below)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _walk(value, (*place, index))
