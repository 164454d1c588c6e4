"""`effaced datamap show`: what the map says, and what it means for one person."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from effaced.cli.datamap.common import count, json_option, looking, map_option, planned
from effaced.cli.terminal import terminal
from effaced.core.config import Settings
from effaced.core.errors import NotFound, Refused
from effaced.datamap.compile.step import Step
from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import Action, DataMap
from effaced.datamap.model.wording import (
    ROW_ACTIONS,
    describe_links,
    describe_rows,
    describe_rule,
    group_by_treatment,
)
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.erase import TableEffect, count_kept_rows, dry_run
from effaced.datamap.run.samples import Row, sample
from effaced.datamap.run.subject import find_subject
from effaced.resolvers.load import load_resolvers
from effaced.resolvers.registry import split_by_reference


@dataclass(frozen=True, slots=True)
class DryRun:
    """What erasing one person would do now. `called` is None where there is no file of systems."""

    plan: ErasurePlan
    effects: Sequence[tuple[Step, TableEffect]]
    kept: Sequence[int]
    samples: Sequence[Sequence[Row]] | None
    called: list[str] | None
    unknown_to: list[str]


@click.command("show")
@map_option
@click.option("--subject", "subject_id", help="Count this person's rows, as an erasure would touch them now.")
@click.option("--type", "people", help="Which kind of people the id is of, if the map has several.")
@click.option("--samples", is_flag=True, help="Show up to three of the rows per table, masked.")
@json_option
@click.pass_obj
def show(
    settings: Settings,
    path: Path | None,
    subject_id: str | None,
    people: str | None,
    samples: bool,
    as_json: bool,
) -> None:
    """Show what the data map says, table by table. With --subject, what it means for one person.

    Nothing is changed.
    """
    data_map = load_map(path or settings.datamap)
    if subject_id is None and (samples or people):
        raise click.UsageError("--samples and --type go with --subject.")
    if subject_id is None:
        click.echo(json.dumps(_plain_map(data_map), indent=2)) if as_json else _print_map(data_map)
        return
    found = _try_out(settings, data_map, subject_id, people, with_samples=samples)
    click.echo(json.dumps(_plain_run(found), indent=2)) if as_json else _print_run(found)


def _try_out(
    settings: Settings, data_map: DataMap, subject_id: str, people: str | None, *, with_samples: bool
) -> DryRun:
    with looking(settings) as session:
        plan = planned(session, settings, data_map)
        try:
            plan = plan.for_people(people)
        except Refused as error:
            raise click.BadParameter(error.problems[0].message, param_hint="--type") from None
        subject = find_subject(session, plan, subject_id)
        if subject is None:
            raise NotFound(f"--subject: table '{plan.data_map.subject}' has no such person.")
        effects = list(zip(plan.reported_steps, dry_run(session, plan, subject_id), strict=True))
        kept = count_kept_rows(session, plan, subject_id)
        counted = [effect.rows for _, effect in effects]
        taken = sample(session, plan, subject_id, counted=counted) if with_samples else None
    if not settings.resolvers.exists():
        return DryRun(plan, effects, kept, taken, None, [])
    known, strangers = split_by_reference(load_resolvers(settings, data_map), subject.refs)
    return DryRun(
        plan, effects, kept, taken, [each.name for each in known], [each.name for each in strangers]
    )


# --- for people ---


def _grid(data_map: DataMap, *headings: str) -> Table:
    table = Table(title=f"Data map {data_map.hash[:12]}", title_justify="left", show_lines=True)
    for heading in headings:
        table.add_column(heading, overflow="fold", justify="right" if heading == "Rows" else "left")
    return table


def _print_map(data_map: DataMap) -> None:
    table = _grid(data_map, "Table", "Belongs", "Rows are", "Columns")
    for name, rule in data_map.tables.items():
        ways = "\n".join(describe_links(data_map, rule)) or "no link leads to anybody"
        columns = "\n".join(
            f"{each.words}: {', '.join(each.columns)}" for each in group_by_treatment(rule.columns)
        )
        # As Text, so that a bracket in a name is a bracket.
        table.add_row(*(Text(cell) for cell in (name, ways, describe_rows(rule), columns)))
    for name in data_map.not_personal:
        table.add_row(Text(name), "", "not personal", "")
    terminal().print(table)


def _print_run(found: DryRun) -> None:
    data_map = found.plan.data_map
    table = _grid(data_map, "Table", "Rows", "Rows are", "What happens", "Retained, why and until when")
    for (step, effect), kept in zip(found.effects, found.kept, strict=True):
        cells = (
            effect.table,
            _rows(effect),
            ROW_ACTIONS[effect.action],
            _describe_treatment(data_map, step),
            _kept(effect, kept),
        )
        table.add_row(*(Text(cell) for cell in cells))
    terminal().print(table)
    if found.samples is not None:
        _print_samples(found, found.samples)
    if found.called is None:
        click.echo("Systems that would be called: not known, there is no file of resolvers.")
    else:
        click.echo(f"Systems that would be called: {', '.join(found.called) or 'none'}")
    if found.unknown_to:
        click.echo(f"Without a reference to this person: {', '.join(found.unknown_to)}")


def _rows(effect: TableEffect) -> str:
    found = [f"{name}: found in {rows:,}" for name, rows in effect.scrubbed.items()]
    return "\n".join([f"{effect.rows:,}", *found])


def _describe_treatment(data_map: DataMap, step: Step) -> str:
    """What the step does to the table's columns, a line for each treatment."""
    rule = data_map.tables[step.name]
    if step.action is Action.DETACHED:
        changed = {column.name for column in step.written}
        mention = next(each for each in rule.mentions if set(each.columns) == changed)
        return "\n".join(
            f"{each.words}: {', '.join(each.columns)}" for each in group_by_treatment(mention.columns)
        )
    return "\n".join(f"{each.words}: {', '.join(each.columns)}" for each in group_by_treatment(rule.columns))


