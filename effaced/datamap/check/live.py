"""The map in force, compared with the database and with its file as they are now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from effaced.core.errors import ConfigurationError, Problem
from effaced.datamap.check.data_map import find_problems
from effaced.datamap.check.notes import find_notes
from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.schema.read import read_schema


@dataclass(frozen=True, slots=True)
class Findings:
    """What prevents erasing by a map, and what works but somebody should look at."""

    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...] = ()


def check_live(connection: Connection, data_map: DataMap) -> Findings:
    """Everything about the map and the live schema. Notes are about maps that fit."""
    schema = read_schema(connection, data_map.schemas)
    if problems := find_problems(connection, schema, data_map):
        return Findings(tuple(problems))
    return Findings((), tuple(find_notes(connection, schema, data_map)))


def findings_of(error: ConfigurationError) -> Findings:
    """Why there is no map in force."""
    return Findings(error.problems or (Problem("", error.message),))


def differs_from_file(data_map: DataMap, path: Path) -> bool:
    """Whether the file says something else by now; a process keeps the map that it began with."""
    try:
        return load_map(path).hash != data_map.hash
    except ConfigurationError:
        return True
