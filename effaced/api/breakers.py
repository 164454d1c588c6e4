"""Breakers over HTTP: their states, transitions and policies, and manual control."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response, jsonify, request
from pydantic import Field, StringConstraints
from sqlalchemy.orm import Session

from effaced.accounts.scopes import Scope
from effaced.accounts.tables import ApiKey
from effaced.api.arguments import limit_of, number_of, only
from effaced.api.auth import require_key
from effaced.api.bodies import Body, read_body
from effaced.api.current import current_runtime
from effaced.audit.notes import LONGEST, write_note
from effaced.breakers import transitions
from effaced.breakers.advice.metrics import WINDOW_S
from effaced.breakers.advice.tuner import change_policy, undo
from effaced.breakers.control import BreakerControl
from effaced.breakers.layered.forensics import read_outages
from effaced.breakers.policy import DEFAULTS
from effaced.breakers.telemetry import DAY_S, KEPT, LONGEST_S, SHORTEST_S, summary
from effaced.breakers.view import find_name, read_views, transition_dict
from effaced.core import clock
from effaced.core.errors import Problem, Refused
from effaced.model import PolicyKind

blueprint = Blueprint("breakers", __name__)
Reason = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST)]


class ReasonBody(Body):
    reason: Reason


class PinBody(ReasonBody):
    """A pin, for this many seconds; by default 90 minutes."""

    seconds: float | None = None


class ResetBody(ReasonBody):
    """Whether to reset the breaker of the resolver's host too."""

    include_host: bool = False


class PolicyBody(ReasonBody):
    """Fields of the breaker policy to change, and the rate limit; what is not named stays."""

    fields: dict[str, Any] = Field(default_factory=dict)
    rate_per_second: float | None = None


class ApplyBody(ReasonBody):
    """Which breakers' advice to apply (by default all), and its window."""

    breakers: Annotated[list[str], Field(min_length=1, max_length=500)] | None = None
    window_s: float = WINDOW_S


def _require_read_key() -> ApiKey:
    return require_key(current_runtime().db, Scope.OPERATE_READ)


def _operator() -> str:
    return f"api_key:{require_key(current_runtime().db, Scope.OPERATE_WRITE).id}"


# --- reading ---


@blueprint.get("")
def index() -> Response:
    """All breakers: of every resolver, every host, and what else is stored."""
    _require_read_key()
    only(request.args)
    return jsonify({"breakers": _shown(None)})


@blueprint.get("/<name>")
def show(name: str) -> Response:
    _require_read_key()
    return _breaker_response(_named(name))


@blueprint.get("/transitions")
def all_transitions() -> Response:
    """The transitions of all breakers, newest first."""
    _require_read_key()
    return _transitions(None)


@blueprint.get("/<name>/transitions")
def transitions_of(name: str) -> Response:
    _require_read_key()
    return _transitions(_named(name))


@blueprint.get("/<name>/policy")
def policy(name: str) -> Response:
    """The policy in force for each role, the rate in force, and what of both was changed at run time."""
    _require_read_key()
    return _policy(_named_or_defaults(name))


@blueprint.get("/summary")
def show_summary() -> Response:
    """Opens per hour, time saved, success after open and reasons, by breaker."""
    _require_read_key()
    runtime, window_s = current_runtime(), _window(DAY_S)
    with runtime.db.read() as session:
        found = summary(session, runtime.called, window_s)
    return jsonify({"window_s": window_s, "breakers": [each.as_dict() for each in found]})


@blueprint.get("/outages")
def outages() -> Response:
    """What a shared store did not take while it was away, and how the differences were resolved."""
    _require_read_key()
    window_s = _window(DAY_S, longest=round(KEPT.total_seconds()))
    with current_runtime().db.read() as session:
        return jsonify({"window_s": window_s, **read_outages(session, window_s)})


@blueprint.get("/advice")
def advice() -> Response:
    """Suggested changes, with reasons. Changes nothing."""
    _require_read_key()
    runtime, window_s = current_runtime(), _window(WINDOW_S)
    with runtime.db.read() as session:
        plans = runtime.tuner(session).suggest(runtime.advisor(session, window_s))
    return jsonify({"window_s": window_s, "plans": [each.as_dict() for each in plans]})


# --- changing ---


@blueprint.post("/<name>/open")
def force_open(name: str) -> Response:
    """Let no call through for a while."""
    actor, breaker, body = _operator(), _named(name), read_body(request, PinBody)
    with current_runtime().db.begin() as session:
        _control(session, actor).force_open(breaker, reason=body.reason, seconds=body.seconds)
    return _breaker_response(breaker)


@blueprint.post("/<name>/close")
def force_close(name: str) -> Response:
    """Let every call through for a while."""
    actor, breaker, body = _operator(), _named(name), read_body(request, PinBody)
    with current_runtime().db.begin() as session:
        _control(session, actor).force_close(breaker, reason=body.reason, seconds=body.seconds)
    return _breaker_response(breaker)


