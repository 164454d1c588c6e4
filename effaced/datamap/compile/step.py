"""One statement of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnClause, ColumnElement, Delete, Select, TableClause, Update, update

from effaced.datamap.model.data_map import Action, Retained


@dataclass(frozen=True, slots=True)
class Step:
    """What happens in one table.

    `count_affected` counts the rows that `change`, if any, will touch; `count_remaining` those that it should
    have touched and has not. A step that is not `reported` only prepares another, which counts its rows.
    """

    name: str
    action: Action
    retained: tuple[Retained, ...]
    count_affected: Select[int]
    count_remaining: Select[int]
    change: Delete | Update | None
    owned: ColumnElement[bool]
    """Which rows it is about, before anything is changed."""
    where: ColumnElement[bool]
    """Which of them it has to change."""
    written: Mapping[ColumnClause[Any], ColumnElement[Any]] = field(default_factory=dict)
    scrubbed: Mapping[str, Select[int]] = field(default_factory=dict)
    """Per scrubbed column, in how many rows something is found, before anything is changed."""
    reported: bool = True

    @property
    def statement(self) -> Delete | Update | Select[int]:
        """What is run: the change, or, where nothing changes, the count of the rows it is about."""
        return self.count_affected if self.change is None else self.change

    @property
    def label(self) -> str:
        return f"{self.name} ({self.action})" if self.action is Action.DETACHED else self.name


def safe_update(table: TableClause) -> Update:
    """An UPDATE that never deletes another row, and never skips its own, because of a conflict.

    On SQLite a constraint can be declared ON CONFLICT REPLACE: the database would delete whoever has the
    value already; or IGNORE, and it would leave the cell as it is.
    """
    return update(table).prefix_with("OR ABORT", dialect="sqlite")
