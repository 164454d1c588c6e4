"""Breakers over HTTP: their states, transitions and policies, and manual control.

Each call is one transaction. What a change brings is read in it, so that the answer is true and can be kept
for the same call again; this process reads the policies in force anew once the change is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from effaced.accounts.scopes import Scope
from effaced.api.breakers import models
from effaced.api.breakers.bodies import (
    AdviceQuery,
    ApplyBody,
    BreakerPolicyBody,
    OperatorBody,
    OutageQuery,
    PinBody,
    ResetBody,
    SummaryQuery,
)
from effaced.api.breakers.show import (
    show_advice,
    show_breaker,
    show_breakers,
    show_outages,
    show_policy,
    show_transition,
)
from effaced.api.models import PageQuery
from effaced.api.operations.call import Call
from effaced.api.operations.declare import Routes
from effaced.api.operations.validation import shown
from effaced.audit.notes import NoteRef, write_note
from effaced.breakers import telemetry, transitions
from effaced.breakers.advice.tuner import change_policy, undo
from effaced.breakers.control import BreakerControl
from effaced.breakers.policy import DEFAULTS, HOSTS, RESOLVERS
from effaced.breakers.view import find_name
from effaced.core.errors import NotFound, Problem, Refused
from effaced.model import PolicyKind

routes = Routes(
    "Breakers",
    "/api/v1/breakers",
    about="Circuit breakers keep calls from systems that are down. A breaker is named by its resolver (`crm`)"
    " or by scope and name (`resolver:crm`, `host:api.example`).",
)
_READ, _WRITE = Scope.OPERATE_READ, Scope.OPERATE_WRITE
_TYPED = ("pin.reason",)  # kept as a note, which can be forgotten
# So that the answer's problems stay a size that somebody reads.
_MOST_PROBLEMS = 50


# --- reading ---


@routes.get(scope=_READ)
def list_breakers(call: Call) -> models.BreakerList:
    """All breakers: of every resolver, of every host, and those of removed systems that are still stored."""
    return models.BreakerList(data=show_breakers(call))


@routes.get("/transitions", scope=_READ)
def list_transitions(call: Call, query: PageQuery) -> models.BreakerTransitionPage:
    """The transitions of all breakers, newest first."""
    return _transitions(call, None, query)


@routes.get("/summary", scope=_READ)
def get_breaker_summary(call: Call, query: SummaryQuery) -> models.BreakerSummaryList:
    """What each breaker did: opens per hour, time saved, success after open, and reasons."""
    found = telemetry.summary(call.session, call.runtime.called, query.window_s)
    data = [models.BreakerSummary.model_validate(each.as_dict()) for each in found]
    return models.BreakerSummaryList(window_s=query.window_s, data=data)


@routes.get("/outages", scope=_READ)
def get_outages(call: Call, query: OutageQuery) -> models.BreakerOutages:
    """What a shared store did not take while it was away, and how the differences were resolved.

    Only where breakers are in Redis.
    """
    return show_outages(call, query.window_s)


@routes.get("/advice", scope=_READ)
def get_advice(call: Call, query: AdviceQuery) -> models.BreakerAdviceList:
    """What the figures suggest to change, and why. Changes nothing."""
    runtime = call.runtime
    plans = runtime.tuner(call.session).suggest(runtime.advisor(call.session, query.window_s))
    return models.BreakerAdviceList(window_s=query.window_s, data=[show_advice(each) for each in plans])


@routes.get("/<breaker>", scope=_READ)
def get_breaker(call: Call, breaker: str) -> models.Breaker:
    """One breaker."""
    return show_breaker(call, _find(call, breaker))


@routes.get("/<breaker>/transitions", scope=_READ)
def list_breaker_transitions(call: Call, breaker: str, query: PageQuery) -> models.BreakerTransitionPage:
    """The transitions of one breaker, newest first."""
    return _transitions(call, _find(call, breaker), query)


@routes.get("/<breaker>/policy", scope=_READ)
def get_breaker_policy(call: Call, breaker: str) -> models.BreakerPolicy:
    """The policy in force for each role, and the rate limit; `defaults` are those of all."""
    return show_policy(call, _find_or_defaults(call, breaker))


# --- manual control ---


@routes.post("/<breaker>/open", scope=_WRITE, secrets=_TYPED)
def open_breaker(call: Call, breaker: str, body: PinBody) -> models.Breaker:
    """Let no call through for a while. What waits keeps its attempts."""
    name = _find(call, breaker)
    _control(call).force_open(name, reason=body.reason, seconds=body.seconds)
    return show_breaker(call, name)


@routes.post("/<breaker>/close", scope=_WRITE, secrets=_TYPED)
def close_breaker(call: Call, breaker: str, body: PinBody) -> models.Breaker:
    """Let every call through for a while, whatever its outcome."""
    name = _find(call, breaker)
    _control(call).force_close(name, reason=body.reason, seconds=body.seconds)
    return show_breaker(call, name)


@routes.post("/<breaker>/unpin", scope=_WRITE, secrets=_TYPED)
def unpin_breaker(call: Call, breaker: str, body: OperatorBody) -> models.Breaker:
    """Remove a pin and keep the state. 409 without a pin."""
    name = _find(call, breaker)
    _control(call).unpin(name, reason=body.reason)
    return show_breaker(call, name)


@routes.post("/<breaker>/reset", scope=_WRITE, secrets=_TYPED)
def reset_breaker(call: Call, breaker: str, body: ResetBody) -> models.Breaker:
    """Close it and clear counters, pin and cooldown.

    `blocked_by_host` of the answer names the host's breaker, if that still blocks.
    """
    name = _find(call, breaker)
    _control(call).reset(name, reason=body.reason, include_host=body.include_host)
    return show_breaker(call, name)


@routes.post("/<breaker>/delete", scope=_WRITE)
def delete_breaker(call: Call, breaker: str, body: OperatorBody) -> models.BreakerTransition:
    """Delete the breaker of a system that is not configured any more. 409 while it is.

    It is a POST because it needs a reason, and many clients and proxies drop the body of a DELETE.
    """
    return show_transition(_control(call).delete(_find(call, breaker), reason=body.reason))


# --- policies ---


@routes.put("/<breaker>/policy", scope=_WRITE)
def change_breaker_policy(call: Call, breaker: str, body: BreakerPolicyBody) -> models.BreakerPolicy:
    """Change fields of a breaker's policy or a resolver's rate limit; `defaults` changes them for all."""
    name = _find_or_defaults(call, breaker)
    changes: dict[PolicyKind, dict[str, Any]] = {PolicyKind.BREAKER: body.fields.stated()}
    if body.rate_per_second is not None:
        changes[PolicyKind.RATE] = {"rate_per_second": body.rate_per_second}
    if not any(changes.values()):
        said = "must name a field to change, if rate_per_second is not given"
        problems = [Problem("fields", said, code="empty")]
        raise Refused("The request body is invalid.", problems=problems)
    note = _note(call, body.reason)
    with _problems_of_body(name):
        for kind, fields in changes.items():
            if fields:
                policies = call.runtime.breaker_policies_in_force(call.session)
                change_policy(call.session, policies, name, kind, fields, actor=call.actor, note=note)
    return _changed(call, name)


@routes.post("/<breaker>/policy/undo", scope=_WRITE)
def undo_breaker_policy(call: Call, breaker: str, body: OperatorBody) -> models.UndonePolicy:
    """Go back to before the last change of its policy or rate limit. Undoing twice restores the change."""
    name = _find_or_defaults(call, breaker)
    undone = undo(call.session, name, actor=call.actor, note=_note(call, body.reason))
    call.after_commit(call.runtime.breakers.refresh_policies)
    return models.UndonePolicy(
        name=name,
        kind=undone.target.kind,
        override=dict(undone.body),
        version=undone.version,
        changed_at=undone.changed_at,
    )


@routes.post("/advice/apply", scope=_WRITE)
def apply_advice(call: Call, body: ApplyBody) -> models.BreakerAdviceList:
    """Apply the advice of this moment. The answer says what was changed, and from what."""
    chosen = None if body.breakers is None else _chosen(call, body.breakers)
    runtime = call.runtime
    advisor, tuner = runtime.advisor(call.session, body.window_s), runtime.tuner(call.session)
    plans = tuner.enforce(advisor, actor=call.actor, note=_note(call, body.reason), only=chosen)
    call.after_commit(runtime.breakers.refresh_policies)
    return models.BreakerAdviceList(window_s=body.window_s, data=[show_advice(each) for each in plans])


# --- helpers ---


def _names(call: Call) -> list[str]:
    return [each.service_name for each in call.runtime.breakers.within(call.session).store.load_all()]


def _find(call: Call, breaker: str) -> str:
    return find_name(breaker, call.runtime.called, _names(call))


def _find_or_defaults(call: Call, breaker: str) -> str:
    return DEFAULTS if breaker == DEFAULTS else _find(call, breaker)


def _chosen(call: Call, breakers: list[str]) -> list[str]:
    found, problems, names = [], [], _names(call)
    for place, each in enumerate(breakers):
        try:
            found.append(find_name(each, call.runtime.called, names))
        except NotFound as error:
            problems.append(Problem(f"breakers.{place}", error.message, code="unknown"))
    if problems:
        raise Refused("The request body is invalid.", problems=problems[:_MOST_PROBLEMS])
    return found


def _control(call: Call) -> BreakerControl:
    runtime = call.runtime
    return BreakerControl(call.session, runtime.breakers, runtime.keyring, runtime.called, call.actor)


def _note(call: Call, reason: str) -> NoteRef:
    return write_note(call.session, call.keyring, reason, author=call.actor)


def _changed(call: Call, name: str) -> models.BreakerPolicy:
    call.after_commit(call.runtime.breakers.refresh_policies)
    return show_policy(call, name)


def _transitions(call: Call, name: str | None, query: PageQuery) -> models.BreakerTransitionPage:
    names = None if name is None else [name]
    page = transitions.page(call.session, names, after=query.after, limit=query.limit)
    return models.BreakerTransitionPage(data=[show_transition(each) for each in page.items], next=page.next)


@contextmanager
def _problems_of_body(name: str) -> Iterator[None]:
    """Name the body's fields: the rules know a policy as a block of a file, such as `resolvers.crm`."""
    scope, _, key = name.partition(":")
    blocks = {DEFAULTS: DEFAULTS, "resolver": f"{RESOLVERS}.{key}", "host": f"{HOSTS}.{key}"}
    block = f"{blocks[scope]}."
    try:
        yield
    except Refused as error:
        problems = [
            Problem(_field(each.where, block), each.message, code=each.code)
            for each in error.problems[:_MOST_PROBLEMS]
        ]
        raise Refused(error.message, problems=problems) from None


def _field(where: str, block: str) -> str:
    if where == "name":  # of a host, for which there is no rate
        return "rate_per_second"
    if not where.startswith(block):
        return where
    return ".".join(["fields", *(shown(part) for part in where.removeprefix(block).split("."))])
