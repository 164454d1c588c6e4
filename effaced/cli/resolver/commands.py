"""`effaced resolver ...`: what is connected, and does it answer as configured?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.table import Table
from rich.text import Text
from sqlalchemy.orm import Session

from effaced.cli.numbers import Number
from effaced.cli.resolver.check import PROOF_COLOURS, refuse_unknown
from effaced.cli.terminal import terminal
from effaced.core.config import Settings
from effaced.core.db.schema_level import open_database
from effaced.outbox.flow import ALL
from effaced.resolvers.load import load_resolvers
from effaced.resolvers.manual import KIND as MANUAL
from effaced.resolvers.registry import Registered
from effaced.triage import pause as steer
from effaced.triage.systems import Paused, System, abilities_of, current_pauses, systems


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_obj
def list_resolvers(settings: Settings, as_json: bool) -> None:
    """Show every resolver: what it can do, what waits for it, and whether it is paused."""
    registry = load_resolvers(settings)
    database = open_database(settings.database_url)
    try:
        with database.read() as session:
            found = systems(session, registry, settings.keyring)
            everything = current_pauses(session, settings.keyring).get(ALL)
    finally:
        database.dispose()
    if as_json:
        click.echo(json.dumps([_plain(each, everything) for each in found], indent=2))
        return
    if everything:
        click.echo(f"Everything is paused: {_pause(everything)}")
    if not found:
        click.echo(f"No resolvers in {settings.resolvers}: erasures end with the company's own database.")
        return
    table = Table("name", "kind", "can", "read-back", "waiting", "in flight", "parked", "abandoned", "paused")
    for each in found:
        numbers = [str(number) for number in (each.waiting, each.in_flight, each.parked, each.abandoned)]
        # Text, not markup: square brackets in a reason are just that.
        paused = Text(_pause(each.paused) if each.paused else "-", style="yellow" if each.paused else "")
        abilities = _abilities(each.registered)
        table.add_row(Text(each.name), each.kind, abilities, _read_back(each), *numbers, paused)
    terminal().print(table)


_NAME = click.argument("name", required=False)
_ALL = click.option("--all", "everything", is_flag=True, help="All resolvers, present and future.")


@click.command("pause")
@_NAME
@_ALL
@click.option("--reason", required=True, help="Why; it is kept in the audit trail's notes.")
@click.option("--hours", type=Number(), help="For how long; without it until `effaced resolver resume`.")
@click.pass_obj
def pause_resolver(
    settings: Settings, name: str | None, everything: bool, reason: str, hours: float | None
) -> None:
    """Stop calls to one resolver, or to all. Entries keep their attempts; calls in flight are finished."""
    chosen = _chosen(settings, name, everything)
    with _writing(settings) as session:
        steer.pause(session, settings.keyring, chosen, actor="cli", reason=reason, hours=hours)
    click.echo("Paused.")


@click.command("resume")
@_NAME
@_ALL
@click.option("--reason", required=True, help="What has changed; it is kept in the audit trail's notes.")
@click.pass_obj
def resume_resolver(settings: Settings, name: str | None, everything: bool, reason: str) -> None:
    """Allow calls again. The scheduler's next sweep queues the work."""
    chosen = _chosen(settings, name, everything, known=False)
    with _writing(settings) as session:
        steer.resume(session, settings.keyring, chosen, actor="cli", reason=reason)
    click.echo("Resumed.")


@contextmanager
def _writing(settings: Settings) -> Iterator[Session]:
    database = open_database(settings.database_url)
    try:
        with database.begin() as session:
            yield session
    finally:
        database.dispose()


def _chosen(settings: Settings, name: str | None, everything: bool, *, known: bool = True) -> str:
    """The resolver that was named, or `*`. One that is gone from the file can still be resumed."""
    if (name is None) != everything:
        raise click.UsageError("Name one resolver, or say --all.")
    if name is None:
        return ALL
    if known:
        refuse_unknown(load_resolvers(settings), (name,))
    return name


def _pause(paused: Paused) -> str:
    until = f", until {paused.until:%Y-%m-%d %H:%M} UTC" if paused.until else ""
    why = paused.reason or paused.code.replace("_", " ")
    return f"since {paused.since:%Y-%m-%d %H:%M} UTC{until}, by {paused.by}: {why}"


def _read_back(each: System) -> Text:
    if each.read_back is None:
        return Text("-")
    return Text(each.read_back.proof, style=PROOF_COLOURS[each.read_back.proof])


def _plain(each: System, everything: Paused | None) -> dict[str, object]:
    paused = each.paused or everything
    limits = each.registered.limits if each.registered else None
    return {
        "name": each.name,
        "kind": each.kind,
        "reference": each.registered.ref if each.registered else None,
        "can": _abilities(each.registered).split(", ") if each.registered else [],
        "read_back": each.read_back
        and {
            "proof": each.read_back.proof,
            "reason": each.read_back.reason,
            "checked_at": each.read_back.checked_at.isoformat() if each.read_back.checked_at else None,
        },
        "after": list(each.registered.after) if each.registered else [],
        "timeout_seconds": limits.timeout.total_seconds() if limits else None,
        "concurrency": limits.concurrency if limits else None,
        "rate_per_second": limits.rate_per_second if limits else None,
        "waiting": each.waiting,
        "in_flight": each.in_flight,
        "parked": each.parked,
        "abandoned": each.abandoned,
        "paused": paused
        and {
            "all": paused.resolver == ALL,
            "since": paused.since.isoformat(),
            "until": paused.until.isoformat() if paused.until else None,
            "by": paused.by,
            "code": paused.code,
            "reason": paused.reason,
        },
    }


def _abilities(each: Registered | None) -> str:
    if each is None:
        return "-"
    return "by hand" if each.kind == MANUAL else ", ".join(abilities_of(each))
