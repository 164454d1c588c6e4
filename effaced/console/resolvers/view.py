"""Resolvers: are our vendors well, and what waits for them? And: pause, resume."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from flask import Blueprint, make_response, render_template, request, url_for
from flask import Response as Page
from werkzeug.wrappers import Response

from effaced.console.current import me, runtime
from effaced.console.htmx import go_to, render, say, wants_fragment
from effaced.console.resolver.breakers import not_closed
from effaced.console.resolver.read import all_systems
from effaced.console.urls import not_allowed, word_arg
from effaced.core.errors import Conflict, Problem, Refused
from effaced.outbox.flow import ALL, pauses
from effaced.triage import pause as steer
from effaced.triage.systems import current_pauses

blueprint = Blueprint("resolvers", __name__)


class State(StrEnum):
    """What the list can be narrowed to."""

    PAUSED = "paused"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed for which resolver, and why it was refused."""

    resolver: str
    reason: str
    hours: str
    error: str
    field: str


@blueprint.get("/resolvers")
def index() -> Response:
    if "seen" in request.args and wants_fragment():
        return _pulse()
    return _page()


def _pulse() -> Response:
    """What a poll brings: the breakers in their places, or nothing while none has moved."""
    with runtime().db.read() as session:
        found = all_systems(session)
    if not found.counting and request.args["seen"] == found.version:
        return make_response("", 204)
    return make_response(render_template("console/resolvers/_pulse.html", found=found, oob=True))


@blueprint.post("/resolvers/pause")
def pause() -> Response:
    """Have nothing more called, of one system or of all."""
    name, hours = _name(), request.form.get("hours", "").strip()
    try:
        with runtime().db.begin() as session:
            steer.pause(
                session,
                runtime().keyring,
                name,
                actor=me().actor,
                reason=request.form.get("reason", ""),
                hours=_hours(hours),
            )
    except Refused as error:
        return _page(_typed(name, error))
    except Conflict as error:
        return _done(error.message, tone="warn")
    return _done("All systems are paused." if name == ALL else f"{name} is paused.")


@blueprint.post("/resolvers/resume")
def resume() -> Response:
    name, reason = _name(), request.form.get("reason", "")
    try:
        with runtime().db.begin() as session:
            steer.resume(session, runtime().keyring, name, actor=me().actor, reason=reason)
    except Refused as error:
        return _page(_typed(name, error))
    except Conflict as error:
        return _done(error.message, tone="warn")
    return _done("All systems are resumed." if name == ALL else f"{name} is resumed.")


def _name() -> str:
    """The resolver of the form: one that is configured, one that is paused, or `*`."""
    name = request.form.get("resolver", "")
    with runtime().db.read() as session:
        known = {ALL, *(each.name for each in runtime().registry), *pauses(session)}
    if name not in known:
        raise not_allowed("resolver", sorted(known))
    return name


def _hours(text: str) -> float | None:
    if not text:
        return None
    try:
        return float(text.replace(",", "."))
    except ValueError:
        said = Problem("hours", "must be a number")
        raise Refused("The hours of a pause must be a number.", problems=[said]) from None


def _typed(name: str, error: Refused) -> Typed:
    form = request.form
    return Typed(name, form.get("reason", ""), form.get("hours", ""), error.message, error.problems[0].where)


def _page(typed: Typed | None = None) -> Page:
    only = word_arg("state", State)
    with runtime().db.read() as session:
        found = all_systems(session)
        paused = current_pauses(session, runtime().keyring)
    shown = {
        State.PAUSED: paused.keys(),
        State.OPEN: not_closed(found.rows),
    }
    return render(
        "console/resolvers/index.html",
        "console/resolvers/_list.html",
        422 if typed else 200,
        found=found,
        views=[each for each in found.views if only is None or each.name in shown[only]],
        everything=paused.get(ALL),
        paused=paused,
        chosen=only,
        typed=typed,
        ALL=ALL,
    )


def _done(said: str, *, tone: str = "good") -> Response:
    if not wants_fragment():
        say(said, tone=tone)
        return go_to(url_for("console.resolvers.index"))
    response = _page()
    say(said, tone=tone, on=response)
    return response
