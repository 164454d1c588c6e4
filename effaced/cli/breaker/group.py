"""`effaced breaker ...`: how breakers stand, what they did, and what people do about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from effaced.audit.notes import write_note
from effaced.breakers import steer
from effaced.breakers.autotune import undo as undo_last
from effaced.breakers.model import host_name, resolver_name
from effaced.breakers.observe import WINDOW_S
from effaced.breakers.telemetry import DAY_S, resolvers_of
from effaced.breakers.telemetry import summary as summarise
from effaced.breakers.view import find_name, look
from effaced.cli.breaker import show as breaker_show
from effaced.cli.groups import Group
from effaced.core.config import Settings
from effaced.model import PolicyKind
from effaced.runtime import Runtime

F = TypeVar("F", bound=Callable[..., Any])
_ACTOR = "cli"
_JSON = click.option("--json", "as_json", is_flag=True, help="For programs.")
_NAME = click.argument("name")
_REASON = click.option("--reason", required=True, help="Why; it is kept in the audit trail's notes.")


def _seconds(required: bool) -> Callable[[F], F]:
    default = "" if required else " 90 minutes, if nothing is said."
    return click.option("--seconds", type=float, required=required, help=f"For how long.{default}")


def _window(default: int) -> Callable[[F], F]:
    said = "How far back, in seconds: 60 to 86400."
    return click.option("--window-s", type=float, default=default, show_default=True, help=said)


@dataclass(frozen=True)
class _Where:
    """What every command starts from."""

    settings: Settings
    overrides: Sequence[str]

    @contextmanager
    def opened(self) -> Iterator[Runtime]:
        runtime = Runtime(self.settings, breaker_overrides=self.overrides)
        try:
            _ = runtime.breaker_policies  # what is wrong with it is said before anything is done
            yield runtime
        finally:
            runtime.db.dispose()


@click.group(cls=Group)
@click.option(
    "--breaker",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="A policy's field for this command, such as defaults.fail_max=3; over file and environment.",
)
@click.pass_context
def breaker(context: click.Context, overrides: tuple[str, ...]) -> None:
    """How breakers stand, and what is suggested for them; hold one open or closed.

    NAME is a resolver, or host:NAME. What is done here holds in every process at once.
    """
    context.obj = _Where(context.obj, overrides)


# --- looking ---


@breaker.command()
@click.option("--resolver", metavar="NAME", help="Only this one's.")
@click.option("--host", metavar="NAME", help="Only this one's.")
@_JSON
@click.pass_obj
def show(where: _Where, resolver: str | None, host: str | None, as_json: bool) -> None:
    """Show every breaker: its state, until when it lets nothing through, and who has pinned it."""
    with where.opened() as runtime:
        asked = [resolver_name(resolver)] if resolver is not None else []
        asked += [host_name(host)] if host is not None else []
        names = [_named(runtime, each) for each in asked] or None
        with runtime.db.read() as session:
            found = look(session, runtime.breakers.repository, runtime.keyring, runtime.called, names)
    if as_json:
        _print_json([each.told() for each in found])
    else:
        breaker_show.breakers(found)


@breaker.command()
@_window(DAY_S)
@_JSON
@click.pass_obj
def summary(where: _Where, window_s: float, as_json: bool) -> None:
    """Show what breakers did: opens per hour, time saved (an estimate), how trials ended, reasons."""
    with where.opened() as runtime, runtime.db.read() as session:
        found = summarise(session, runtime.called, window_s)
    if as_json:
        _print_json([each.told() for each in found])
    else:
        breaker_show.summaries(found)


# --- steering ---


@breaker.command("open")
@_NAME
@_seconds(required=True)
@_REASON
@click.pass_obj
def force_open(where: _Where, name: str, seconds: float, reason: str) -> None:
    """Let no call through for a while. What waits keeps its attempts."""
    with where.opened() as runtime:
        named = _named(runtime, name)
        with runtime.db.begin() as session:
            made = steer.force_open(
                session, runtime.breakers, runtime.keyring, named,
                actor=_ACTOR, reason=reason, seconds=seconds,
            )  # fmt: skip
    click.echo(f"{named} is held open until {made.pinned_until:%Y-%m-%d %H:%M:%S} UTC.")


@breaker.command("close")
@_NAME
@_seconds(required=False)
@_REASON
@click.pass_obj
def force_close(where: _Where, name: str, seconds: float | None, reason: str) -> None:
    """Let every call through for a while, whatever comes of it."""
    with where.opened() as runtime:
        named = _named(runtime, name)
        with runtime.db.begin() as session:
            made = steer.force_close(
                session, runtime.breakers, runtime.keyring, named,
                actor=_ACTOR, reason=reason, seconds=seconds, resolvers=resolvers_of(named, runtime.called),
            )  # fmt: skip
    click.echo(f"{named} is held closed until {made.pinned_until:%Y-%m-%d %H:%M:%S} UTC.")


@breaker.command()
@_NAME
@_REASON
@click.pass_obj
def reset(where: _Where, name: str, reason: str) -> None:
    """Have it begin anew: closed, nothing counted, no pin, no cooldown."""
    with where.opened() as runtime:
        named = _named(runtime, name)
        with runtime.db.begin() as session:
            steer.reset(
                session, runtime.breakers, runtime.keyring, named,
                actor=_ACTOR, reason=reason, resolvers=resolvers_of(named, runtime.called),
            )  # fmt: skip
    click.echo(f"{named} begins anew.")


# --- tuning ---


@breaker.command()
@_window(WINDOW_S)
@click.option("--enforce", is_flag=True, help="Change it; `effaced breaker undo` goes back.")
@click.option("--reason", help="Why; with --enforce it is kept in the audit trail's notes.")
@_JSON
@click.pass_obj
def advise(where: _Where, window_s: float, enforce: bool, reason: str | None, as_json: bool) -> None:
    """Say what the figures of a while suggest, and why. Changes nothing without --enforce."""
    if enforce and reason is None:
        raise click.UsageError("With --enforce say why: --reason.")
    with where.opened() as runtime:
        if enforce:
            with runtime.db.begin() as session:
                advisor, tuner = runtime.advisor(session, window_s), runtime.tuner(session)
                note = write_note(session, runtime.keyring, reason or "", author=_ACTOR)
                plans = tuner.enforce(advisor, actor=_ACTOR, note=note)
        else:
            with runtime.db.read() as session:
                plans = runtime.tuner(session).suggest(runtime.advisor(session, window_s))
    if as_json:
        _print_json({"enforced": enforce, "plans": [each.told() for each in plans]})
    else:
        breaker_show.plans(plans, enforced=enforce)


@breaker.command()
@_NAME
@click.option(
    "--what",
    type=click.Choice([PolicyKind.BREAKER.value, PolicyKind.RATE.value]),
    help="Its policy, or its rate limit; whichever was changed last, if nothing is said.",
)
@_REASON
@click.pass_obj
def undo(where: _Where, name: str, what: str | None, reason: str) -> None:
    """Go back to before the last change of a breaker's policy or of its rate limit."""
    with where.opened() as runtime:
        named = _named(runtime, name)
        with runtime.db.begin() as session:
            note = write_note(session, runtime.keyring, reason, author=_ACTOR)
            kind = PolicyKind(what) if what else None
            undone = undo_last(session, named, actor=_ACTOR, note=note, kind=kind)
    left = ", ".join(f"{field} {value}" for field, value in undone.body.items()) or "nothing"
    click.echo(f"Undone. Changed at run time of this {undone.target.kind.value} policy is now: {left}.")


def _named(runtime: Runtime, text: str) -> str:
    stored = [each.service_name for each in runtime.breakers.repository.load_all()]
    return find_name(text, runtime.called, stored)


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))
