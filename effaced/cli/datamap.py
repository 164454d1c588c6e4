"""`effaced datamap`: does the map fit the database, and what does it say?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlalchemy.orm import Session

from effaced import clock
from effaced.config import Settings
from effaced.datamap.erase import dry_run
from effaced.datamap.load import load_map
from effaced.datamap.model import DataMap, Strategy, TableRule
from effaced.datamap.plan import plan_erasure
from effaced.datamap.subject import find_subject
from effaced.db import Database
from effaced.errors import ConfigurationError, NotFound

_map_option = click.option(
    "--map",
    "path",
    type=click.Path(path_type=Path),
    help="The data map to read instead of the one in the settings.",
)


@click.group("datamap")
def datamap() -> None:
    """The data map: which table holds what about whom, and what an erasure does to it."""


@datamap.command("check")
@_map_option
@click.pass_obj
def check(settings: Settings, path: Path | None) -> None:
    """Compare the data map with the live database and list everything that does not fit.

    Exit code 0 if an erasure could be carried out by this map, 1 if not.
    """
    path = path or settings.datamap
    try:
        data_map = load_map(path)
        with _looking(settings) as session:
            plan_erasure(session.connection(), data_map)
    except ConfigurationError as error:
        click.echo(str(error), err=True)
        raise click.exceptions.Exit(1) from None
    columns = sum(len(table.columns) for table in data_map.tables.values())
    click.echo(
        f"{path} fits the database: {_count(len(data_map.tables), 'table')} with {_count(columns, 'column')}"
        f" declared, {_count(len(data_map.not_personal), 'table')} without personal data."
    )
    for place in _ended(data_map):
        click.echo(f"The retention of {place} has ended; say in the map what happens to it now.")


@datamap.command("show")
@_map_option
@click.option("--subject", "subject_id", help="Count this person's rows, as an erasure would touch them now.")
@click.pass_obj
def show(settings: Settings, path: Path | None, subject_id: str | None) -> None:
    """Show what the data map says, table by table. With --subject, what it means for one person.

    Nothing is changed.
    """
    data_map = load_map(path or settings.datamap)
    if subject_id is None:
        Console().print(_table(data_map, list(data_map.tables), None))
        return
    with _looking(settings) as session:
        plan = plan_erasure(session.connection(), data_map)
        if find_subject(session, plan, subject_id) is None:
            raise NotFound(f"--subject: table '{data_map.subject}' has no such person.")
        rows = {effect.table: effect.rows for effect in dry_run(session, plan, subject_id)}
    Console().print(_table(data_map, list(rows), rows))


@contextmanager
def _looking(settings: Settings) -> Iterator[Session]:
    database = Database(settings.database_url)
    try:
        with database.read() as session:
            yield session
    finally:
        database.dispose()


def _table(data_map: DataMap, names: list[str], rows: dict[str, int] | None) -> Table:
    table = Table(title=f"Data map {data_map.hash[:12]}", title_justify="left", show_lines=True)
    for heading in ("Table", "Link path", "Rows are", "Columns"):
        table.add_column(heading, overflow="fold")
    if rows is not None:
        table.add_column("Rows", justify="right")
    for name in names:
        rule = data_map.tables[name]
        cells = [name, _ways(data_map, name), rule.action.value, _columns(rule)]
        # As Text, so that a bracket in a name is a bracket.
        table.add_row(*(Text(cell) for cell in cells + ([str(rows[name])] if rows is not None else [])))
    for name in data_map.not_personal if rows is None else ():
        table.add_row(Text(name), "", "not personal", "")
    return table


def _ways(data_map: DataMap, name: str) -> str:
    if name == data_map.subject:
        return f"its key {', '.join(data_map.key)}"
    ways = [" -> ".join(way[1:]) for way in data_map.paths(name)]
    return "\n".join(dict.fromkeys(ways)) or "no link leads to the person"


def _columns(rule: TableRule) -> str:
    """One line per fate, with the columns that share it."""
    fates: dict[tuple[int, str], list[str]] = {}
    for name, column in rule.columns.items():
        fate = column.strategy.value.replace("_", " ")
        if column.surrogate:
            fate += f" ({column.surrogate})"
        elif column.basis:
            fate += f" ({column.basis}{_end(column.until)})"
        fates.setdefault((list(Strategy).index(column.strategy), fate), []).append(name)
    return "\n".join(f"{fate}: {', '.join(names)}" for (_, fate), names in sorted(fates.items()))


def _end(until: date | None) -> str:
    if until is None:
        return ""
    return f"; until {until}, which is over" if _over(until) else f"; until {until}"


def _ended(data_map: DataMap) -> list[str]:
    return [
        f"{table.name}.{name}"
        for table in data_map.tables.values()
        for name, column in table.columns.items()
        if column.until and _over(column.until)
    ]


def _over(until: date) -> bool:
    return until < clock.now().date()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
