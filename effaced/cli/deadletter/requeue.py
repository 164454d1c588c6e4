"""`effaced deadletter requeue`: another try, for a few letters or for a whole set, with its progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from effaced.cli.deadletter import show
from effaced.cli.deadletter.selection import ACTOR, chosen, filters, letter_ids, opened
from effaced.core.config import Settings
from effaced.core.db import Database
from effaced.core.errors import Conflict
from effaced.deadletters.context import as_uuid
from effaced.triage.redrive import PER_SECOND, advance, cancel_redrive, count_taken, start_redrive
from effaced.triage.redrive_read import (
    RedriveView,
    list_redrives,
    plain_redrive,
    plain_result,
    redrive_view,
)
from effaced.triage.retry import redrive

_LOOK_EVERY = 0.5
_JSON = click.option("--json", "as_json", is_flag=True, help="For programs.")


@click.command()
@click.argument("letters", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that fit the filter.")
@filters
@click.option("--force", is_flag=True, help="Also those whose tries are used up.")
@click.option("--reason", required=True, help="What has changed; it is kept in the audit trail's notes.")
@click.option(
    "--per-second",
    default=PER_SECOND,
    show_default=True,
    type=click.FloatRange(0, 1_000),
    help="With --all: how many may be called in a second; 0 lets them all go at once.",
)
@click.option("--background", is_flag=True, help="With --all: leave it to the scheduler.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@_JSON
@click.pass_obj
def requeue(
    settings: Settings,
    /,
    letters: tuple[str, ...],
    everything: bool,
    force: bool,
    reason: str,
    per_second: float,
    background: bool,
    yes: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Have letters tried again: those named, or with --all those of the filter, at a bearable pace.

    Ctrl-C cancels a set where it is: what was requeued stays so. If this process is killed, the scheduler or
    `effaced drain` goes on with it.
    """
    ids = letter_ids(letters)
    if bool(ids) == everything or (ids and any(given.values())):
        raise click.UsageError("Name letters, or say --all with filters.")
    with opened(settings) as database:
        if ids:
            with database.begin() as session:
                results = redrive(session, settings.keyring, ids, actor=ACTOR, reason=reason, force=force)
            show.as_json([plain_result(each) for each in results]) if as_json else show.results(results)
            return
        with database.read() as session:
            which = chosen(session, settings, given)
            number = count_taken(session, which)
        if not yes:
            click.confirm(f"{number:,} dead letters will be tried again. Go on?", abort=True, err=True)
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
    show.as_json(plain_redrive(found)) if as_json else show.redrive(found)


@click.command()
@_JSON
@click.pass_obj
def redrives(settings: Settings, as_json: bool) -> None:
    """Show the last redrives of whole sets, and how far they are."""
    with opened(settings) as database, database.read() as session:
        found = [redrive_view(session, each.id) for each in list_redrives(session, limit=20).items]
    if as_json:
        show.as_json([plain_redrive(each) for each in found])
    elif not found:
        click.echo("No set of dead letters was tried again within the last 30 days.")
    for each in found if not as_json else []:
        show.redrive(each)


@click.command()
@click.argument("redrive_name", metavar="REDRIVE")
@click.pass_obj
def cancel(settings: Settings, redrive_name: str) -> None:
    """End a redrive where it is. What was requeued stays so, the other letters stay as they were."""
    redrive_id = as_uuid(redrive_name)
    if redrive_id is None:
        raise click.UsageError("`effaced deadletter redrives` shows the ids of redrives.")
    with opened(settings) as database:
        with database.begin() as session:
            cancel_redrive(session, redrive_id, actor=ACTOR)
        with database.read() as session:
            show.redrive(redrive_view(session, redrive_id))


def _carry_out(
    database: Database, redrive_id: UUID, *, quiet: bool, wait: Callable[[float], None] = time.sleep
) -> None:
    """Make the steps here, as long as it takes; the scheduler may make some of them too."""
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
            while (found := _look(database, redrive_id)).running:
                progress.update(bar, total=found.total, completed=found.done)
                if not advance(database, redrive_id):
                    wait(_LOOK_EVERY)
            progress.update(bar, total=found.total, completed=found.done)
    except KeyboardInterrupt:
        try:
            with database.begin() as session:
                cancel_redrive(session, redrive_id, actor=ACTOR)
        except Conflict:
            pass  # it had come to its end


def _look(database: Database, redrive_id: UUID) -> RedriveView:
    with database.read() as session:
        return redrive_view(session, redrive_id)
