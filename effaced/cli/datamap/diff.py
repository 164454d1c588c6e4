"""`effaced datamap diff`: what would now be erased, changed or kept that was not before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import click

from effaced.cli.datamap.common import json_option, looking
from effaced.core.config import Settings
from effaced.core.errors import Problem
from effaced.datamap.check.data_map import find_gaps
from effaced.datamap.load.file import load_map
from effaced.datamap.schema.read import read_schema
from effaced.datamap.show.diff import Difference, compare


@click.command("diff")
@click.argument("old", type=click.Path(path_type=Path), required=False)
@click.argument("new", type=click.Path(path_type=Path), required=False)
@click.option("--live", is_flag=True, help="Compare one map with the live database instead.")
@json_option
@click.pass_obj
def diff(settings: Settings, old: Path | None, new: Path | None, live: bool, as_json: bool) -> None:
    """Show what the map NEW does differently from the map OLD, the most serious first.

    NEW defaults to the map in the settings. With --live, one map (OLD, or that in the settings) is
    compared with the database: what it does not declare, and what is gone.

    Exit code 0 if there is no difference in effect, 1 if there is one, 2 if a map can't be read.
    """
    if live:
        if new is not None:
            raise click.UsageError("--live compares one map with the database; name only one.")
        found = _gaps(settings, old or settings.datamap)
        said = [{"where": each.where, "what": each.message} for each in found]
        lines = [str(each) for each in found]
        same = "The map names every table and column of the database, and no other."
    else:
        if old is None:
            raise click.UsageError("name the map to compare with, or --live.")
        differences = compare(load_map(old), load_map(new or settings.datamap))
        said = [{"group": each.group.value, "where": each.where, "what": each.what} for each in differences]
        lines = _format_differences(differences)
        same = "Both maps do the same."
    if as_json:
        click.echo(json.dumps(said, indent=2))
    else:
        click.echo("\n".join(lines) if lines else same)
    if said:
        raise click.exceptions.Exit(1)


def _gaps(settings: Settings, path: Path) -> list[Problem]:
    data_map = load_map(path)
    with looking(settings) as session:
        return find_gaps(read_schema(session.connection(), data_map.schemas), data_map)


def _format_differences(differences: Sequence[Difference]) -> list[str]:
    lines = []
    for group, found in groupby(differences, key=lambda each: each.group):
        lines.append(f"{group.value}:")
        lines += [f"  {each.where}: {each.what}" for each in found]
    return lines
