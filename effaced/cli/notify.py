"""`effaced notify ...`: who is told, does it arrive, and what went out last?"""

from __future__ import annotations

import asyncio
import json

import click
from rich.table import Table
from rich.text import Text

from effaced.cli.terminal import terminal
from effaced.core import clock
from effaced.core.config import Settings
from effaced.core.db.schema_level import open_database
from effaced.model import NOTICES, DeliveryStatus, new_id
from effaced.notify.config import Targets
from effaced.notify.deliver import attempt
from effaced.notify.read import DeliveryLine, last_deliveries, waiting_counts
from effaced.notify.tables import REGISTERED
from effaced.notify.target import TEST, Outgoing
from effaced.runtime import Runtime

_NOBODY = "EFFACED_NOTIFY is not set: nobody is told of anything."
_COLOURS = {
    DeliveryStatus.PENDING: "yellow",
    DeliveryStatus.DELIVERED: "green",
    DeliveryStatus.UNDELIVERABLE: "red",
}


@click.command()
@click.pass_obj
def check(settings: Settings) -> None:
    """Read notify.yaml as the workers do, and show its targets. Sends nothing.

    Exits with 2 if the file can't be used, with every problem and its line.
    """
    targets = _targets(settings)
    if settings.notify is None:
        click.echo(_NOBODY)
        return
    if not len(targets):
        click.echo(f"No targets in {settings.notify}: nobody is told of anything.")
        return
    table = Table("target", "kind", "where", "timeout", "events")
    for each in targets:
        wanted = "all" if each.events == NOTICES else ", ".join(sorted(each.events))
        table.add_row(each.name, each.kind, Text(each.where), f"{each.timeout.total_seconds():g} s", wanted)
    terminal().print(table)


@click.command()
@click.argument("target")
@click.pass_context
def test(context: click.Context, target: str) -> None:
    """Send a test message to one target, and say how it went. Exits with 1 if it did not arrive."""
    settings: Settings = context.obj
    chosen = _targets(settings).named(target)
    outcome = asyncio.run(attempt(chosen, Outgoing(new_id(), TEST, clock.now(), {})))
    said = f", answer {outcome.status_code}" if outcome.status_code else ""
    if outcome.delivered:
        some = " Some recipients were refused." if outcome.error else ""
        click.echo(f"{target} has the test message ({outcome.latency_ms:,} ms{said}).{some}")
        return
    click.echo(f"{target} did not get the test message: {outcome.error}{said}.", err=True)
    context.exit(1)


@click.command("log")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1_000), help="How many.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_obj
def log_command(settings: Settings, limit: int, as_json: bool) -> None:
    """Show the last deliveries, newest first."""
    database = open_database(settings.database_url)
    with database.read() as session:
        lines = last_deliveries(session, limit=limit)
        waiting = waiting_counts(session)
    database.dispose()
    if as_json:
        click.echo(json.dumps([_plain(line) for line in lines], indent=2))
        return
    if not lines:
        click.echo("No message has been on its way to anybody yet.")
        return
    table = Table("written (UTC)", "event", "target", "state", "tries", "answer", "error")
    for line in lines:
        table.add_row(
            f"{line.created_at:%Y-%m-%d %H:%M}",
            line.type,
            line.target,
            Text(line.status, style=_COLOURS[line.status]),
            str(line.attempts),
            str(line.status_code or "-"),
            Text(line.last_error or "-"),
        )
    terminal().print(table)
    _warn_of_removed_targets(waiting, _targets(settings))


def _targets(settings: Settings) -> Targets:
    runtime = Runtime(settings)
    try:
        return runtime.targets
    finally:
        runtime.db.dispose()


def _warn_of_removed_targets(waiting: dict[str, int], targets: Targets) -> None:
    for name, number in sorted(waiting.items()):
        if name not in targets.names and not name.startswith(REGISTERED):
            click.echo(f"{number:,} wait for the target {name}, which is not in the file.", err=True)


def _plain(line: DeliveryLine) -> dict[str, object]:
    return {
        "message_id": str(line.message_id),
        "type": line.type.value,
        "request_id": str(line.request_id) if line.request_id else None,
        "created_at": clock.text(line.created_at),
        "target": line.target,
        "status": line.status.value,
        "attempts": line.attempts,
        "next_try_at": clock.text(line.gate) if line.status is DeliveryStatus.PENDING else None,
        "error": line.last_error,
        "status_code": line.status_code,
        "ended_at": clock.text(line.ended_at),
    }
