"""`effaced datamap draft`: a first data map from the live database."""

from __future__ import annotations

from pathlib import Path

import click

from effaced.cli.datamap.common import count, looking, write_out
from effaced.core.config import Settings
from effaced.core.errors import ConfigurationError
from effaced.draft.draft import Draft, draft_map
from effaced.draft.samples import ROWS


@click.command("draft")
@click.option("--output", type=click.Path(path_type=Path), help="The file to write. Default: the terminal.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--schema", "schemas", multiple=True, help="A PostgreSQL schema to look at; may be repeated.")
@click.option(
    "--subject", "subjects", multiple=True, help="A table of people, instead of a guess; may be repeated."
)
@click.option("--sample-rows", type=click.IntRange(1, 10_000), default=ROWS, show_default=True,
              help="How many rows of each table to look at, at most.")  # fmt: skip
@click.option("--no-sample", is_flag=True, help="Look at no row at all, only at names and types.")
@click.pass_obj
def draft(
    settings: Settings,
    output: Path | None,
    force: bool,
    schemas: tuple[str, ...],
    subjects: tuple[str, ...],
    sample_rows: int,
    no_sample: bool,
) -> None:
    """Write a first data map from the live database: what can be guessed, with the reason on each line.

    Of the rows it looks at, nothing is printed or stored. What is unsure is marked `review:`, and
    `effaced datamap check` refuses the map until a person has decided it.
    """
    if output is not None and (output.is_dir() or not output.parent.is_dir()):
        raise ConfigurationError(f"--output: {output} is a folder, or in a folder that is not there.")
    if output is not None and output.exists() and not force:
        raise ConfigurationError(f"--output: {output} is there already. Name another file, or add --force.")
    with looking(settings) as session:
        drafted = draft_map(
            session.connection(),
            schemas=schemas,
            subjects=subjects,
            sample_rows=0 if no_sample else sample_rows,
        )
    if output is None:
        click.echo(drafted.text, nl=False)
    else:
        write_out(output, drafted.text)
    click.echo(_summary(drafted, output), err=True)


def _summary(drafted: Draft, output: Path | None) -> str:
    people = ", ".join(drafted.people)
    left = drafted.tables - drafted.linked - drafted.not_personal
    said = []
    if drafted.unread:
        tables = ", ".join(drafted.unread)
        said = [f"No row could be read of {tables}: only names and types speak there. Check permissions."]
    said += [
        f"Guessed from {count(drafted.tables, 'table')}: people are in {people}; {drafted.linked} hold"
        f" something about them, {drafted.not_personal} nothing{_tables_left(left)}.",
        f"{count(drafted.reviews, 'decision')} left to you, marked `review:`."
        if drafted.reviews
        else "Nothing is marked `review:`, but all of it is guessed.",
        f"Next: read it, decide, then `effaced datamap check --map {output or 'FILE'}`.",
    ]
    return "\n".join(said)


def _tables_left(number: int) -> str:
    return f", {number} need{'s' if number == 1 else ''} a look" if number else ""
