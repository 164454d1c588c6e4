"""Requests: their life, what happened in your database, and retained rows."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from effaced.console.audit.sentences.sentence import Payload, Sentence, after_attempts, count, through_api
from effaced.console.words import label
from effaced.model import (
    RequestKind,
)


def _local_erasure(payload: Payload) -> str:
    tables = [table for table in payload["tables"] if table["action"] != "retained" and table["rows"]]
    rows = sum(table["rows"] for table in tables)
    calls = payload["external_calls"]
    names = {table["table"] for table in tables}  # one whose rows also let go of the person is there twice
    own = f"Your database changed: {count(rows, 'row')} in {count(len(names), 'table')}"
    return f"{own}.{_retained(payload['retained'])} {count(calls, 'external call')} queued."


def _read_back(payload: Payload) -> str:
    gone = (
        f"Your database was read back: nothing to be erased is left in {count(payload['tables'], 'table')}."
    )
    return f"{gone}{_retained(payload.get('kept', ()))}"


def _retained(cells: Iterable[Payload]) -> str:
    """What stays, by table: rows where they were counted, or the table's name alone."""
    rows = {each["table"]: each.get("rows") for each in cells if each.get("rows") != 0}
    kept = [
        table if number is None else f"{count(number, 'row')} in {table}" for table, number in rows.items()
    ]
    return f" Kept by law: {', '.join(kept)}." if kept else ""


def _where(payload: Payload) -> str:
    return f" in {', '.join(payload['tables'])}" if payload.get("tables") else ""


def _begun(payload: Payload) -> str:
    rows = sum(table["rows"] for table in payload["tables"])
    return f"Very many rows: {count(rows, 'row')} are changed in batches before the rest."


def _corrected(payload: Payload) -> str:
    """Which fields, in how many rows; never a value."""
    rows = sum(table["rows"] for table in payload["tables"])
    own = f"Your database corrected ({', '.join(payload['fields'])}): {count(rows, 'row')} changed"
    return f"{own}. {count(payload['external_calls'], 'external call')} queued."


def _retention(payload: Payload) -> str:
    if payload["action"] == "closed":
        table = payload["table"]
        return f"The data map has no table {table} any more: retention of its rows is no longer tracked."
    return f"Retention ended: {count(payload['rows'], 'row')} of {payload['table']} {payload['action']}."


def _succeeded(payload: Payload) -> str:
    """About the calls alone: whether the request is completed depends on the read-backs too."""
    unverified = payload.get("unverified", 0)
    if not unverified:
        return "Every external call has succeeded."
    left = f"{count(unverified, 'step')} {'is' if unverified == 1 else 'are'} not verified"
    return f"Every external call has succeeded. {left}, so the request stays open."


def _rectified(payload: Payload) -> str:
    superseded = payload.get("superseded", 0)
    if not superseded:
        return "Completed: every external call has succeeded."
    return f"Completed: {count(superseded, 'call')} superseded by a later request, the others succeeded."


REQUESTS: dict[str, Sentence] = {
    "REQUEST_RECEIVED": Sentence(
        "info",
        "inbox",
        lambda p, moment: (
            f"{label(RequestKind(p['kind']))} request received, due by "
            f"{moment(datetime.fromisoformat(p['due_at'])).partition(',')[0]}. "
            + (
                f"Needs {count(p['approvals_needed'], 'approval')}."
                if p["approvals_needed"]
                else "Needs no approval."
            )
        ),
    ),
    "REQUEST_REPEATED": Sentence(
        "quiet", "inbox", lambda _p, _m: "The same person asked again in another request."
    ),
    "REQUEST_DUPLICATE": Sentence(
        "quiet",
        "inbox",
        lambda _p, _m: (
            "Duplicate: an erasure of this person is already open; this request is completed with it."
        ),
    ),
    "REQUEST_DUPLICATE_COMPLETED": Sentence(
        "good", "check", lambda _p, _m: "Completed together with the request that it is a duplicate of."
    ),
    "REQUEST_DUPLICATE_RELEASED": Sentence(
        "warn",
        "user",
        lambda _p, _m: "No longer a duplicate: the earlier request does not cover it, so it needs a review.",
    ),
    "REQUEST_CANCELLED": Sentence("warn", "cross", lambda _p, _m: "Cancelled before it was executed."),
    "SUBJECT_CONFIRMED": Sentence(
        "info", "user", lambda _p, _m: "Confirmed that the row under the person's key is still theirs."
    ),
    "REQUEST_APPROVED": Sentence(
        "good",
        "user",
        lambda p, _m: f"Approved ({p['approvals_given']} of {p['approvals_needed']}){through_api(p)}.",
    ),
    "LOCAL_ERASURE_EXECUTED": Sentence("good", "database", lambda p, _m: _local_erasure(p)),
    "LOCAL_ERASURE_BEGUN": Sentence("quiet", "database", lambda p, _m: _begun(p)),
    "LOCAL_VERIFIED": Sentence(
        "good",
        "database",
        lambda p, _m: _read_back(p),
    ),
    "LOCAL_RECTIFICATION_EXECUTED": Sentence("good", "database", lambda p, _m: _corrected(p)),
    "REQUEST_SUPERSEDED": Sentence(
        "quiet", "cross", lambda _p, _m: "Closed: the person was erased, so nothing is left to correct."
    ),
    "LOCAL_EXECUTION_FAILED": Sentence(
        "bad",
        "alert",
        lambda p, _m: f"Changing your database failed ({p['error']}){_where(p)}, {after_attempts(p)}.",
    ),
    "LOCAL_EXECUTION_REQUEUED": Sentence(
        "info", "cycle", lambda _p, _m: "The change of your database will be retried."
    ),
    "RETENTION_ENDED": Sentence("good", "database", lambda p, _m: _retention(p)),
    "RETENTION_FAILED": Sentence(
        "bad",
        "alert",
        lambda p, _m: f"Data whose retention has ended could not be erased ({p['error']}).",
    ),
    "ERASURE_COMPLETED": Sentence("good", "check", lambda p, _m: _succeeded(p)),
    "ERASURE_VERIFICATION_COMPLETED": Sentence(
        "good", "check", lambda _p, _m: "Completed: nothing is left to verify."
    ),
    "REQUEST_REOPENED": Sentence(
        "warn",
        "eye",
        lambda p, _m: (
            f"Reopened: the request was shown as completed although {count(p['unverified'], 'step')} "
            f"{'is' if p['unverified'] == 1 else 'are'} not verified."
        ),
    ),
    "RECTIFICATION_COMPLETED": Sentence("good", "check", lambda p, _m: _rectified(p)),
}
