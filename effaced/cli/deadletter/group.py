"""`effaced deadletter ...`: what failed for good, and what becomes of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from effaced.accounts.actors import names_of
from effaced.audit.notes import write_note
from effaced.cli.deadletter import show
from effaced.cli.deadletter.requeue import cancel, redrives, requeue
from effaced.cli.deadletter.selection import ACTOR, chosen, filters, letter_ids, officer_id, opened
from effaced.cli.groups import Group
from effaced.core.config import Settings
from effaced.deadletters import find, tidy
from effaced.deadletters.assign import add_note, assign, notes_of
from effaced.deadletters.change import decide
from effaced.deadletters.plain import plain_letter, plain_note
from effaced.deadletters.purge import count_purgeable, purge
from effaced.deadletters.read import count_dead_letters, list_dead_letters
from effaced.deadletters.read import letter as find_letter
from effaced.deadletters.sla import thresholds
from effaced.model import DeadLetterStatus
from effaced.requests.read import refs_of
from effaced.triage.stats import letter_stats

_JSON = click.option("--json", "as_json", is_flag=True, help="For programs.")
_DAYS = click.IntRange(0, 36_500)
_YES = click.option("--yes", is_flag=True, help="Don't ask.")
_REASON = click.option("--reason", required=True, help="Why; it is kept in the audit trail's notes.")
_DECISIONS = ("resolved", "rejected", "permanently_failed", "reviewing", "pending")


@click.group("deadletter", cls=Group)
def deadletter() -> None:
    """What failed for good and waits for a person: calls, read-backs, executions, messages.

    `list` and `stats` show what there is, `requeue` has it tried again, one letter or a whole set, `resolve`
    closes it with a reason, `archive` puts it away, `purge` removes what was put away.
    """


deadletter.add_command(requeue)
deadletter.add_command(redrives)
deadletter.add_command(cancel)


@deadletter.command("list")
@filters
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1_000), help="How many.")
@click.option("--after", help="The `next` of the page before (with --json).")
@_JSON
@click.pass_obj
def list_command(settings: Settings, /, limit: int, after: str | None, as_json: bool, **given: Any) -> None:
    """Show letters, oldest first; without a filter those that wait for a person."""
    with opened(settings) as database, database.read() as session:
        which = chosen(session, settings, given)
        page = list_dead_letters(session, which, after=after, limit=limit)
        refs = refs_of(session, [each.request_id for each in page.items])
        names = names_of(session, [f"officer:{each.assigned_to}" for each in page.items if each.assigned_to])
        total = count_dead_letters(session, which)
    if as_json:
        show.as_json({"dead_letters": [plain_letter(each) for each in page.items], "next": page.next})
        return
    if not page.items:
        click.echo("No dead letter fits." if any(given.values()) else "No dead letter waits for a person.")
        return
    show.letters(page.items, refs, names)
    if page.next:
        click.echo(f"{len(page.items)} of {total:,}. Narrow them down with a filter, or see --limit.")


@deadletter.command("show")
@click.argument("letter", metavar="ID")
@_JSON
@click.pass_obj
def show_command(settings: Settings, letter: str, as_json: bool) -> None:
    """Show everything about one letter, with the notes that people made."""
    (letter_id,) = letter_ids((letter,))
    with opened(settings) as database, database.read() as session:
        found = find_letter(session, letter_id, thresholds(settings.dead_letter_hours))
        notes = notes_of(session, settings.keyring, letter_id)
        ref = refs_of(session, [found.request_id]).get(found.request_id) if found.request_id else None
        assigned = f"officer:{found.assigned_to}" if found.assigned_to else None
        people = [found.resolved_by, assigned, *(note.author for note in notes)]
        names = names_of(session, [each for each in people if each])
    if as_json:
        show.as_json(plain_letter(found) | {"ref": ref, "notes": [plain_note(each) for each in notes]})
        return
    show.one(found, ref, notes, names)


@deadletter.command()
@filters
@_JSON
@click.pass_obj
def stats(settings: Settings, /, as_json: bool, **given: Any) -> None:
    """Show how many there are, which have waited too long, and what they have in common."""
    with opened(settings) as database, database.read() as session:
        found = letter_stats(session, chosen(session, settings, given))
    show.as_json(found) if as_json else show.stats(found)


@deadletter.command()
@click.argument("letters", metavar="ID...", nargs=-1, required=True)
@click.option(
    "--as",
    "to",
    type=click.Choice(_DECISIONS),
    default="resolved",
    show_default=True,
    help="What was decided. `pending` opens a letter again.",
)
@_REASON
@click.pass_obj
def resolve(settings: Settings, letters: tuple[str, ...], to: str, reason: str) -> None:
    """Decide about letters, with a reason. All of them, or none.

    A letter over work that was not done can't be closed: requeue it, or attest it in the console.
    """
    ids = letter_ids(letters)
    with opened(settings) as database, database.begin() as session:
        for each in ids:
            status = DeadLetterStatus(to)
            decide(session, settings.keyring, each, status, actor=ACTOR, reason=reason)
    click.echo(f"{len(ids)} {'letter is' if len(ids) == 1 else 'letters are'} {to} now.")


@deadletter.command("assign")
@click.argument("letters", metavar="ID...", nargs=-1, required=True)
@click.option("--to", "email", help="The officer who looks after them, by e-mail address.")
@click.option("--nobody", is_flag=True, help="Give them back to everybody.")
@click.pass_obj
def assign_command(settings: Settings, letters: tuple[str, ...], email: str | None, nobody: bool) -> None:
    """Say who looks after letters."""
    if (email is None) != nobody:
        raise click.UsageError("Say --to and an e-mail address, or --nobody.")
    with opened(settings) as database, database.begin() as session:
        to = officer_id(session, email) if email else None
        changed = sum(assign(session, each, to, actor=ACTOR) for each in letter_ids(letters))
    click.echo(f"Changed {changed}.")


@deadletter.command()
@click.argument("letter", metavar="ID")
@click.argument("text")
@click.pass_obj
def note(settings: Settings, letter: str, text: str) -> None:
    """Write something down about a letter. It is kept sealed, and can be erased."""
    (letter_id,) = letter_ids((letter,))
    with opened(settings) as database, database.begin() as session:
        add_note(session, settings.keyring, letter_id, text, actor=ACTOR)
    click.echo("Noted.")


@deadletter.command()
@click.argument("letters", metavar="[ID]...", nargs=-1)
@click.option(
    "--older-than-days", type=click.IntRange(0, 36_500), help="Those settled at least that long ago."
)
@_YES
@click.pass_obj
def archive(settings: Settings, letters: tuple[str, ...], older_than_days: int | None, yes: bool) -> None:
    """Put settled letters away. Their rows stay; the scheduler does this after 30 days."""
    ids = letter_ids(letters)
    if bool(ids) == (older_than_days is not None):
        raise click.UsageError("Name letters, or say --older-than-days.")
    with opened(settings) as database:
        if older_than_days is None:
            with database.begin() as session:
                count = tidy.archive_these(session, ids, actor=ACTOR)
        else:
            older_than = timedelta(days=older_than_days)
            with database.read() as session:
                due = find.count(session, tidy.archivable(older_than))
            _ask(yes, due, "put away")
            count = 0
            while count < due:
                with database.begin() as session:
                    done = tidy.archive_settled(session, older_than=older_than, actor=ACTOR)
                if not done:
                    break
                count += done
    left = len(ids) - count
    click.echo(f"Archived {count:,}." + (f" Not settled, and so left alone: {left}." if ids and left else ""))


@deadletter.command("purge")
@click.argument("letters", metavar="[ID]...", nargs=-1)
@click.option(
    "--older-than-days", type=click.IntRange(0, 36_500), help="Those archived at least that long ago."
)
@click.option("--reason", help="Why; it is kept in the audit trail's notes.")
@click.option("--preview", is_flag=True, help="Only say how many it would be.")
@_YES
@click.pass_obj
def purge_command(
    settings: Settings,
    letters: tuple[str, ...],
    older_than_days: int | None,
    reason: str | None,
    preview: bool,
    yes: bool,
) -> None:
    """Remove archived letters for good, by age or by id, and what was written about them."""
    ids = letter_ids(letters)
    if bool(ids) == (older_than_days is not None):
        raise click.UsageError("Name letters, or say --older-than-days; 0 means all that are archived.")
    with opened(settings) as database:
        with database.read() as session:
            due = count_purgeable(session, ids=ids or None, older_than_days=older_than_days)
        if preview:
            click.echo(f"{due:,} would be removed.")
            return
        if reason is None:
            raise click.UsageError("Say with --reason why they are removed.")
        _ask(yes, due, "removed for good")
        with database.begin() as session:
            why = write_note(session, settings.keyring, reason, author=ACTOR)
            count = purge(
                session,
                ids=ids or None,
                older_than_days=older_than_days,
                expected=due,
                actor=ACTOR,
                note=why,
            )
    click.echo(f"Removed {count:,}.")


def _ask(yes: bool, number: int, what: str) -> None:
    if not yes:
        click.confirm(
            f"{number:,} dead {'letter' if number == 1 else 'letters'} will be {what}. Go on?", abort=True
        )
