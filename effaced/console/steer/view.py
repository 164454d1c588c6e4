"""Before a breaker or a system is steered: what will happen, for how long, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from flask import Blueprint, abort, request
from flask import Response as Page
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from effaced.breakers.control import BreakerControl, blocking_host
from effaced.breakers.model import StoreUnavailable, host_name, resolver_name
from effaced.breakers.telemetry import resolvers_of
from effaced.console.current import me, runtime
from effaced.console.htmx import render
from effaced.console.resolver.page import back, find
from effaced.core.errors import Conflict, Problem, Refused
from effaced.triage import pause as steer

blueprint = Blueprint("steer", __name__)
_MOST_MINUTES = 30 * 24 * 60


class Verb(StrEnum):
    """What can be done, as the address says it."""

    OPEN = "open"
    CLOSE = "close"
    UNPIN = "unpin"
    RESET = "reset"
    PAUSE = "pause"
    RESUME = "resume"


@dataclass(frozen=True, slots=True)
class Plan:
    """One act on one thing: a breaker, or the flow of a system."""

    verb: Verb
    breaker: str
    on_host: bool

    @property
    def timed(self) -> bool:
        return self.verb not in (Verb.UNPIN, Verb.RESET, Verb.RESUME)

    @property
    def unit(self) -> str:
        return "hours" if self.verb is Verb.PAUSE else "minutes"


@dataclass(frozen=True, slots=True)
class Typed:
    reason: str = ""
    time: str = ""
    error: str | None = None
    field: str = ""


@blueprint.get("/resolvers/<name>/steer/<verb>")
def confirm(name: str, verb: str) -> Response:
    plan = _plan(name, verb)
    return _page(name, plan, Typed(time="90" if plan.unit == "minutes" else ""))


@blueprint.post("/resolvers/<name>/steer/<verb>")
def act(name: str, verb: str) -> Response:
    plan, form = _plan(name, verb), request.form
    try:
        with runtime().db.begin() as session:
            if name not in runtime().registry:
                raise Refused(f"{name} is not configured any more.")
            time = _time(plan, form.get("time", "")) if plan.timed else 0.0
            _ACTS[plan.verb](session, name, plan, time, form.get("reason", ""))
    except Refused as error:
        where = error.problems[0].where if error.problems else ""
        field = "time" if where in ("time", "hours", "seconds") else "reason"
        return _page(name, plan, Typed(form.get("reason", ""), form.get("time", ""), error.message, field))
    except Conflict as error:
        return back(name, error.message, tone="warn")
    except StoreUnavailable:
        return back(name, "The breaker store does not answer. Nothing was changed.", tone="bad")
    return back(name, _confirmation(name, plan))


def _plan(name: str, verb: str) -> Plan:
    if verb not in list(Verb):
        abort(404)
    on_host = request.values.get("breaker") == "host"
    host = runtime().registry.get(name).host if name in runtime().registry else None
    if on_host and (host is None or verb in (Verb.PAUSE, Verb.RESUME)):
        abort(404)
    breaker = host_name(host) if on_host and host else resolver_name(name)
    return Plan(Verb(verb), breaker, on_host)


def _time(plan: Plan, text: str) -> float:
    """Minutes of a pin, hours of a pause."""
    most = steer.MOST_HOURS if plan.verb is Verb.PAUSE else _MOST_MINUTES
    try:
        value = float(text.strip().replace(",", "."))
    except ValueError:
        value = 0.0
    if not 0 < value <= most:
        said = f"must be a number above 0 and at most {most}"
        raise Refused(f"The {plan.unit} {said}.", problems=[Problem("time", said)])
    return value


def _open(session: Session, _name: str, plan: Plan, minutes: float, reason: str) -> None:
    _control(session).force_open(plan.breaker, reason=reason, seconds=minutes * 60)


def _close(session: Session, _name: str, plan: Plan, minutes: float, reason: str) -> None:
    _control(session).force_close(plan.breaker, reason=reason, seconds=minutes * 60)


def _unpin(session: Session, _name: str, plan: Plan, _minutes: float, reason: str) -> None:
    _control(session).unpin(plan.breaker, reason=reason)


def _reset(session: Session, _name: str, plan: Plan, _minutes: float, reason: str) -> None:
    include_host = request.form.get("include_host") == "yes"
    _control(session).reset(plan.breaker, reason=reason, include_host=include_host)


def _control(session: Session) -> BreakerControl:
    return BreakerControl(session, runtime().breakers, runtime().keyring, runtime().called, me().actor)


def _pause(session: Session, name: str, _plan: Plan, hours: float, reason: str) -> None:
    steer.pause(session, runtime().keyring, name, actor=me().actor, reason=reason, hours=hours)


def _resume(session: Session, name: str, _plan: Plan, _time: float, reason: str) -> None:
    steer.resume(session, runtime().keyring, name, actor=me().actor, reason=reason)


_ACTS: dict[Verb, Callable[[Session, str, Plan, float, str], None]] = {
    Verb.OPEN: _open,
    Verb.CLOSE: _close,
    Verb.UNPIN: _unpin,
    Verb.RESET: _reset,
    Verb.PAUSE: _pause,
    Verb.RESUME: _resume,
}


def _page(name: str, plan: Plan, typed: Typed) -> Page:
    with runtime().db.read() as session:
        view = find(session, name)
    return render(
        "console/steer/index.html",
        "console/steer/_form.html",
        422 if typed.error else 200,
        view=view,
        plan=plan,
        typed=typed,
        # Who else is on that host, and is steered with it.
        shared=[each for each in resolvers_of(plan.breaker, runtime().called) if each != name],
        key=plan.breaker.partition(":")[2],
    )


def _host_still_blocks(name: str, plan: Plan) -> str:
    """A sentence to append if the host's breaker still blocks calls to this resolver; else empty."""
    host = blocking_host(runtime().breakers, plan.breaker, runtime().called)
    return f" The breaker of its host {host.partition(':')[2]} still blocks calls to {name}." if host else ""


def _confirmation(name: str, plan: Plan) -> str:
    whose = f"the host {plan.breaker.partition(':')[2]}" if plan.on_host else name
    if plan.verb is Verb.RESET:
        return f"The breaker of {whose} was reset.{_host_still_blocks(name, plan)}"
    return {
        Verb.OPEN: f"The breaker of {whose} is pinned open.",
        Verb.CLOSE: f"The breaker of {whose} is pinned closed.",
        Verb.UNPIN: f"The breaker of {whose} was unpinned.",
        Verb.PAUSE: f"{name} is paused.",
        Verb.RESUME: f"{name} is resumed.",
    }[plan.verb]
