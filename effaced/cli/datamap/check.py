"""`effaced datamap check`: does the map fit the database?"""

from __future__ import annotations

import json
from pathlib import Path

import click

from effaced.cli.datamap.common import count, json_option, looking, map_option, planned
from effaced.core.config import Settings
from effaced.core.errors import ConfigurationError, Problem
from effaced.datamap.check.notes import find_notes
from effaced.datamap.load.file import load_map


@click.command("check")
@map_option
@click.option("--strict", is_flag=True, help="Fail for notes too.")
@json_option
@click.pass_obj
def check(settings: Settings, path: Path | None, strict: bool, as_json: bool) -> None:
    """Compare the data map with the live database and list everything that does not fit.

    Notes are what fits and still wants a look. Exit code 0 if an erasure could be carried out by this map,
    1 if not; with --strict also 1 if there are notes.
    """
    path = path or settings.datamap
    problems: tuple[Problem, ...] = ()
    notes: list[Problem] = []
    said = ""
    try:
        data_map = load_map(path)
        with looking(settings) as session:
            plan = planned(session, settings, data_map)
            notes = find_notes(session.connection(), plan.schema, data_map)
    except ConfigurationError as error:
        problems, said = error.problems or (Problem(str(path), error.message),), str(error)
    else:
        columns = sum(len(table.columns) for table in data_map.tables.values())
        said = (
            f"{path} fits the database: {count(len(data_map.tables), 'table')} with"
            f" {count(columns, 'column')} declared, {count(len(data_map.not_personal), 'table')} without"
            " personal data."
        )
        said = "\n".join([said, *(f"Note: {each}" for each in notes)])
    if as_json:
        lists = {"problems": _plain(problems), "notes": _plain(notes)}
        click.echo(json.dumps({"map": str(path), "fits": not problems, **lists}, indent=2))
    else:
        click.echo(said, err=bool(problems))
    if problems or (strict and notes):
        raise click.exceptions.Exit(1)


def _plain(found: list[Problem] | tuple[Problem, ...]) -> list[dict[str, str]]:
    return [{"where": each.where, "message": each.message} for each in found]
