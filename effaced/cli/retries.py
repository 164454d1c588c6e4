"""`effaced retries ...`: what tries have come to, and by which policy calls are tried again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from rich.table import Table
from rich.text import Text
from sqlalchemy.orm import Session

from effaced.audit.notes import write_note
from effaced.cli.numbers import Number
from effaced.cli.terminal import terminal
from effaced.core.config import Settings
from effaced.core.db import Database
from effaced.core.db.schema_level import open_database
from effaced.core.errors import NotFound
from effaced.core.strict import suggest
from effaced.model import PolicyKind, PolicyScope
from effaced.resolvers.load import load_resolvers
from effaced.retries.count import known_resolvers
from effaced.retries.figures import Figures
from effaced.retries.metrics import MOST_HOURS, read_by_resolver, read_timeseries, require_hours
from effaced.retries.metrics import summary as summarise
from effaced.retries.overrides import ALL, Target, beside, get_override, set_override, undo_override
from effaced.retries.policy import RETRYABLE, BackoffStrategy, RetryPolicy, check_changes
from effaced.runtime import Runtime
from effaced.saga.rules import RuleBook

F = TypeVar("F", bound=Callable[..., Any])
_ACTOR = "cli"
_JSON = click.option("--json", "as_json", is_flag=True, help="For programs.")
_HOURS = click.option(
    "--hours",
    default=24,
    show_default=True,
    help=f"How far back, the running hour included: 1 to {MOST_HOURS}.",
)
_REASON = click.option("--reason", help="Why; it is kept in the audit trail's notes.")


def _resolver_option(help_: str) -> Callable[[F], F]:
    return click.option("--resolver", metavar="NAME", help=help_)


@click.command()
@_HOURS
@_resolver_option("Only this one.")
@_JSON
@click.pass_obj
def summary(settings: Settings, hours: int, resolver: str | None, as_json: bool) -> None:
    """Summarise the last hours, resolver by resolver."""
    require_hours(hours)
    with _opened(settings) as database, database.read() as session:
        _refuse_unknown(session, settings, resolver)
        told = summarise(session, hours, resolver)
        found = read_by_resolver(session, hours)
    if as_json:
        click.echo(json.dumps(told, indent=2))
        return
    table = Table(
        "resolver",
        "tries",
        "retries",
        "success",
        "failure",
        "timeout",
        "avg ms",
        "p95 ms (est.)",
        "most failed with",
    )
    for name, each in found.items():
        if name != ALL and resolver in (None, name):
            table.add_row(Text(name), *_cells(each), _most(each.failure_by_reason))
    if resolver is None:
        table.add_row("all", *_cells(found[ALL]), _most(found[ALL].failure_by_reason))
    terminal().print(table)


@click.command()
@_HOURS
@_resolver_option("Only this one.")
@_JSON
@click.pass_obj
def timeseries(settings: Settings, hours: int, resolver: str | None, as_json: bool) -> None:
    """Show the last hours one by one."""
    require_hours(hours)
    with _opened(settings) as database, database.read() as session:
        _refuse_unknown(session, settings, resolver)
        points = read_timeseries(session, hours, resolver)
    if as_json:
        told = [{"hour": each.hour.isoformat(), **each.figures.plain()} for each in points]
        click.echo(json.dumps(told, indent=2))
        return
    table = Table(
        "hour (UTC)", "tries", "retries", "success", "failure", "timeout", "avg ms", "p95 ms (est.)"
    )
    for each in points:
        table.add_row(f"{each.hour:%Y-%m-%d %H:00}", *_cells(each.figures))
    terminal().print(table)


def _cells(figures: Figures) -> list[str]:
    told = figures.plain()
    counts = [figures.attempts, figures.retries, *(figures.outcomes[name] for name in _SHOWN)]
    times = [told["avg_latency_ms"], told["p95_latency_ms_estimate"]]
    return [f"{n:,}" for n in counts] + ["-" if each is None else f"{each:,.0f}" for each in times]


_SHOWN = ("success", "failure", "timeout")


def _most(reasons: Mapping[str, int]) -> str:
    return max(reasons, key=lambda name: (reasons[name], name)) if reasons else "-"


@click.command()
@_resolver_option("The one in force for this resolver.")
@_JSON
@click.pass_obj
def show(settings: Settings, resolver: str | None, as_json: bool) -> None:
    """Show the policy in force, and what in it was changed at run time."""
    with _opened(settings) as database, database.read() as session:
        _refuse_unknown(session, settings, resolver)
        override = get_override(session, _target(resolver))
        book = RuleBook(Runtime(settings, database=database).policy, load_resolvers(settings))
        found = book.policy(session, resolver=resolver)
    changed = dict(override.body) if override else {}
    if as_json:
        click.echo(json.dumps({"policy": found.model_dump(mode="json"), "override": changed}, indent=2))
        return
    table = Table("field", "in force", "changed here")
    for name, value in found:
        table.add_row(name, _value(value), "yes" if name in changed else "")
    terminal().print(table)


def _policy_options(command: F) -> F:
    """An option for each field of the policy; their bounds are checked where all bounds are."""
    options = {
        "max_attempts": click.option(
            "--max-attempts", type=int, help="Tries before it is abandoned: 1 to 50."
        ),
        "backoff_strategy": click.option(
            "--backoff-strategy",
            type=click.Choice([each.value for each in BackoffStrategy]),
            help="How waits grow.",
        ),
        "base_delay": click.option("--base-delay", type=Number(), help="Seconds after the first try."),
        "multiplier": click.option(
            "--multiplier", type=Number(), help="By which exponential waits grow, up to 10."
        ),
        "max_backoff_delay": click.option(
            "--max-backoff-delay", type=Number(), help="The longest wait in seconds, up to 86400."
        ),
        "jitter": click.option("--jitter/--no-jitter", default=None, help="Vary the waits."),
        "retry_status_codes": click.option(
            "--retry-status-codes", help="With commas: any of 408, 429, 500 to 599; 5xx is all of these."
        ),
        "timeout": click.option("--timeout", type=Number(), help="Seconds for all tries and waits together."),
        "retry_non_idempotent": click.option(
            "--retry-non-idempotent/--no-retry-non-idempotent",
            default=None,
            help="Repeat also what may do harm if made twice.",
        ),
    }
    assert options.keys() == RetryPolicy.model_fields.keys()
    for option in reversed(options.values()):
        command = option(command)
    return command


@click.command("set")
@_resolver_option("For this resolver; without it for all that have nothing of their own.")
@_policy_options
@_REASON
@click.pass_obj
def set_(settings: Settings, /, resolver: str | None, reason: str | None, **fields: Any) -> None:
    """Change some fields; earlier changes of others stay."""
    changes = {name: value for name, value in fields.items() if value is not None}
    if "retry_status_codes" in changes:
        changes["retry_status_codes"] = _codes(changes["retry_status_codes"])
    if not changes:
        raise click.UsageError("Say what to change; `effaced retries policy set --help` lists the fields.")
    with _opened(settings) as database, database.begin() as session:
        _refuse_unknown(session, settings, resolver)
        note = write_note(session, settings.keyring, reason, author=_ACTOR) if reason else None
        set_override(
            session, _target(resolver), changes, check=check_changes, actor=_ACTOR, note=note, merge=beside
        )
    click.echo("Changed; it holds for every process from its next results on.")


@click.command()
@_resolver_option("Of this resolver; without it of all.")
@_REASON
@click.pass_obj
def undo(settings: Settings, resolver: str | None, reason: str | None) -> None:
    """Revert the last change."""
    with _opened(settings) as database, database.begin() as session:
        note = write_note(session, settings.keyring, reason, author=_ACTOR) if reason else None
        undo_override(session, _target(resolver), actor=_ACTOR, note=note)
    click.echo("Undone.")


def _target(resolver: str | None) -> Target:
    if resolver is None:
        return Target(PolicyKind.RETRY)
    return Target(PolicyKind.RETRY, PolicyScope.RESOLVER, resolver)


@contextmanager
def _opened(settings: Settings) -> Iterator[Database]:
    database = open_database(settings.database_url)
    try:
        yield database
    finally:
        database.dispose()


def _refuse_unknown(session: Session, settings: Settings, resolver: str | None) -> None:
    if resolver is None:
        return
    known = {each.name for each in load_resolvers(settings)} | set(known_resolvers(session))
    if resolver not in known:
        raise NotFound(f"No resolver is named '{resolver}'{suggest(resolver, known)}")


def _codes(given: str) -> list[int]:
    codes: set[int] = set()
    for word in filter(None, (part.strip().lower() for part in given.split(","))):
        if word == "5xx":
            codes |= set(range(500, 600))
        elif word.isascii() and word.isdecimal():
            codes.add(int(word[:9]))
        else:
            raise click.UsageError("--retry-status-codes takes numbers with commas between them, and 5xx.")
    return sorted(codes)


def _value(value: Any) -> str:
    if value == RETRYABLE:
        return "408, 429, 5xx"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,.10g}" if isinstance(value, float) else str(value).lower()
