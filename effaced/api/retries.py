"""Retries over HTTP: the policy in force and how to change it, and what attempts have come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, jsonify, request
from sqlalchemy.orm import Session

from effaced.accounts.scopes import Scope, has_scope
from effaced.accounts.tables import ApiKey
from effaced.api.auth import require_key, require_operator_for
from effaced.api.bodies import PolicyBody, read_body
from effaced.api.current import current_runtime, find_request
from effaced.audit.notes import NoteRef, write_note
from effaced.core import clock
from effaced.core.errors import Conflict, NotFound, Problem, Refused
from effaced.core.strict import suggest
from effaced.model import PolicyKind, PolicyScope
from effaced.requests.tables import Request
from effaced.retries.count import known_resolvers
from effaced.retries.metrics import DEFAULT_HOURS, read_by_resolver, read_timeseries, require_hours, summary
from effaced.retries.overrides import (
    ALL,
    Override,
    Target,
    get_override,
    set_override,
    set_override_as_sender,
    undo_override,
)
from effaced.retries.policy import check_changes
from effaced.runtime import Runtime
from effaced.saga.rules import RuleBook

blueprint = Blueprint("retries", __name__)
of_requests = Blueprint("request_retries", __name__)
_GLOBAL = Target(PolicyKind.RETRY)


def _reader() -> ApiKey:
    return require_key(current_runtime().db, Scope.OPERATE_READ)


def _operator() -> ApiKey:
    return require_key(current_runtime().db, Scope.OPERATE_WRITE)


def _sender() -> ApiKey:
    return require_key(current_runtime().db, Scope.REQUESTS_WRITE)


# --- policies: of all, of a resolver ---


@blueprint.get("/policies/global")
def show_global() -> Response:
    _reader()
    return _show(_GLOBAL)


@blueprint.put("/policies/global")
def change_global() -> Response:
    return _change(_operator(), _GLOBAL)


@blueprint.delete("/policies/global")
def clear_global() -> Response:
    return _clear(_operator(), _GLOBAL)


@blueprint.post("/policies/global/undo")
def undo_global() -> Response:
    return _undo(_operator(), _GLOBAL)


@blueprint.get("/policies/resolvers/<name>")
def show_of_resolver(name: str) -> Response:
    _reader()
    return _show(_of_resolver(name))


@blueprint.put("/policies/resolvers/<name>")
def change_of_resolver(name: str) -> Response:
    return _change(_operator(), _of_resolver(name))


@blueprint.delete("/policies/resolvers/<name>")
def clear_of_resolver(name: str) -> Response:
    return _clear(_operator(), _of_resolver(name))


@blueprint.post("/policies/resolvers/<name>/undo")
def undo_of_resolver(name: str) -> Response:
    return _undo(_operator(), _of_resolver(name))


# --- policies: of a request that this key has sent ---


@of_requests.get("/<name>/retry")
def show_of_request(name: str) -> Response:
    return _show(_of_request(_sender(), name))


@of_requests.put("/<name>/retry")
def change_of_request(name: str) -> Response:
    key = _sender()
    return _change(key, _of_request(key, name, open_only=True))


@of_requests.delete("/<name>/retry")
def clear_of_request(name: str) -> Response:
    key = _sender()
    return _clear(key, _of_request(key, name))


# --- figures ---


@blueprint.get("/summary")
def show_summary() -> Response:
    """The last hours in short, of all resolvers or of one."""
    _reader()
    with current_runtime().db.read() as session:
        return jsonify(summary(session, _hours(), _asked_resolver(session)))


@blueprint.get("/timeseries")
def show_timeseries() -> Response:
    """The last hours one by one, the running one included."""
    _reader()
    hours = _hours()
    with current_runtime().db.read() as session:
        resolver = _asked_resolver(session)
        points = read_timeseries(session, hours, resolver)
    told = [{"hour": clock.text(each.hour), **each.figures.plain()} for each in points]
    return jsonify({"hours": hours, "resolver": resolver, "points": told})


@blueprint.get("/resolvers")
def show_by_resolver() -> Response:
    """The last hours in short, of each resolver."""
    _reader()
    hours = _hours()
    with current_runtime().db.read() as session:
        found = read_by_resolver(session, hours)
    told = [{"resolver": name, **each.plain()} for name, each in found.items() if name != ALL]
    return jsonify({"hours": hours, "resolvers": told})


# --- how it is done ---


def _show(target: Target) -> Response:
    runtime = current_runtime()
    with runtime.db.read() as session:
        return jsonify(_policy_json(session, runtime, target, get_override(session, target)))


def _change(key: ApiKey, target: Target) -> Response:
    runtime, body = current_runtime(), read_body(request, PolicyBody)
    require_operator_for(key, body.policy, under="policy")
    with runtime.db.begin() as session:
        changed = _putting(key)(
            session,
            target,
            body.policy,
            check=lambda changes: check_changes(changes, under="policy"),
            actor=_actor(key),
            note=_note(session, runtime, key, target, body.reason),
        )
        return jsonify(_policy_json(session, runtime, target, changed))


def _clear(key: ApiKey, target: Target) -> Response:
    runtime = current_runtime()
    with runtime.db.begin() as session:
        changed = _putting(key)(session, target, {}, check=check_changes, actor=_actor(key))
        return jsonify(_policy_json(session, runtime, target, changed))


def _putting(key: ApiKey) -> Callable[..., Override]:
    return set_override if has_scope(key.scopes, Scope.OPERATE_WRITE) else set_override_as_sender


def _undo(key: ApiKey, target: Target) -> Response:
    runtime = current_runtime()
    with runtime.db.begin() as session:
        changed = undo_override(session, target, actor=_actor(key))
        return jsonify(_policy_json(session, runtime, target, changed))


def _policy_json(
    session: Session, runtime: Runtime, target: Target, override: Override | None
) -> dict[str, Any]:
    resolver = target.key if target.scope is PolicyScope.RESOLVER else None
    book = RuleBook(runtime.policy, runtime.registry)
    policy = book.policy(session, resolver=resolver, request_id=target.request_id)
    changed = override if override and override.version else None
    return {
        "scope": target.scope.value,
        "key": None if target.scope is PolicyScope.GLOBAL else target.key,
        "policy": policy.model_dump(mode="json"),
        "override": dict(changed.body) if changed else {},
        "version": changed.version if changed else 0,
        "changed_at": clock.text(changed.changed_at) if changed else None,
        "changed_by": changed.changed_by if changed else None,
    }


def _of_resolver(name: str) -> Target:
    known = [each.name for each in current_runtime().registry]
    if name not in known:
        raise NotFound(f"No resolver has this name{suggest(name, known)}")
    return Target(PolicyKind.RETRY, PolicyScope.RESOLVER, name)


def _of_request(key: ApiKey, name: str, *, open_only: bool = False) -> Target:
    with current_runtime().db.read() as session:
        found: Request = find_request(session, key, name)
    if open_only and found.closed_at is not None:
        raise Conflict(f"Request {found.ref} is {found.status.value}: none of its calls is tried again.")
    return Target(PolicyKind.RETRY, PolicyScope.REQUEST, str(found.id))


def _note(
    session: Session, runtime: Runtime, key: ApiKey, target: Target, reason: str | None
) -> NoteRef | None:
    if reason is None:
        return None
    about = target.request_id
    return write_note(session, runtime.keyring, reason, author=_actor(key), request_id=about)


def _actor(key: ApiKey) -> str:
    return f"api_key:{key.id}"


def _hours() -> int:
    given = request.args.get("hours", str(DEFAULT_HOURS))
    if not given.isascii() or not given.isdecimal():
        raise Refused(
            "The parameter hours must be a number.", problems=[Problem("hours", "must be a number")]
        )
    hours = int(given[:9])
    require_hours(hours)
    return hours


def _asked_resolver(session: Session) -> str | None:
    name = request.args.get("resolver")
    if name is None:
        return None
    known = {each.name for each in current_runtime().registry} | set(known_resolvers(session))
    if name not in known:
        raise NotFound(f"No resolver has this name{suggest(name, known)}")
    return name
