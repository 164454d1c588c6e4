"""The `context` column: facts of the latest failure, and under `failures` those of every one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from effaced.deadletters.arguments import facts

FAILURES, MOST_FAILURES = "failures", 50
_REQUEST, _RESPONSE = "request", "response"
Context = dict[str, Any]


def new_context(
    snapshot: Mapping[str, Any] | None, request: Mapping[str, Any] | None, response: Mapping[str, Any] | None
) -> Context:
    context = facts("snapshot_data", snapshot)
    sent, received = facts("request_data", request), facts("response_data", response)
    return context | ({_REQUEST: sent} if sent else {}) | ({_RESPONSE: received} if received else {})


def split_context(context: Mapping[str, Any] | None) -> tuple[Context, Context, Context]:
    """The snapshot, the request and the response that a context was made of."""
    snapshot = dict(context or {})
    request, response = snapshot.pop(_REQUEST, {}), snapshot.pop(_RESPONSE, {})
    return snapshot, request, response


def after_failed_replay(stored: Mapping[Any, Any], details: Mapping[str, Any] | None) -> Context:
    """The context of a dead letter whose replay failed in the same way as before."""
    latest = facts("error_details", details)
    context = after_failure(stored, _stored_failure(stored) | latest)
    if "status_code" in latest:
        context[_RESPONSE] = {**context.get(_RESPONSE, {}), "status_code": latest["status_code"]}
    return context


def after_failure(stored: Mapping[Any, Any], latest: Context) -> Context:
    """The context of a dead letter after another failure; `stored` are its columns before that.

    Nothing is removed, and tables in which rows were found stay named. Of very many failures the first and
    the last ones are listed.
    """
    context = dict(stored["context"] or {})
    first = _stored_failure(stored) | {
        "attempts": context.get("attempts"),
        "tables": context.get("tables"),
        "status_code": context.get(_RESPONSE, {}).get("status_code"),
    }
    failures = [*(context.get(FAILURES) or [_without_empty(first)]), _without_empty(latest)]
    if len(failures) > MOST_FAILURES:
        failures = [failures[0], *failures[1 - MOST_FAILURES :]]
    if "attempts" in latest:
        context["attempts"] = latest["attempts"]
    if tables := {*context.get("tables", ()), *latest.get("tables", ())}:
        context["tables"] = sorted(tables)
    return context | {FAILURES: failures}


def _stored_failure(stored: Mapping[Any, Any]) -> Context:
    """What failed, as the letter's own columns have it."""
    return {
        "domain": stored["domain"].value,
        "error": stored["failure_type"],
        "code": stored["error_code"],
    }


def _without_empty(values: Context) -> Context:
    return {name: value for name, value in values.items() if value not in (None, "", (), [])}
