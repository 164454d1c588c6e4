"""Breakers over HTTP: how they stand, what moved them, and what people do about it."""

from __future__ import annotations

from typing import Annotated, Any

from flask import Blueprint, Response, jsonify, request
from pydantic import Field, StringConstraints

from effaced.accounts.scopes import Scope
from effaced.accounts.tables import ApiKey
from effaced.api.arguments import limit_of, number_of, only
from effaced.api.auth import require_key
from effaced.api.bodies import Body, read_body
from effaced.api.current import current_runtime
from effaced.audit.notes import LONGEST, write_note
from effaced.breakers import steer, transitions
from effaced.breakers.autotune import target_of, undo
from effaced.breakers.model import BreakerRole
from effaced.breakers.observe import WINDOW_S
from effaced.breakers.telemetry import DAY_S, LONGEST_S, SHORTEST_S, resolvers_of, summary
from effaced.breakers.view import find_name, look, told_move
from effaced.core import clock
from effaced.model import PolicyKind
from effaced.retries.overrides import get

blueprint = Blueprint("breakers", __name__)
Reason = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST)]


class ReasonBody(Body):
    reason: Reason


class PinBody(ReasonBody):
    """A pin, for so many seconds; 90 minutes if nothing is said."""

    seconds: float | None = None


class ApplyBody(ReasonBody):
    """Which breakers' advice to follow (all, if nothing is said), and how far back it looks."""

    breakers: Annotated[list[str], Field(min_length=1, max_length=500)] | None = None
    window_s: float = WINDOW_S


def _reader() -> ApiKey:
    return require_key(current_runtime().db, Scope.OPERATE_READ)


def _operator() -> str:
    return f"api_key:{require_key(current_runtime().db, Scope.OPERATE_WRITE).id}"


# --- looking ---


@blueprint.get("")
def index() -> Response:
    """All breakers: of every resolver, of every host, and what else is stored."""
    _reader()
    only(request.args)
    return jsonify({"breakers": _shown(None)})


@blueprint.get("/<name>")
def show(name: str) -> Response:
    _reader()
    return _one(_named(name))


@blueprint.get("/transitions")
def all_moves() -> Response:
    """The moves of all breakers, the latest first."""
    _reader()
    return _moves(None)


@blueprint.get("/<name>/transitions")
def moves(name: str) -> Response:
    _reader()
    return _moves(_named(name))


@blueprint.get("/<name>/policy")
def policy(name: str) -> Response:
    """The policy in force for each role, and what of it was changed at run time."""
    _reader()
    runtime, breaker = current_runtime(), _named(name)
    with runtime.db.read() as session:
        policies = runtime.breaker_policies_in_force(session)
        changed = {
            kind: get(session, target_of(breaker, kind)) for kind in (PolicyKind.BREAKER, PolicyKind.RATE)
        }
    told = {kind.value: dict(each.body) if each else {} for kind, each in changed.items()}
    roles = {role.value: _plain(policies.named(breaker, role).model_dump()) for role in BreakerRole}
    return jsonify({"name": breaker, "roles": roles, "overrides": told})


@blueprint.get("/summary")
def show_summary() -> Response:
    """Opens per hour, time saved, success after open and reasons, breaker by breaker."""
    _reader()
    runtime, window_s = current_runtime(), _window(DAY_S)
    with runtime.db.read() as session:
        found = summary(session, runtime.called, window_s)
    return jsonify({"window_s": window_s, "breakers": [each.told() for each in found]})


@blueprint.get("/advice")
def advice() -> Response:
    """What the figures suggest. Changes nothing."""
    _reader()
    runtime, window_s = current_runtime(), _window(WINDOW_S)
    with runtime.db.read() as session:
        plans = runtime.tuner(session).suggest(runtime.advisor(session, window_s))
    return jsonify({"window_s": window_s, "plans": [each.told() for each in plans]})


# --- changing ---


