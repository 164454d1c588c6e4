"""`effaced deadletter archive, purge, evict, summaries`: what happens to settled dead letters."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import click

from effaced.audit.notes import write_note
from effaced.cli.deadletter import show
from effaced.cli.deadletter.selection import ACTOR, JSON, YES, dead_letter_ids, opened
from effaced.core.config import Settings
from effaced.core.db import Database
from effaced.core.errors import NotFound
from effaced.deadletters.archive import MAX_ARCHIVED, archive_by_id, archive_settled, count_archivable
from effaced.deadletters.arguments import MAX_DAYS, as_uuid
from effaced.deadletters.data import DLQCompressedStatus
from effaced.deadletters.purge import count_evictable, count_purgeable
from effaced.deadletters.purge import evict as evict_archived
from effaced.deadletters.purge import purge as purge_archived
from effaced.deadletters.summaries import SUMMARY_MOVES, set_summary_status, summary_totals
from effaced.deadletters.summaries import summaries as find_summaries
from effaced.model import DeadLetterDomain

_DAYS = click.IntRange(0, MAX_DAYS)
_REMOVAL_REASON = click.option("--reason", help="Why; required to remove anything, and kept as a note.")
_PREVIEW = click.option("--preview", is_flag=True, help="Only show how many would be removed.")
_DOMAIN = click.option(
    "--domain", type=click.Choice([each.value for each in DeadLetterDomain]), help="Only of this domain."
)


@click.command()
@click.argument("dead_letters", metavar="[ID]...", nargs=-1)
@click.option("--older-than-days", type=_DAYS, help="Those settled at least that long ago.")
@YES
@click.pass_obj
def archive(
    settings: Settings, dead_letters: tuple[str, ...], older_than_days: int | None, yes: bool
) -> None:
    """Archive settled dead letters. The rows stay; the scheduler does this after 30 days."""
    ids = _ids_or_age(dead_letters, older_than_days)
    with opened(settings) as database:
        if older_than_days is None:
            with database.begin() as session:
                count = archive_by_id(session, ids, actor=ACTOR)
        else:
            count = _archive_by_age(database, timedelta(days=older_than_days), yes=yes)
    left = len(ids) - count
    click.echo(f"Archived {count:,}." + (f" Left alone because not settled: {left}." if ids and left else ""))


@click.command()
@click.argument("dead_letters", metavar="[ID]...", nargs=-1)
@click.option(
    "--older-than-days", type=_DAYS, help="Those archived at least that long ago; 0 means all of them."
)
@_REMOVAL_REASON
@_PREVIEW
@YES
@click.pass_obj
def purge(
    settings: Settings,
    dead_letters: tuple[str, ...],
    older_than_days: int | None,
    reason: str | None,
    preview: bool,
    yes: bool,
) -> None:
    """Remove archived dead letters and their notes for good, by age or by id."""
    ids = _ids_or_age(dead_letters, older_than_days) or None
    with opened(settings) as database:
        with database.read() as session:
            due = count_purgeable(session, ids=ids, older_than_days=older_than_days)
        reason = _confirm_removal(due, reason, preview=preview, yes=yes)
        if reason is None:
            return
        with database.begin() as session:
            note = write_note(session, settings.keyring, reason, author=ACTOR)
            count = purge_archived(
                session, ids=ids, older_than_days=older_than_days, expected=due, actor=ACTOR, note=note
            )
    click.echo(f"Removed {count:,}.")


@click.command()
@click.option("--count", required=True, type=click.IntRange(1), help="How many, the oldest first.")
@_DOMAIN
@click.option("--compress", is_flag=True, help="Keep a summary of each kind: see `summaries`.")
@_REMOVAL_REASON
@_PREVIEW
@YES
@click.pass_obj
def evict(
    settings: Settings,
    count: int,
    domain: str | None,
    compress: bool,
    reason: str | None,
    preview: bool,
    yes: bool,
) -> None:
    """Remove the oldest archived dead letters for good; others are never evicted."""
    of = DeadLetterDomain(domain) if domain else None
    with opened(settings) as database:
        with database.read() as session:
            due = count_evictable(session, count, of)
        reason = _confirm_removal(due, reason, preview=preview, yes=yes)
        if reason is None:
            return
        with database.begin() as session:
            note = write_note(session, settings.keyring, reason, author=ACTOR)
            removed = evict_archived(session, due, of, compress=compress, actor=ACTOR, note=note)
    click.echo(f"Removed {removed:,}." + (" No more of them are archived." if removed < count else ""))


@click.command()
@_DOMAIN
@click.option(
    "--status", type=click.Choice([each.value for each in DLQCompressedStatus]), help="Only in this status."
)
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1_000), help="How many.")
@JSON
@click.pass_obj
def summaries(settings: Settings, domain: str | None, status: str | None, limit: int, as_json: bool) -> None:
    """Show what is left of compressed dead letters: how many of each kind, from when to when."""
    with opened(settings) as database, database.read() as session:
        found = find_summaries(session, domain=domain, status=status, limit=limit)
        totals = summary_totals(session)
    if as_json:
        show.print_json({"summaries": [each.plain() for each in found], "totals": totals})
    else:
        show.print_summaries(found, totals)


@click.command("mark-summary")
@click.argument("summary", metavar="ID")
@click.argument("status", type=click.Choice([each.value for each in SUMMARY_MOVES]))
@click.pass_obj
def mark_summary(settings: Settings, summary: str, status: str) -> None:
    """Mark a summary as stale, so that it no longer grows, or as archived. There is no way back."""
    summary_id = as_uuid(summary)
    with opened(settings) as database, database.begin() as session:
        if summary_id is None or not set_summary_status(session, summary_id, status):
            raise NotFound(f"No summary has this id and can still become {status}.")
    click.echo(f"The summary is now {status}.")


def _ids_or_age(dead_letters: tuple[str, ...], older_than_days: int | None) -> list[UUID]:
    ids = dead_letter_ids(dead_letters)
    if bool(ids) == (older_than_days is not None):
        raise click.UsageError("Give either ids of dead letters, or --older-than-days.")
    return ids


def _archive_by_age(database: Database, older_than: timedelta, *, yes: bool) -> int:
    """In steps of a transaction each, and not more than was confirmed."""
    with database.read() as session:
        due = count_archivable(session, older_than)
    _confirm(due, "archived", yes=yes)
    count = 0
    while count < due:
        with database.begin() as session:
            limit = min(MAX_ARCHIVED, due - count)
            done = archive_settled(session, older_than=older_than, limit=limit, actor=ACTOR)
        if not done:
            break
        count += done
    return count


def _confirm_removal(due: int, reason: str | None, *, preview: bool, yes: bool) -> str | None:
    """The reason, once the removal is confirmed; None for a preview."""
    if preview:
        click.echo(f"{due:,} would be removed.")
        return None
    if reason is None:
        raise click.UsageError("Give the reason with --reason.")
    _confirm(due, "removed for good", yes=yes)
    return reason


def _confirm(count: int, what: str, *, yes: bool) -> None:
    if not yes:
        letters = "dead letter" if count == 1 else "dead letters"
        click.confirm(f"{count:,} {letters} will be {what}. Continue?", abort=True)
