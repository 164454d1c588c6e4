"""Retries over HTTP: the policy in force and how to change it, and figures of attempts."""

from __future__ import annotations

from effaced.accounts.scopes import Scope
from effaced.api.operations.call import Call
from effaced.api.operations.declare import Routes
from effaced.api.requests.find import find_request
from effaced.api.retries import models, policies
from effaced.api.retries.models import FiguresQuery, HoursQuery, RetryPolicyBody
from effaced.core.errors import Conflict, NotFound, Problem, Refused
from effaced.core.strict import suggest
from effaced.model import PolicyKind, PolicyScope
from effaced.requests.tables import Request
from effaced.retries.count import known_resolvers
from effaced.retries.metrics import read_by_resolver, read_timeseries, summary
from effaced.retries.overrides import ALL, Target

routes = Routes(
    "Retries", "/api/v1/retries", about="When calls are tried again, and what their attempts have come to."
)
of_requests = Routes(
    "Retries of a request", "/api/v1/requests", about="When the calls of one request are tried again."
)
_READ, _WRITE, _SEND = Scope.OPERATE_READ, Scope.OPERATE_WRITE, Scope.REQUESTS_WRITE


# --- policies: of all, of a resolver ---


@routes.get("/policies/global", scope=_READ)
def get_global_retry_policy(call: Call) -> models.RetryPolicy:
    """The policy of everything."""
    return policies.show(call, policies.GLOBAL)


@routes.put("/policies/global", scope=_WRITE)
def set_global_retry_policy(call: Call, body: RetryPolicyBody) -> models.RetryPolicy:
    """Say which fields differ from the settings, for everything."""
    return policies.change(call, policies.GLOBAL, body)


@routes.delete("/policies/global", scope=_WRITE)
def delete_global_retry_policy(call: Call) -> models.RetryPolicy:
    """Let nothing differ from the settings. The answer is what is in force then."""
    return policies.clear(call, policies.GLOBAL)


@routes.post("/policies/global/undo", scope=_WRITE)
def undo_global_retry_policy(call: Call) -> models.RetryPolicy:
    """Go back to before the last change. Undoing twice restores it."""
    return policies.undo(call, policies.GLOBAL)


@routes.get("/policies/resolvers/<resolver>", scope=_READ)
def get_resolver_retry_policy(call: Call, resolver: str) -> models.RetryPolicy:
    """The policy of one resolver."""
    return policies.show(call, policies.of_resolver(call, resolver))


@routes.put("/policies/resolvers/<resolver>", scope=_WRITE)
def set_resolver_retry_policy(call: Call, resolver: str, body: RetryPolicyBody) -> models.RetryPolicy:
    """Say which fields differ for one resolver."""
    return policies.change(call, policies.of_resolver(call, resolver), body)


@routes.delete("/policies/resolvers/<resolver>", scope=_WRITE)
def delete_resolver_retry_policy(call: Call, resolver: str) -> models.RetryPolicy:
    """Let nothing differ for one resolver. The answer is what is in force then."""
    return policies.clear(call, policies.of_resolver(call, resolver))


@routes.post("/policies/resolvers/<resolver>/undo", scope=_WRITE)
def undo_resolver_retry_policy(call: Call, resolver: str) -> models.RetryPolicy:
    """Go back to before the last change. Undoing twice restores it."""
    return policies.undo(call, policies.of_resolver(call, resolver))


# --- policies: of a request that this key has sent ---


@of_requests.get("/<request_id>/retry", scope=_SEND)
def get_request_retry_policy(call: Call, request_id: str) -> models.RetryPolicy:
    """The policy of one request that this key has sent."""
    return policies.show(call, _target(_own(call, request_id)))


@of_requests.put("/<request_id>/retry", scope=_SEND)
def set_request_retry_policy(call: Call, request_id: str, body: RetryPolicyBody) -> models.RetryPolicy:
    """Say which fields differ for one open request that this key has sent.

    `retry_non_idempotent` can only be set with `operate:write`; without it, a change leaves it as it is.
    """
    found = _own(call, request_id)
    if found.closed_at is not None:
        raise Conflict(f"Request {found.ref} is {found.status.value}: none of its calls is tried again.")
    return policies.change(call, _target(found), body)


@of_requests.delete("/<request_id>/retry", scope=_SEND)
def delete_request_retry_policy(call: Call, request_id: str) -> models.RetryPolicy:
    """Let nothing differ for one request that this key has sent."""
    return policies.clear(call, _target(_own(call, request_id)))


# --- figures ---


@routes.get("/summary", scope=_READ)
def get_retry_summary(call: Call, query: FiguresQuery) -> models.RetrySummary:
    """The last hours in short, of all resolvers or of one."""
    _require_known(call, query.resolver)
    found = summary(call.session, query.hours, query.resolver)
    return models.RetrySummary.model_validate(found)


@routes.get("/timeseries", scope=_READ)
def get_retry_timeseries(call: Call, query: FiguresQuery) -> models.RetryTimeseries:
    """The last hours one by one, the running one included."""
    _require_known(call, query.resolver)
    points = read_timeseries(call.session, query.hours, query.resolver)
    data = [models.HourFigures(hour=each.hour, **each.figures.plain()) for each in points]
    return models.RetryTimeseries(hours=query.hours, resolver=query.resolver, data=data)


@routes.get("/resolvers", scope=_READ)
def list_retries_by_resolver(call: Call, query: HoursQuery) -> models.ResolverFiguresList:
    """The last hours in short, of each resolver that had attempts."""
    found = read_by_resolver(call.session, query.hours)
    data = [
        models.ResolverFigures(resolver=name, **each.plain()) for name, each in found.items() if name != ALL
    ]
    return models.ResolverFiguresList(hours=query.hours, data=data)


# --- helpers ---


def _own(call: Call, request_id: str) -> Request:
    """The request, if this very key has sent it: also keys that read everybody's change only their own."""
    found = find_request(call, request_id)
    if found.api_key_id != call.caller.key.id:
        raise NotFound("This API key has sent no request with this id or ref.")
    return found


def _target(request: Request) -> Target:
    return Target(PolicyKind.RETRY, PolicyScope.REQUEST, str(request.id))


def _require_known(call: Call, resolver: str | None) -> None:
    if resolver is None:
        return
    known = {each.name for each in call.runtime.registry} | set(known_resolvers(call.session))
    if resolver not in known:
        said = f"no resolver has this name{suggest(resolver, known)}"
        problems = [Problem("resolver", said, code="unknown")]
        raise Refused("The query is invalid.", problems=problems)