@blueprint.post("/<name>/open")
def force_open(name: str) -> Response:
    """Let nothing through for a while."""
    actor, runtime, breaker = _operator(), current_runtime(), _named(name)
    body = read_body(request, PinBody)
    with runtime.db.begin() as session:
        steer.force_open(
            session, runtime.breakers, runtime.keyring, breaker,
            actor=actor, reason=body.reason, seconds=body.seconds,
        )  # fmt: skip
    return _one(breaker)


@blueprint.post("/<name>/close")
def force_close(name: str) -> Response:
    """Let everything through for a while."""
    actor, runtime, breaker = _operator(), current_runtime(), _named(name)
    body = read_body(request, PinBody)
    with runtime.db.begin() as session:
        steer.force_close(
            session, runtime.breakers, runtime.keyring, breaker,
            actor=actor, reason=body.reason, seconds=body.seconds,
            resolvers=resolvers_of(breaker, runtime.called),
        )  # fmt: skip
    return _one(breaker)


@blueprint.post("/<name>/reset")
def reset(name: str) -> Response:
    """Have it begin anew."""
    actor, runtime, breaker = _operator(), current_runtime(), _named(name)
    body = read_body(request, ReasonBody)
    with runtime.db.begin() as session:
        steer.reset(
            session, runtime.breakers, runtime.keyring, breaker,
            actor=actor, reason=body.reason, resolvers=resolvers_of(breaker, runtime.called),
        )  # fmt: skip
    return _one(breaker)


@blueprint.post("/advice/apply")
def apply() -> Response:
    """Follow the advice of this moment; what has been changed, and from what."""
    actor, runtime, body = _operator(), current_runtime(), read_body(request, ApplyBody)
    chosen = None if body.breakers is None else [_named(each) for each in body.breakers]
    with runtime.db.begin() as session:
        advisor, tuner = runtime.advisor(session, body.window_s), runtime.tuner(session)
        note = write_note(session, runtime.keyring, body.reason, author=actor)
        plans = tuner.enforce(advisor, actor=actor, note=note, only=chosen)
    return jsonify({"window_s": body.window_s, "applied": [each.told() for each in plans]})


@blueprint.post("/<name>/undo")
def undo_last(name: str) -> Response:
    """Go back to before the last change of its policy or rate limit."""
    actor, runtime, breaker = _operator(), current_runtime(), _named(name)
    body = read_body(request, ReasonBody)
    with runtime.db.begin() as session:
        note = write_note(session, runtime.keyring, body.reason, author=actor)
        undone = undo(session, breaker, actor=actor, note=note)
    told = {"kind": undone.target.kind.value, "override": dict(undone.body), "version": undone.version}
    return jsonify({"name": breaker, **told, "changed_at": clock.text(undone.changed_at)})


# --- how it is done ---


def _named(name: str) -> str:
    runtime = current_runtime()
    stored = [each.service_name for each in runtime.breakers.repository.load_all()]
    return find_name(name, runtime.called, stored)


def _one(name: str) -> Response:
    return jsonify(_shown([name])[0])


def _shown(names: list[str] | None) -> list[dict[str, Any]]:
    runtime = current_runtime()
    with runtime.db.read() as session:
        found = look(session, runtime.breakers.repository, runtime.keyring, runtime.called, names)
    return [each.told() for each in found]


def _moves(name: str | None) -> Response:
    only(request.args, "after", "limit")
    after, limit = request.args.get("after") or None, limit_of(request.args)
    with current_runtime().db.read() as session:
        page = transitions.page(session, None if name is None else [name], after=after, limit=limit)
    return jsonify({"transitions": [told_move(each) for each in page.items], "next": page.next})


def _window(default: int) -> int:
    only(request.args, "window_s")
    return number_of(request.args, "window_s", SHORTEST_S, LONGEST_S, default)


def _plain(value: Any) -> Any:
    """A policy for programs: sets of statuses as sorted lists."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return sorted(value) if isinstance(value, frozenset) else value