def _kept(effect: TableEffect, rows: int) -> str:
    if not rows:
        return ""
    reasons: dict[str, list[str]] = {}
    for each in effect.retained:
        reason = f"{each.basis}, until {each.until}" if each.until else each.basis
        reasons.setdefault(reason, []).append(each.column)
    told = (f"{', '.join(columns)}: {reason}" for reason, columns in reasons.items())
    return "\n".join([f"in {count(rows, 'row')}", *told])


def _print_samples(found: DryRun, samples: Sequence[Sequence[Row]]) -> None:
    for (_, effect), rows in zip(found.effects, samples, strict=True):
        if rows:
            shown = f"{len(rows)} of {effect.rows:,}" if effect.rows > len(rows) else str(len(rows))
            click.echo(f"\n{effect.table}, {ROW_ACTIONS[effect.action]}: {shown}, masked")
        for row in rows:
            click.echo("  " + ("  ".join(f"{name}: {cell}" for name, cell in row.items()) or "(empty)"))
    click.echo()


# --- for programs ---


def _plain_map(data_map: DataMap) -> dict[str, Any]:
    return {
        "hash": data_map.hash,
        "people": [{"type": each.name, "table": each.table, "key": each.key} for each in data_map.people],
        "tables": [
            {
                "table": name,
                "rows": describe_rows(rule),
                "belongs": describe_links(data_map, rule),
                "columns": {column: describe_rule(each) for column, each in rule.columns.items()},
            }
            for name, rule in data_map.tables.items()
        ],
        "not_personal": sorted(data_map.not_personal),
    }


def _plain_run(found: DryRun) -> dict[str, Any]:
    tables = [
        {
            "table": effect.table,
            "action": effect.action.value,
            "rows": effect.rows,
            "rows_kept": kept,
            "retained": [each._asdict() for each in effect.retained],
            "scrubbed": dict(effect.scrubbed),
        }
        for (_, effect), kept in zip(found.effects, found.kept, strict=True)
    ]
    for table, rows in zip(tables, found.samples or (), strict=False):
        table["samples"] = list(rows)
    return {
        "hash": found.plan.data_map.hash,
        "type": found.plan.data_map.people[0].name,
        "tables": tables,
        "systems": {"called": found.called, "without_reference": found.unknown_to},
    }
