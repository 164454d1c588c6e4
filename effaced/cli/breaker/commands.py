"""`effaced breaker ...`: the states of breakers, what they did, and manual control."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from effaced.audit.notes import write_note
from effaced.breakers.advice.metrics import WINDOW_S
from effaced.breakers.advice.tuner import change_policy, describe_replaced_overrides
from effaced.breakers.advice.tuner import undo as undo_last
from effaced.breakers.control import BreakerControl, blocking_host
from effaced.breakers.layered.forensics import read_outages
from effaced.breakers.model import host_name, resolver_name
from effaced.breakers.policy import DEFAULTS
from effaced.breakers.policy_file import parse_fields
from effaced.breakers.telemetry import DAY_S
from effaced.breakers.telemetry import summary as summarise
from effaced.breakers.view import find_name, read_views
from effaced.cli.breaker import show as breaker_show
from effaced.cli.numbers import Number
from effaced.core.config import Settings
from effaced.model import PolicyKind
from effaced.runtime import Runtime

F = TypeVar("F", bound=Callable[..., Any])
_ACTOR = "cli"
_JSON = click.option("--json", "as_json", is_flag=True, help="JSON output.")
_NAME = click.argument("name")
_REASON = click.option("--reason", required=True, help="Why; it is kept in the audit trail's notes.")


def _seconds(required: bool) -> Callable[[F], F]:
    default = "" if required else " By default 90 minutes."
    return click.option("--seconds", type=Number(), required=required, help=f"For how long.{default}")


def _window(default: int) -> Callable[[F], F]:
    text = "How far back, in seconds: 60 to 86400."
    return click.option("--window-s", type=Number(), default=default, show_default=True, help=text)


@dataclass(frozen=True)
class BreakerCommand:
    """The settings, and the policy fields that this command overrides."""

    settings: Settings
    overrides: Sequence[str]

    @contextmanager
    def opened(self) -> Iterator[Runtime]:
        runtime = Runtime(self.settings, breaker_overrides=self.overrides)
        try:
            _ = runtime.breaker_policies  # an invalid policy stops the command before it does anything
            yield runtime
        finally:
            runtime.db.dispose()

    @contextmanager
    def control(self, name: str) -> Iterator[tuple[BreakerControl, str]]:
        """Manual control in one transaction, and the full name of the breaker."""
        with self.opened() as runtime:
            named = _named(runtime, name)
            with runtime.db.begin() as session:
                yield (
                    BreakerControl(session, runtime.breakers, runtime.keyring, runtime.called, _ACTOR),
                    named,
                )


# --- reading ---


@click.command()
@click.option("--resolver", metavar="NAME", help="Only this one's.")
@click.option("--host", metavar="NAME", help="Only this one's.")
@_JSON
@click.pass_obj
def show(command: BreakerCommand, resolver: str | None, host: str | None, as_json: bool) -> None:
    """Show every breaker: its state, what blocks it until when, its half-open budget, and its pin."""
    with command.opened() as runtime:
        asked = [resolver_name(resolver)] if resolver is not None else []
        asked += [host_name(host)] if host is not None else []
        names = [_named(runtime, each) for each in asked] or None
        with runtime.db.read() as session:
            found = read_views(session, runtime.breakers, runtime.keyring, runtime.called, names)
            policies = runtime.breaker_policies_in_force(session)
    if as_json:
        _print_json([each.as_dict() for each in found])
    else:
        breaker_show.print_breakers(found, policies)


@click.command()
@_window(DAY_S)
@_JSON
@click.pass_obj
def summary(command: BreakerCommand, window_s: float, as_json: bool) -> None:
    """Show what breakers did: opens per hour, time saved (an estimate), trials, reasons."""
    with command.opened() as runtime, runtime.db.read() as session:
        found = summarise(session, runtime.called, window_s)
    if as_json:
        _print_json([each.as_dict() for each in found])
    else:
        breaker_show.print_summaries(found)


@click.command()
@click.option("--window-s", type=Number(60, 7_776_000), default=DAY_S, show_default=True,
              help="How far back, in seconds: at most 90 days.")  # fmt: skip
@_JSON
@click.pass_obj
def outages(command: BreakerCommand, window_s: float, as_json: bool) -> None:
    """Show what Redis did not take while it was away, and how the differences were resolved."""
    with command.opened() as runtime, runtime.db.read() as session:
        found = read_outages(session, window_s)
    if as_json:
        _print_json(found)
    else:
        breaker_show.print_outages(found)


# --- manual control ---


@click.command("open")
@_NAME
@_seconds(required=True)
@_REASON
@click.pass_obj
def force_open(command: BreakerCommand, name: str, seconds: float, reason: str) -> None:
    """Let no call through for a while. What waits keeps its attempts."""
    with command.control(name) as (control, named):
        made = control.force_open(named, reason=reason, seconds=seconds)
    click.echo(f"{named} is pinned open until {made.pinned_until:%Y-%m-%d %H:%M:%S} UTC.")


@click.command("close")
@_NAME
@_seconds(required=False)
@_REASON
@click.pass_obj
def force_close(command: BreakerCommand, name: str, seconds: float | None, reason: str) -> None:
    """Let every call through for a while, whatever the results."""
    with command.control(name) as (control, named):
        made = control.force_close(named, reason=reason, seconds=seconds)
    click.echo(f"{named} is pinned closed until {made.pinned_until:%Y-%m-%d %H:%M:%S} UTC.")


@click.command()
@_NAME
@_REASON
@click.pass_obj
def unpin(command: BreakerCommand, name: str, reason: str) -> None:
    """Remove a pin and keep the state. From open, the next call is a trial."""
    with command.control(name) as (control, named):
        made = control.unpin(named, reason=reason)
    click.echo(f"{named} is unpinned and {made.new.value}.")


@click.command()
@_NAME
@click.option("--include-host", is_flag=True, help="Reset the breaker of the resolver's host too.")
@_REASON
@click.pass_obj
def reset(command: BreakerCommand, name: str, include_host: bool, reason: str) -> None:
    """Close it and clear its counters, pin and cooldown."""
    with command.control(name) as (control, named):
        made = control.reset(named, reason=reason, include_host=include_host)
        host = blocking_host(control.registry.within(control.session), named, control.called)
    for each in made:
        click.echo(f"{each.service_name} is reset.")
    if host is not None:
        click.echo(f"{host} still blocks its calls; --include-host resets it too.")


@click.command()
@_NAME
@_REASON
@click.pass_obj
def delete(command: BreakerCommand, name: str, reason: str) -> None:
    """Delete the breaker of a system that is not configured any more."""
    with command.control(name) as (control, named):
        control.delete(named, reason=reason)
    click.echo(f"{named} is deleted.")


# --- policies ---


@click.command()
@_NAME
@_JSON
@click.pass_obj
def policy(command: BreakerCommand, name: str, as_json: bool) -> None:
    """Show the policy in force for each kind of call, the rate in force, and what was changed at run time.

    NAME may be `defaults`.
    """
    with command.opened() as runtime:
        named = DEFAULTS if name == DEFAULTS else _named(runtime, name)
        with runtime.db.read() as session:
            found = runtime.policy_in_force(session, named)
    if as_json:
        _print_json(found.as_dict())
    else:
        breaker_show.print_policy(found)


@click.command("set")
@click.argument("name")
@click.argument("fields", metavar="FIELD=VALUE...", nargs=-1)
@click.option("--rate", type=Number(), help="The resolver's rate limit, in calls per second.")
@_REASON
@click.pass_obj
def set_(
    command: BreakerCommand, name: str, fields: tuple[str, ...], rate: float | None, reason: str
) -> None:
    """Change fields of a breaker's policy, such as fail_max=3, or a resolver's rate limit.

    NAME may be `defaults`, for all. `effaced breaker undo` reverts the last change.
    """
    changes = {PolicyKind.BREAKER: parse_fields(fields)}
    if rate is not None:
        changes[PolicyKind.RATE] = {"rate_per_second": rate}
    if not any(changes.values()):
        raise click.UsageError("Name a field to change, such as fail_max=3, or give --rate.")
    with command.opened() as runtime:
        named = DEFAULTS if name == DEFAULTS else _named(runtime, name)
        with runtime.db.begin() as session:
            note = write_note(session, runtime.keyring, reason, author=_ACTOR)
            replaced = runtime.breaker_policies_in_force(session).replaced_by(
                named, changes[PolicyKind.BREAKER]
            )
            for kind, values in changes.items():
                if values:
                    policies = runtime.breaker_policies_in_force(session)
                    change_policy(session, policies, named, kind, values, actor=_ACTOR, note=note)
    click.echo(f"{named} is changed; every process follows within 5 seconds.")
    if replaced:
        click.echo(describe_replaced_overrides(replaced))


@click.command()
@_window(WINDOW_S)
@click.option("--enforce", is_flag=True, help="Apply them; `effaced breaker undo` reverts.")
@click.option("--reason", help="Why; with --enforce it is kept in the audit trail's notes.")
@_JSON
@click.pass_obj
def advise(
    command: BreakerCommand, window_s: float, enforce: bool, reason: str | None, as_json: bool
) -> None:
    """Suggest changes of policies and rates, with reasons. Changes nothing without --enforce."""
    if enforce and reason is None:
        raise click.UsageError("--enforce needs a --reason.")
    with command.opened() as runtime:
        if enforce:
            with runtime.db.begin() as session:
                advisor, tuner = runtime.advisor(session, window_s), runtime.tuner(session)
                note = write_note(session, runtime.keyring, reason or "", author=_ACTOR)
                plans = tuner.enforce(advisor, actor=_ACTOR, note=note)
        else:
            with runtime.db.read() as session:
                plans = runtime.tuner(session).suggest(runtime.advisor(session, window_s))
    if as_json:
        _print_json({"enforced": enforce, "plans": [each.as_dict() for each in plans]})
    else:
        breaker_show.print_plans(plans, enforced=enforce)


@click.command()
@_NAME
@click.option(
    "--what",
    type=click.Choice([PolicyKind.BREAKER.value, PolicyKind.RATE.value]),
    help="Its policy, or its rate limit; by default whichever was changed last.",
)
@_REASON
@click.pass_obj
def undo(command: BreakerCommand, name: str, what: str | None, reason: str) -> None:
    """Revert the last change of a breaker's policy or of its rate limit. NAME may be `defaults`."""
    with command.opened() as runtime:
        named = DEFAULTS if name == DEFAULTS else _named(runtime, name)
        with runtime.db.begin() as session:
            note = write_note(session, runtime.keyring, reason, author=_ACTOR)
            kind = PolicyKind(what) if what else None
            undone = undo_last(session, named, actor=_ACTOR, note=note, kind=kind)
        left = ", ".join(f"{field} {value}" for field, value in undone.body.items()) or "nothing"
    click.echo(f"Undone. Changed at run time of this {undone.target.kind.value} policy is now: {left}.")


def _named(runtime: Runtime, text: str) -> str:
    stored = [each.service_name for each in runtime.breakers.store.load_all()]
    return find_name(text, runtime.called, stored)


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))
