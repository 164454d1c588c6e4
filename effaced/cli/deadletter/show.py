"""Dead letters on a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from effaced.cli.terminal import terminal
from effaced.core import clock
from effaced.deadletters.assign import DeadLetterNote
from effaced.deadletters.context import FAILURES
from effaced.deadletters.data import DLQCompressedEntry
from effaced.deadletters.read import DeadLetterLine
from effaced.deadletters.rules import REOPENED
from effaced.model import DeadLetterStatus
from effaced.triage.redrive_read import RedriveView
from effaced.triage.retry import RedriveResult, describe_outcome

_COLOURS = {
    DeadLetterStatus.PENDING: "red",
    DeadLetterStatus.REQUIRES_REVIEW: "red",
    DeadLetterStatus.PERMANENTLY_FAILED: "red",
    DeadLetterStatus.REVIEWING: "yellow",
    DeadLetterStatus.REPLAYING: "yellow",
    DeadLetterStatus.RESOLVED: "green",
}

_ID_WIDTH = 36
_COLUMNS = (
    "opened (UTC)", "status", "domain", "resolver", "error", "retries", "request", "assigned to", "next step",
)  # fmt: skip


def print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))


def print_dead_letters(
    lines: Sequence[DeadLetterLine], refs: Mapping[Any, str], names: Mapping[str, str]
) -> None:
    table = Table()
    table.add_column("id", no_wrap=True, min_width=_ID_WIDTH)
    for name in _COLUMNS:
        table.add_column(name)
    for each in lines:
        table.add_row(
            str(each.id),
            Text(f"{each.created_at:%Y-%m-%d %H:%M}", style="red" if each.late else ""),
            Text(each.status, style=_COLOURS.get(each.status, "")),
            each.domain,
            Text(each.resolver or "-"),
            Text(each.failure_type + (f" ({each.error_code})" if each.error_code else "")),
            f"{each.retry_count} of {each.max_retries}",
            refs.get(each.request_id, "-"),
            Text(names.get(f"officer:{each.assigned_to}", "-")),
            each.recommended_action or "-",
        )
    terminal().print(table)


def print_dead_letter(
    found: DeadLetterLine, ref: str | None, notes: Sequence[DeadLetterNote], names: Mapping[str, str]
) -> None:
    assigned = names.get(f"officer:{found.assigned_to}", "nobody")
    rows = {
        "status": f"{found.status.value}{', late' if found.late else ''}",
        "domain": found.domain.value,
        "resolver": found.resolver,
        "error": found.failure_type,
        "code": found.error_code,
        "attempts": found.context.get("attempts"),
        "rows left in": ", ".join(found.context.get("tables", [])),
        "all failures": ", ".join(_failure(each) for each in found.context.get(FAILURES, [])),
        "retries": f"{found.retry_count} of {found.max_retries}",
        "forced": (found.marks or {}).get("force_redrive_count"),
        "reopened": (found.marks or {}).get(REOPENED),
        "request": ref,
        "entry": found.entry_id,
        "assigned to": assigned,
        "opened": clock.text(found.created_at),
        "last retry": clock.text(found.last_retry_at),
        "settled": clock.text(found.resolved_at),
        "settled by": names.get(found.resolved_by or "", found.resolved_by),
        "settled how": found.resolution,
        "archived": clock.text(found.archived_at),
        "expires": clock.text(found.expires_at),
        "next step": found.recommended_action,
    }
    table = Table(show_header=False, box=None)
    for name, value in rows.items():
        if value not in (None, ""):
            table.add_row(Text(name, style="bold"), Text(str(value)))
    console = terminal()
    console.print(table)
    for note in notes:
        heading = f"{note.at:%Y-%m-%d %H:%M} UTC, {names.get(note.author, note.author)}:"
        console.print(Text(heading, style="bold"), Text(note.text or "(erased)"))


def _failure(facts: Mapping[str, Any]) -> str:
    tables = facts.get("tables", [])
    return str(facts["error"]) + (f" (rows left in {', '.join(tables)})" if tables else "")


def print_stats(found: Mapping[str, Any]) -> None:
    console = terminal()
    console.print(f"{found['active']:,} of {found['total']:,} dead letters are not settled.")
    if found["oldest_active_at"]:
        console.print(f"The oldest of them is from {found['oldest_active_at']}.")
    for status, number in found["by_status"].items():
        console.print(f"  {status} {number:,}")
    for name, number in found["cleanup"].items():
        console.print(f"{name.replace('_', ' ').capitalize()}: {number:,}.")
    domains = Table("domain", "not settled", "late after", "late")
    for domain, each in found["sla"].items():
        late = Text(str(each["breached"]), style="red" if each["breached"] else "")
        domains.add_row(domain, str(found["by_domain"].get(domain, 0)), f"{each['hours']:g} h", late)
    console.print(domains)
    groups = Table("domain", "resolver", "error", "count", "oldest (UTC)")
    for group in found["groups"]:
        name, error = Text(group["resolver"] or "-"), Text(group["error"])
        groups.add_row(group["domain"], name, error, f"{group['count']:,}", group["oldest_at"])
    if found["groups"]:
        console.print(groups)


def print_summaries(found: Sequence[DLQCompressedEntry], totals: Mapping[str, Any]) -> None:
    if not found:
        click.echo("No summaries match." if totals["entries"] else "There are no summaries.")
        return
    table = Table()
    table.add_column("id", no_wrap=True, min_width=_ID_WIDTH)
    for name in ("status", "domain", "error", "count", "first (UTC)", "last (UTC)"):
        table.add_column(name)
    for each in found:
        error = Text(each.failure_type + (f" ({each.error_code})" if each.error_code else ""))
        moments = (f"{at:%Y-%m-%d %H:%M}" for at in (each.first_seen, each.last_seen))
        table.add_row(each.id, each.status, each.domain, error, f"{each.count:,}", *moments)
    terminal().print(table)
    click.echo(f"All summaries together stand for {totals['letters']:,} removed dead letters.")


def print_results(found: Sequence[RedriveResult]) -> None:
    for each in found:
        click.echo(f"{each.dead_letter_id} {each.why}.")


def print_redrive(found: RedriveView) -> None:
    left = f", {found.total - found.done:,} left" if found.total > found.done else ""
    click.echo(
        f"Redrive {found.id} is {found.status.value}: {found.requeued:,} of {found.total:,} requeued{left}."
    )
    for code, number in sorted(found.skipped.items(), key=lambda each: -each[1]):
        click.echo(f"  {number:,} left alone: each {describe_outcome(code)}.")