@blueprint.post("/<name>/unpin")
def unpin(name: str) -> Response:
    """Remove a pin and keep the state."""
    actor, breaker, body = _operator(), _named(name), read_body(request, ReasonBody)
    with current_runtime().db.begin() as session:
        _control(session, actor).unpin(breaker, reason=body.reason)
    return _breaker_response(breaker)


@blueprint.post("/<name>/reset")
def reset(name: str) -> Response:
    """Close it and clear everything. `blocked_by_host` names a host's breaker that still blocks."""
    actor, breaker, body = _operator(), _named(name), read_body(request, ResetBody)
    with current_runtime().db.begin() as session:
        _control(session, actor).reset(breaker, reason=body.reason, include_host=body.include_host)
    return _breaker_response(breaker)


@blueprint.post("/<name>/delete")
def delete(name: str) -> Response:
    """Delete the breaker of a system that is not configured any more."""
    actor, breaker, body = _operator(), _named(name), read_body(request, ReasonBody)
    with current_runtime().db.begin() as session:
        _control(session, actor).delete(breaker, reason=body.reason)
    return jsonify({"name": breaker, "deleted": True})


@blueprint.put("/<name>/policy")
def change(name: str) -> Response:
    """Change fields of a breaker's policy or a resolver's rate; `defaults` changes them for all."""
    actor, runtime, breaker = _operator(), current_runtime(), _named_or_defaults(name)
    body = read_body(request, PolicyBody)
    if not body.fields and body.rate_per_second is None:
        problem = Problem("fields", "must name a field to change, if rate_per_second is not given")
        raise Refused("The request body is invalid.", problems=[problem])
    changes: dict[PolicyKind, dict[str, Any]] = {PolicyKind.BREAKER: body.fields}
    if body.rate_per_second is not None:
        changes[PolicyKind.RATE] = {"rate_per_second": body.rate_per_second}
    with runtime.db.begin() as session:
        note = write_note(session, runtime.keyring, body.reason, author=actor)
        for kind, fields in changes.items():
            if fields:
                policies = runtime.breaker_policies_in_force(session)
                change_policy(session, policies, breaker, kind, fields, actor=actor, note=note)
    runtime.breakers.refresh_policies()
    return _policy(breaker)


@blueprint.post("/advice/apply")
def apply() -> Response:
    """Apply the current advice; the answer says what was changed, and from what."""
    actor, runtime, body = _operator(), current_runtime(), read_body(request, ApplyBody)
    chosen = None if body.breakers is None else [_named(each) for each in body.breakers]
    with runtime.db.begin() as session:
        advisor, tuner = runtime.advisor(session, body.window_s), runtime.tuner(session)
        note = write_note(session, runtime.keyring, body.reason, author=actor)
        plans = tuner.enforce(advisor, actor=actor, note=note, only=chosen)
    runtime.breakers.refresh_policies()
    return jsonify({"window_s": body.window_s, "applied": [each.as_dict() for each in plans]})


@blueprint.post("/<name>/undo")
def undo_last(name: str) -> Response:
    """Go back to before the last change of its policy or rate limit."""
    actor, runtime, breaker = _operator(), current_runtime(), _named_or_defaults(name)
    body = read_body(request, ReasonBody)
    with runtime.db.begin() as session:
        note = write_note(session, runtime.keyring, body.reason, author=actor)
        undone = undo(session, breaker, actor=actor, note=note)
    runtime.breakers.refresh_policies()
    told = {"kind": undone.target.kind.value, "override": dict(undone.body), "version": undone.version}
    return jsonify({"name": breaker, **told, "changed_at": clock.text(undone.changed_at)})


# --- helpers ---


def _named(name: str) -> str:
    runtime = current_runtime()
    stored = [each.service_name for each in runtime.breakers.store.load_all()]
    return find_name(name, runtime.called, stored)


def _named_or_defaults(name: str) -> str:
    return DEFAULTS if name == DEFAULTS else _named(name)


def _control(session: Session, actor: str) -> BreakerControl:
    runtime = current_runtime()
    return BreakerControl(session, runtime.breakers, runtime.keyring, runtime.called, actor)


def _policy(name: str) -> Response:
    with current_runtime().db.read() as session:
        return jsonify(current_runtime().policy_in_force(session, name).as_dict())


def _breaker_response(name: str) -> Response:
    return jsonify(_shown([name])[0])


def _shown(names: list[str] | None) -> list[dict[str, Any]]:
    runtime = current_runtime()
    with runtime.db.read() as session:
        found = read_views(session, runtime.breakers, runtime.keyring, runtime.called, names)
    return [each.as_dict() for each in found]


def _transitions(name: str | None) -> Response:
    only(request.args, "after", "limit")
    after, limit = request.args.get("after") or None, limit_of(request.args)
    with current_runtime().db.read() as session:
        page = transitions.page(session, None if name is None else [name], after=after, limit=limit)
    return jsonify({"transitions": [transition_dict(each) for each in page.items], "next": page.next})


def _window(default: int, longest: int = LONGEST_S) -> int:
    only(request.args, "window_s")
    return number_of(request.args, "window_s", SHORTEST_S, longest, default)
