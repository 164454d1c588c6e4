"""Dead letters on a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from effaced.core import clock
from effaced.deadletters.assign import LetterNote
from effaced.deadletters.context import FAILURES
from effaced.deadletters.read import DeadLetterLine
from effaced.deadletters.rules import REOPENED
from effaced.model import DeadLetterStatus
from effaced.triage.redrive_read import RedriveView
from effaced.triage.retry import RedriveResult, said

_COLOURS = {
    DeadLetterStatus.PENDING: "red",
    DeadLetterStatus.REQUIRES_REVIEW: "red",
    DeadLetterStatus.PERMANENTLY_FAILED: "red",
    DeadLetterStatus.REVIEWING: "yellow",
    DeadLetterStatus.REPLAYING: "yellow",
    DeadLetterStatus.RESOLVED: "green",
}


def as_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))


def letters(lines: Sequence[DeadLetterLine], refs: Mapping[Any, str], names: Mapping[str, str]) -> None:
    table = Table("id", "since (UTC)", "state", "where", "system", "error", "tries", "request", "who", "do")
    for each in lines:
        since = Text(f"{each.created_at:%Y-%m-%d %H:%M}", style="red" if each.late else "")
        table.add_row(
            Text(str(each.id), no_wrap=True),
            since,
            Text(each.status, style=_COLOURS.get(each.status, "")),
            each.domain,
            Text(each.resolver or "-"),
            Text(each.failure_type + (f" ({each.error_code})" if each.error_code else "")),
            f"{each.retry_count} of {each.max_retries}",
            refs.get(each.request_id, "-"),
            Text(names.get(f"officer:{each.assigned_to}", "-")),
            each.recommended_action or "-",
        )
    # Wide enough for the ids: they are there to be copied.
    console = Console()
    console.print(table, no_wrap=not console.is_terminal, width=None if console.is_terminal else 220)


def one(
    letter: DeadLetterLine, ref: str | None, notes: Sequence[LetterNote], names: Mapping[str, str]
) -> None:
    assigned = names.get(f"officer:{letter.assigned_to}", "nobody")
    rows = {
        "state": f"{letter.status.value}{', late' if letter.late else ''}",
        "where": letter.domain.value,
        "system": letter.resolver,
        "error": letter.failure_type,
        "code": letter.error_code,
        "attempts": letter.context.get("attempts"),
        "rows left in": ", ".join(letter.context.get("tables", [])),
        "all failures": ", ".join(_failure(each) for each in letter.context.get(FAILURES, [])),
        "tried again": f"{letter.retry_count} of {letter.max_retries}",
        "forced": (letter.marks or {}).get("force_redrive_count"),
        "reopened": (letter.marks or {}).get(REOPENED),
        "request": ref,
        "entry": letter.entry_id,
        "looked after by": assigned,
        "opened": clock.text(letter.created_at),
        "last tried": clock.text(letter.last_retry_at),
        "settled": clock.text(letter.resolved_at),
        "by": names.get(letter.resolved_by or "", letter.resolved_by),
        "how": letter.resolution,
        "archived": clock.text(letter.archived_at),
        "do": letter.recommended_action,
    }
    table = Table(show_header=False, box=None)
    for name, value in rows.items():
        if value not in (None, ""):
            table.add_row(Text(name, style="bold"), Text(str(value)))
    console = Console()
    console.print(table)
    for note in notes:
        said_by = f"{note.at:%Y-%m-%d %H:%M} UTC, {names.get(note.author, note.author)}:"
        console.print(Text(said_by, style="bold"), Text(note.text or "(erased)"))


def _failure(facts: Mapping[str, Any]) -> str:
    tables = facts.get("tables", [])
    return str(facts["error"]) + (f" (rows left in {', '.join(tables)})" if tables else "")


def stats(found: Mapping[str, Any]) -> None:
    console = Console()
    console.print(f"{found['active']:,} of {found['total']:,} dead letters are not settled.")
    if found["oldest_active_at"]:
        console.print(f"The oldest of them is from {found['oldest_active_at']}.")
    domains = Table("where", "not settled", "may wait", "waited too long")
    for domain, each in found["sla"].items():
        late = Text(str(each["breached"]), style="red" if each["breached"] else "")
        domains.add_row(domain, str(found["by_domain"].get(domain, 0)), f"{each['hours']:g} h", late)
    console.print(domains)
    groups = Table("where", "system", "error", "how many", "oldest (UTC)")
    for group in found["groups"]:
        name, error = Text(group["resolver"] or "-"), Text(group["failure_type"])
        groups.add_row(group["domain"], name, error, f"{group['count']:,}", group["oldest_at"])
    if found["groups"]:
        console.print(groups)


def results(found: Sequence[RedriveResult]) -> None:
    for each in found:
        click.echo(f"{each.dead_letter_id} {each.why}.")


def redrive(found: RedriveView) -> None:
    left = f", {found.total - found.done:,} left" if found.total > found.done else ""
    click.echo(
        f"Redrive {found.id} is {found.status.value}: {found.requeued:,} of {found.total:,} requeued{left}."
    )
    for code, number in sorted(found.skipped.items(), key=lambda each: -each[1]):
        click.echo(f"  {number:,} left alone: each {said(code)}.")
