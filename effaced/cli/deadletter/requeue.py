"""`effaced deadletter requeue`: retry a few dead letters, or a whole set with a progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from effaced.cli.deadletter import show
from effaced.cli.deadletter.selection import (
    ACTOR,
    JSON,
    REASON,
    YES,
    chosen,
    dead_letter_ids,
    filters,
    opened,
)
from effaced.cli.numbers import Number
from effaced.core.config import Settings
from effaced.core.db import Database
from effaced.core.errors import Conflict
from effaced.deadletters.arguments import as_uuid
from effaced.triage.redrive import PER_SECOND, advance, cancel_redrive, count_taken, start_redrive
from effaced.triage.redrive_read import (
    RedriveView,
    list_redrives,
    plain_redrive,
    plain_result,
    redrive_view,
)
from effaced.triage.retry import redrive

_POLL_SECONDS = 0.5


@click.command()
@click.argument("dead_letters", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that match the filters.")
@filters
@click.option("--force", is_flag=True, help="Also those whose retries are used up.")
@REASON
@click.option(
    "--per-second",
    default=PER_SECOND,
    show_default=True,
    type=Number(0, 1_000),
    help="With --all: how many calls per second; 0 for no limit.",
)
@click.option("--background", is_flag=True, help="With --all: let the scheduler do it.")
@YES
@JSON
@click.pass_obj
def requeue(
    settings: Settings,
    /,
    dead_letters: tuple[str, ...],
    everything: bool,
    force: bool,
    reason: str,
    per_second: float,
    background: bool,
    yes: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Retry the named dead letters, or with --all those that match the filters, at a limited rate.

    Ctrl-C cancels the rest of a set. If this process is killed, the scheduler or `effaced drain` continues.
    """
    ids = dead_letter_ids(dead_letters)
    if bool(ids) == everything or (ids and any(given.values())):
        raise click.UsageError("Give either ids of dead letters, or --all with filters.")
    with opened(settings) as database:
        if ids:
            with database.begin() as session:
                results = redrive(session, settings.keyring, ids, actor=ACTOR, reason=reason, force=force)
            show.print_json([plain_result(each) for each in results]) if as_json else show.print_results(
                results
            )
            return
        with database.read() as session:
            which = chosen(session, settings, given)
            number = count_taken(session, which)
        if not yes:
            letters = "dead letter" if number == 1 else "dead letters"
            click.confirm(f"{number:,} {letters} will be retried. Continue?", abort=True, err=True)
        with database.begin() as session:
            redrive_id = start_redrive(
                session,
                settings.keyring,
                which,
                actor=ACTOR,
                reason=reason,
                force=force,
                per_second=per_second or None,
            )
        if not background:
            _carry_out(database, redrive_id, quiet=as_json)
        with database.read() as session:
            found = redrive_view(session, redrive_id)
    show.print_json(plain_redrive(found)) if as_json else show.print_redrive(found)


@click.command()
@JSON
@click.pass_obj
def redrives(settings: Settings, as_json: bool) -> None:
    """Show the latest redrives and their progress."""
    with opened(settings) as database, database.read() as session:
        found = [redrive_view(session, each.id) for each in list_redrives(session, limit=20).items]
    if as_json:
        show.print_json([plain_redrive(each) for each in found])
    elif not found:
        click.echo("There were no redrives in the last 30 days.")
    for each in found if not as_json else []:
        show.print_redrive(each)


@click.command()
@click.argument("redrive_name", metavar="REDRIVE")
@click.pass_obj
def cancel(settings: Settings, redrive_name: str) -> None:
    """Cancel the rest of a redrive. What was requeued stays requeued."""
    redrive_id = as_uuid(redrive_name)
    if redrive_id is None:
        raise click.UsageError("`effaced deadletter redrives` shows the ids of redrives.")
    with opened(settings) as database:
        with database.begin() as session:
            cancel_redrive(session, redrive_id, actor=ACTOR)
        with database.read() as session:
            show.print_redrive(redrive_view(session, redrive_id))


def _carry_out(
    database: Database, redrive_id: UUID, *, quiet: bool, wait: Callable[[float], None] = time.sleep
) -> None:
    """Run the steps here until the redrive ends; the scheduler may run some of them too."""
    progress = Progress(
        TextColumn("Requeueing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=quiet,
    )
    try:
        with progress:
            bar = progress.add_task("", total=None)
            while (found := _read_redrive(database, redrive_id)).running:
                progress.update(bar, total=found.total, completed=found.done)
                if not advance(database, redrive_id):
                    wait(_POLL_SECONDS)
            progress.update(bar, total=found.total, completed=found.done)
    except KeyboardInterrupt:
        try:
            with database.begin() as session:
                cancel_redrive(session, redrive_id, actor=ACTOR)
        except Conflict:
            pass  # it had already ended


def _read_redrive(database: Database, redrive_id: UUID) -> RedriveView:
    with database.read() as session:
        return redrive_view(session, redrive_id)
