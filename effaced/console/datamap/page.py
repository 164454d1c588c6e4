"""The data map, put together for its page: people, tables, what happens to them, what is amiss."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from effaced.core.errors import ConfigurationError, Problem
from effaced.datamap.check.live import check_live, differs_from_file, findings_of
from effaced.datamap.model.data_map import Action, DataMap, Strategy, SubjectRule, TableRule
from effaced.datamap.model.wording import Treatment, describe_links, describe_people, group_by_treatment
from effaced.datamap.show.subset import find_tables


@dataclass(frozen=True, slots=True)
class TableView:
    """One table. `action` is None where no row is anybody's and rows only mention people."""

    name: str
    whose: str
    action: Action | None
    belongs: tuple[str, ...]
    fates: tuple[Treatment, ...]


@dataclass(frozen=True, slots=True)
class MapView:
    """All that the page shows. Without a `hash` there is no map, and `problems` say why."""

    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...] = ()
    hash: str = ""
    file_differs: bool = False
    people: tuple[SubjectRule, ...] = ()
    tables: tuple[TableView, ...] = ()
    not_personal: tuple[str, ...] = ()
    find: str = ""
    """What somebody looks for; `shown` are the tables that have it."""
    found: frozenset[str] = frozenset()

    @property
    def shown(self) -> list[TableView]:
        return [each for each in self.tables if not self.find or each.name in self.found]

    @property
    def others_shown(self) -> list[str]:
        return [each for each in self.not_personal if not self.find or each in self.found]

    @property
    def columns(self) -> dict[Strategy, int]:
        """How many columns share a strategy, in the order of the strategies."""
        counted = Counter(
            each.strategy for table in self.tables for each in table.fates for _ in each.columns
        )
        return {strategy: counted[strategy] for strategy in Strategy if counted[strategy]}


def view_of(connection: Connection, data_map: DataMap, path: Path, find: str) -> MapView:
    """The map in force, checked against the database as it is now."""
    findings = check_live(connection, data_map)
    return MapView(
        problems=findings.problems,
        notes=findings.notes,
        hash=data_map.hash,
        file_differs=differs_from_file(data_map, path),
        people=data_map.people,
        tables=tuple(_table(data_map, rule) for rule in data_map.tables.values()),
        not_personal=tuple(sorted(data_map.not_personal)),
        find=find,
        found=frozenset(find_tables(data_map, find)),
    )


def unreadable(error: ConfigurationError) -> MapView:
    return MapView(problems=findings_of(error).problems)


def _table(data_map: DataMap, rule: TableRule) -> TableView:
    return TableView(
        name=rule.name,
        whose=describe_people(data_map, rule.name),
        action=rule.action if rule.owned else None,
        belongs=tuple(describe_links(data_map, rule)),
        fates=tuple(group_by_treatment(rule.columns)),
    )
