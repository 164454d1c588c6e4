"""`effaced deadletter ...`: list, show and decide about work that failed for good."""

from __future__ import annotations

from typing import Any

import click

from effaced.accounts.actors import names_of
from effaced.cli.deadletter import show
from effaced.cli.deadletter.selection import (
    ACTOR,
    JSON,
    REASON,
    chosen,
    dead_letter_ids,
    filters,
    officer_id,
    opened,
)
from effaced.core.config import Settings
from effaced.deadletters.assign import add_note, assign, notes_of
from effaced.deadletters.decide import decide
from effaced.deadletters.read import count_dead_letters, get_dead_letter, list_dead_letters
from effaced.deadletters.rules import DECISIONS, RESOLVED, UNRESOLVED, sla_from_hours
from effaced.model import DeadLetterStatus
from effaced.requests.read import refs_of
from effaced.triage.stats import dead_letter_stats


@click.command("list")
@filters
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1_000), help="How many.")
@click.option("--after", help="The `next` of the previous page (with --json).")
@JSON
@click.pass_obj
def list_command(settings: Settings, /, limit: int, after: str | None, as_json: bool, **given: Any) -> None:
    """List dead letters, oldest first; without --status every unresolved one, given-up ones included."""
    with opened(settings) as database, database.read() as session:
        which = chosen(session, settings, given, default=UNRESOLVED)
        page = list_dead_letters(session, which, after=after, limit=limit)
        refs = refs_of(session, [each.request_id for each in page.items])
        names = names_of(session, [f"officer:{each.assigned_to}" for each in page.items if each.assigned_to])
        total = count_dead_letters(session, which)
    if as_json:
        show.print_json({"dead_letters": [each.plain() for each in page.items], "next": page.next})
        return
    if not page.items:
        filtered = any(given.values())
        click.echo("No dead letters match." if filtered else "There are no unresolved dead letters.")
        return
    show.print_dead_letters(page.items, refs, names)
    if page.next:
        click.echo(f"{len(page.items)} of {total:,} shown. Add a filter, or raise --limit.")


@click.command("show")
@click.argument("dead_letter", metavar="ID")
@JSON
@click.pass_obj
def show_command(settings: Settings, dead_letter: str, as_json: bool) -> None:
    """Show one dead letter with its notes."""
    (dead_letter_id,) = dead_letter_ids((dead_letter,))
    with opened(settings) as database, database.read() as session:
        found = get_dead_letter(session, dead_letter_id, sla_from_hours(settings.dead_letter_hours))
        notes = notes_of(session, settings.keyring, dead_letter_id)
        ref = refs_of(session, [found.request_id]).get(found.request_id) if found.request_id else None
        assigned = f"officer:{found.assigned_to}" if found.assigned_to else None
        people = [found.resolved_by, assigned, *(note.author for note in notes)]
        names = names_of(session, [each for each in people if each])
    if as_json:
        show.print_json(found.plain() | {"ref": ref, "notes": [each.plain() for each in notes]})
        return
    show.print_dead_letter(found, ref, notes, names)


@click.command()
@filters
@JSON
@click.pass_obj
def stats(settings: Settings, /, as_json: bool, **given: Any) -> None:
    """Show totals, late ones by domain, what could be cleaned up, and the most frequent failures."""
    with opened(settings) as database, database.read() as session:
        found = dead_letter_stats(session, chosen(session, settings, given))
    show.print_json(found) if as_json else show.print_stats(found)


@click.command()
@click.argument("dead_letters", metavar="ID...", nargs=-1, required=True)
@click.option(
    "--as",
    "to",
    type=click.Choice([each.value for each in DECISIONS]),
    default=RESOLVED.value,
    show_default=True,
    help="The new status. `pending` opens a dead letter again.",
)
@REASON
@click.pass_obj
def resolve(settings: Settings, dead_letters: tuple[str, ...], to: str, reason: str) -> None:
    """Record a decision about dead letters, with a reason: about all of them, or none.

    A dead letter over work that was not done can't be closed: requeue it, or attest the work in the console.
    """
    ids = dead_letter_ids(dead_letters)
    with opened(settings) as database, database.begin() as session:
        for each in ids:
            decide(session, settings.keyring, each, DeadLetterStatus(to), actor=ACTOR, reason=reason)
    click.echo(f"{len(ids)} {'dead letter is' if len(ids) == 1 else 'dead letters are'} now {to}.")


@click.command("assign")
@click.argument("dead_letters", metavar="ID...", nargs=-1, required=True)
@click.option("--to", "email", help="An officer's e-mail address.")
@click.option("--nobody", is_flag=True, help="Remove the assignment.")
@click.pass_obj
def assign_command(
    settings: Settings, dead_letters: tuple[str, ...], email: str | None, nobody: bool
) -> None:
    """Assign dead letters to an officer, or to nobody."""
    if (email is None) != nobody:
        raise click.UsageError("Give either --to with an e-mail address, or --nobody.")
    with opened(settings) as database, database.begin() as session:
        to = officer_id(session, email) if email else None
        changed = sum(assign(session, each, to, actor=ACTOR) for each in dead_letter_ids(dead_letters))
    click.echo(f"Changed {changed}.")


@click.command()
@click.argument("dead_letter", metavar="ID")
@click.argument("text")
@click.pass_obj
def note(settings: Settings, dead_letter: str, text: str) -> None:
    """Add a note to a dead letter. It is stored encrypted, and can be erased."""
    (dead_letter_id,) = dead_letter_ids((dead_letter,))
    with opened(settings) as database, database.begin() as session:
        add_note(session, settings.keyring, dead_letter_id, text, actor=ACTOR)
    click.echo("Note added.")
