"""The trail in plain words: one sentence per type of event, made from its payload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from effaced.console.words import label
from effaced.model import (
    CheckReason,
    DeadLetterDomain,
    DeadLetterStatus,
    Evidence,
    OutboxOperation,
    PolicyKind,
    ReadBackProof,
    RequestKind,
    Role,
    StepOutcome,
)

Payload = Mapping[str, Any]
Moment = Callable[[datetime], str]


@dataclass(frozen=True, slots=True)
class Sentence:
    """How a type of event is told. `tell` gets the payload and how to write a moment."""

    tone: str
    icon: str
    tell: Callable[[Payload, Moment], str]


def _rows(payload: Payload) -> str:
    tables = [table for table in payload["tables"] if table["action"] != "retained" and table["rows"]]
    rows = sum(table["rows"] for table in tables)
    calls = payload["external_calls"]
    names = {table["table"] for table in tables}  # one whose rows also let go of the person is there twice
    own = f"Your database changed: {_count(rows, 'row')} in {_count(len(names), 'table')}"
    return f"{own}.{_retained(payload['retained'])} {_count(calls, 'external call')} queued."


def _read_back(payload: Payload) -> str:
    gone = (
        f"Your database was read back: nothing to be erased is left in {_count(payload['tables'], 'table')}."
    )
    return f"{gone}{_retained(payload.get('kept', ()))}"


def _retained(cells: Iterable[Payload]) -> str:
    """What stays, by table: rows where they were counted, or the table's name alone."""
    rows = {each["table"]: each.get("rows") for each in cells if each.get("rows") != 0}
    kept = [table if count is None else f"{_count(count, 'row')} in {table}" for table, count in rows.items()]
    return f" Kept by law: {', '.join(kept)}." if kept else ""


def _where(payload: Payload) -> str:
    return f" in {', '.join(payload['tables'])}" if payload.get("tables") else ""


def _begun(payload: Payload) -> str:
    rows = sum(table["rows"] for table in payload["tables"])
    return f"Very many rows: {_count(rows, 'row')} are changed in batches before the rest."


def _corrected(payload: Payload) -> str:
    """Which fields, in how many rows; never a value."""
    rows = sum(table["rows"] for table in payload["tables"])
    own = f"Your database corrected ({', '.join(payload['fields'])}): {_count(rows, 'row')} changed"
    return f"{own}. {_count(payload['external_calls'], 'external call')} queued."


def _retention(payload: Payload) -> str:
    if payload["action"] == "closed":
        table = payload["table"]
        return f"The data map has no table {table} any more: retention of its rows is no longer tracked."
    return f"Retention ended: {_count(payload['rows'], 'row')} of {payload['table']} {payload['action']}."


def _abandoned(payload: Payload) -> str:
    if payload.get("superseded_by"):
        return f"{payload['resolver']} was not called: a later request supersedes the correction."
    why = f"({payload['error']}, {payload['code']})"
    return f"{payload['resolver']} was abandoned {_after_attempts(payload)} {why}."


def _succeeded(payload: Payload) -> str:
    """About the calls alone: whether the request is completed depends on the read-backs too."""
    unverified = payload.get("unverified", 0)
    if not unverified:
        return "Every external call has succeeded."
    left = f"{_count(unverified, 'step')} {'is' if unverified == 1 else 'are'} not verified"
    return f"Every external call has succeeded. {left}, so the request stays open."


def _rectified(payload: Payload) -> str:
    superseded = payload.get("superseded", 0)
    if not superseded:
        return "Completed: every external call has succeeded."
    return f"Completed: {_count(superseded, 'call')} superseded by a later request, the others succeeded."


def _by_hand(payload: Payload, moment: Moment) -> str:
    what = "erase" if payload["operation"] == OutboxOperation.ERASE else "correct"
    return (
        f"{payload['resolver']} waits for a person to {what} the data there and to attest it "
        f"by {moment(datetime.fromisoformat(payload['by']))}."
    )


def _attested(payload: Payload) -> str:
    what = "erased" if payload["operation"] == OutboxOperation.ERASE else "corrected"
    before = f" It had been abandoned ({payload['prior_error']})." if payload.get("prior_error") else ""
    return f"{payload['resolver']} was {what} by hand, as attested by an officer.{before}"


def _everything(payload: Payload) -> str:
    return "Everything" if payload["resolver"] == "*" else payload["resolver"]


_PAUSES = {
    "officer": "was paused",
    "credentials_refused": "was paused automatically: it refused our credentials",
}


def _paused(payload: Payload, moment: Moment) -> str:
    how = _PAUSES.get(payload["code"], f"was paused ({payload['code']})")
    until = f" Until {moment(datetime.fromisoformat(payload['until']))}." if payload.get("until") else ""
    return f"{_everything(payload)} {how}. No more calls are made; waiting calls lose no attempts.{until}"


def _checked(payload: Payload) -> str:
    result = {
        ReadBackProof.PROVEN: "is proven",
        ReadBackProof.UNPROVEN: "is unproven",
        ReadBackProof.FAILED: "failed its check",
    }[ReadBackProof(payload["proof"])]
    return f"The read-back of {payload['resolver']} {result}: {label(CheckReason(payload['reason']))}."


def _policy(payload: Payload) -> str:
    whom = {"global": "everything", "request": "this request"}.get(payload["scope"], payload["key"])
    return f"The {label(PolicyKind(payload['kind'])).lower()} for {whom}"


def _fields(payload: Payload) -> str:
    return ", ".join(
        f"{each['field']} {_figures(each.get('was'))} to {_figures(each.get('now'))}"
        for each in payload["fields"]
        if each.get("was") != each.get("now")
    )


def _figures(words: list[str] | None) -> str:
    if words is None:
        return "as configured"
    return words[0] if len(words) == 1 else f"{_count(len(words), 'value')}"


def _breaker(payload: Payload) -> str:
    scope, _, key = payload["breaker"].partition(":")
    return key if scope == "resolver" else f"the host {key}"


def _forced(how: str) -> Callable[[Payload, Moment], str]:
    def sentence(payload: Payload, moment: Moment) -> str:
        end = payload["until"] and f" until {moment(datetime.fromisoformat(payload['until']))}"
        return f"The breaker of {_breaker(payload)} was {how}{end or ''}."

    return sentence


def _count(number: int, one: str) -> str:
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def _after_attempts(payload: Payload) -> str:
    return f"after {_count(payload['attempts'], 'attempt')}"


def _outcome(payload: Payload) -> str:
    outcome = StepOutcome(payload["outcome"])
    basis = f" ({payload['retained_basis']})" if payload.get("retained_basis") else ""
    evidence = payload.get("evidence")
    # Earlier events say `verified_expiry` also where nobody had looked.
    if outcome is StepOutcome.VERIFIED_EXPIRY and evidence != Evidence.CONFIRMED:
        outcome = StepOutcome.EXPIRED
    seen = evidence == Evidence.CONFIRMED
    return {
        StepOutcome.ERASED: "erased the data" if seen else "reported the data as erased",
        StepOutcome.ALREADY_ABSENT: "had nothing to erase"
        if seen
        else "reported that it had nothing to erase",
        StepOutcome.EXPIRED: "reported the data as expired",
        StepOutcome.VERIFIED_EXPIRY: "let the data expire, and the read-back confirmed it",
        StepOutcome.RETAINED: f"keeps the data for a legal reason{basis}",
        StepOutcome.ATTESTED: "was done by hand",
        StepOutcome.RECTIFIED: "corrected the data",
    }[outcome]


def _scheduled(payload: Payload, moment: Moment) -> str:
    until = moment(datetime.fromisoformat(payload["until"]))
    slipped = f" The date has moved {_count(payload['slips'], 'time')}." if payload["slips"] else ""
    return f"{payload['resolver']} will delete the data by {until}.{slipped}"


def _refused_sign_ins(payload: Payload, moment: Moment) -> str:
    why = _REFUSALS.get(payload["why"], payload["why"])
    count = payload.get("count", 1)
    if count == 1:
        return f"A sign-in was refused: {why}."
    since = moment(datetime.fromisoformat(payload["since"]))
    return f"{count:,} sign-ins were refused since {since}. The reason for the last: {why}."


_REFUSALS = {
    "unknown_officer": "no officer has that address",
    "wrong_password": "the password was wrong",
    "locked": "the account was locked after wrong passwords",
    "inactive": "the account is deactivated",
}

GLOSSARY: dict[str, Sentence] = {
    "REQUEST_RECEIVED": Sentence(
        "info",
        "inbox",
        lambda p, moment: (
            f"{label(RequestKind(p['kind']))} request received, due by "
            f"{moment(datetime.fromisoformat(p['due_at'])).partition(',')[0]}. "
            + (
                f"Needs {_count(p['approvals_needed'], 'approval')}."
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
        "good", "user", lambda p, _m: f"Approved ({p['approvals_given']} of {p['approvals_needed']})."
    ),
    "LOCAL_ERASURE_EXECUTED": Sentence("good", "database", lambda p, _m: _rows(p)),
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
        lambda p, _m: f"Changing your database failed ({p['error']}){_where(p)}, {_after_attempts(p)}.",
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
    "ERASURE_STEP_SUCCEEDED": Sentence("good", "check", lambda p, _m: f"{p['resolver']} {_outcome(p)}."),
    "ERASURE_STEP_FAILED": Sentence("bad", "cross", lambda p, _m: _abandoned(p)),
    "RECTIFICATION_STEP_SUCCEEDED": Sentence(
        "good", "check", lambda p, _m: f"{p['resolver']} {_outcome(p).replace('to erase', 'to correct')}."
    ),
    "RECTIFICATION_STEP_FAILED": Sentence("bad", "cross", lambda p, _m: _abandoned(p)),
    "STEP_ATTESTED": Sentence("good", "user", lambda p, _m: _attested(p)),
    "ATTESTATION_AWAITED": Sentence("warn", "user", _by_hand),
    "REFERENCE_REVEALED": Sentence(
        "warn", "eye", lambda p, _m: f"The reference to the person at {p['resolver']} was shown."
    ),
    "ERASURE_EXPIRY_SCHEDULED": Sentence("info", "hourglass", _scheduled),
    "ERASURE_EXTERNAL_VERIFIED": Sentence(
        "good", "eye", lambda p, _m: f"Verified: {p['resolver']} no longer holds the data."
    ),
    "ERASURE_EXTERNAL_VERIFICATION_FAILED": Sentence(
        "bad", "eye", lambda p, _m: f"Not verified: {p['resolver']} still holds the data."
    ),
    "ERASURE_READ_BACK_GIVEN_UP": Sentence(
        "bad",
        "eye",
        lambda p, _m: (
            f"Not verifiable: {p['resolver']} could not be asked whether the data is gone. "
            "A person has to verify it again or attest."
        ),
    ),
    "ERASURE_REQUEUED": Sentence(
        "info",
        "cycle",
        lambda p, _m: f"{p['resolver']} will be retried with a full set of attempts.",
    ),
    "ABSENCE_SPIKED": Sentence(
        "bad",
        "alert",
        lambda p, _m: (
            f"{p['resolver']} suddenly found nobody: it reported {p['absent']:,} of {p['answers']:,} people "
            "as absent."
        ),
    ),
    "RESOLVER_CHECKED": Sentence("info", "eye", lambda p, _m: _checked(p)),
    "ERASURE_READ_BACK_ATTESTED": Sentence(
        "info", "user", lambda p, _m: f"Attested: {p['resolver']} no longer holds the data."
    ),
    "ERASURE_READ_BACK_REQUESTED": Sentence(
        "info", "cycle", lambda p, _m: f"{p['resolver']} will be called to erase and then read back again."
    ),
    "MESSAGE_REQUEUED": Sentence(
        "info", "cycle", lambda p, _m: f"The message to {p['target']} will be sent again."
    ),
    "BULK_REQUEUE": Sentence(
        "info",
        "cycle",
        lambda p, _m: f"Retried {p['requeued']:,} of {_count(p['chosen'], 'selected failed step')}.",
    ),
    "ERASURE_COMPLETED": Sentence("good", "check", lambda p, _m: _succeeded(p)),
    "ERASURE_VERIFICATION_COMPLETED": Sentence(
        "good", "check", lambda _p, _m: "Completed: nothing is left to verify."
    ),
    "REQUEST_REOPENED": Sentence(
        "warn",
        "eye",
        lambda p, _m: (
            f"Reopened: the request was shown as completed although {_count(p['unverified'], 'step')} "
            f"{'is' if p['unverified'] == 1 else 'are'} not verified."
        ),
    ),
    "RECTIFICATION_COMPLETED": Sentence("good", "check", lambda p, _m: _rectified(p)),
    "RESOLVER_PAUSED": Sentence("warn", "pause", _paused),
    "RESOLVER_RESUMED": Sentence("good", "arrow", lambda p, _m: f"{_everything(p)} was resumed."),
    "POLICY_CHANGED": Sentence("info", "cycle", lambda p, _m: f"{_policy(p)} was changed: {_fields(p)}."),
    "POLICY_UNDONE": Sentence(
        "info",
        "cycle",
        lambda p, _m: f"A change of {_policy(p)[0].lower()}{_policy(p)[1:]} was undone: {_fields(p)}.",
    ),
    "BREAKER_FORCED_OPEN": Sentence("warn", "pause", _forced("pinned open: no calls go out")),
    "BREAKER_FORCED_CLOSED": Sentence("warn", "arrow", _forced("pinned closed: all calls go out")),
    "BREAKER_UNPINNED": Sentence(
        "info", "cycle", lambda p, _m: f"The breaker of {_breaker(p)} was unpinned."
    ),
    "BREAKER_DELETED": Sentence("info", "cycle", lambda p, _m: f"The breaker of {_breaker(p)} was deleted."),
    "BREAKER_RESET": Sentence(
        "info", "cycle", lambda p, _m: f"The breaker of {_breaker(p)} was reset and is closed."
    ),
    "DEAD_LETTER_OPENED": Sentence(
        "bad",
        "alert",
        lambda p, _m: (
            f"A step failed permanently: {label(DeadLetterDomain(p['domain'])).lower()}, {p['error']}."
        ),
    ),
    "DEAD_LETTER_DECIDED": Sentence(
        "quiet",
        "inbox",
        lambda p, _m: (
            f"A failed step was {label(DeadLetterStatus(p['prior'])).lower()} "
            f"and is now {label(DeadLetterStatus(p['status'])).lower()}."
        ),
    ),
    "DEAD_LETTER_ASSIGNED": Sentence(
        "quiet",
        "user",
        lambda p, _m: (
            "A failed step was assigned to an officer."
            if p.get("officer_id")
            else "A failed step was unassigned."
        ),
    ),
    "DEAD_LETTER_NOTED": Sentence("quiet", "user", lambda _p, _m: "A note was added to a failed step."),
    "DEAD_LETTERS_ARCHIVED": Sentence(
        "quiet", "inbox", lambda p, _m: f"{_count(p['count'], 'failed step')} archived."
    ),
    "DEAD_LETTER_PURGED": Sentence(
        "warn",
        "cross",
        lambda p, _m: (
            f"An archived failed step was deleted: {label(DeadLetterDomain(p['domain'])).lower()}, "
            f"{p['error']}."
        ),
    ),
    "DEAD_LETTERS_PURGED": Sentence(
        "warn", "cross", lambda p, _m: f"{_count(p['count'], 'archived failed step')} deleted."
    ),
    "REDRIVE_STARTED": Sentence(
        "info",
        "cycle",
        lambda p, _m: (
            f"A bulk retry of {_count(p['chosen'], 'failed step')} was started"
            f"{', including those whose retries were used up' if p['force'] else ''}."
        ),
    ),
    "REDRIVE_ENDED": Sentence(
        "quiet",
        "cycle",
        lambda p, _m: (
            f"The bulk retry was {'cancelled' if p['cancelled'] else 'finished'}: "
            f"{p['requeued']:,} retried, {p['skipped']:,} skipped."
        ),
    ),
    "OFFICER_CREATED": Sentence(
        "quiet",
        "user",
        lambda p, _m: f"An account was created with the role {label(Role(p['role'])).lower()}.",
    ),
    "OFFICER_DEACTIVATED": Sentence(
        "quiet", "user", lambda _p, _m: "An account was deactivated and its sessions ended."
    ),
    "PASSWORD_CHANGED": Sentence(
        "quiet", "lock", lambda _p, _m: "A password was changed and its sessions ended."
    ),
    "SIGNED_IN": Sentence("quiet", "user", lambda _p, _m: "Signed in."),
    "SIGN_IN_REFUSED": Sentence("warn", "lock", lambda p, m: _refused_sign_ins(p, m)),
    "API_KEY_CREATED": Sentence(
        "quiet",
        "key",
        lambda p, _m: (
            f"An API key was created; its requests need {_count(p['approvals_needed'], 'approval')}."
        ),
    ),
    "API_KEY_REVOKED": Sentence("quiet", "key", lambda _p, _m: "An API key was revoked."),
    "SUBJECT_SEARCHED": Sentence(
        "quiet",
        "search",
        lambda p, _m: f"Looked a person up by {p['kind']}: {_count(p['found'], 'request')} found.",
    ),
    "NOTE_FORGOTTEN": Sentence(
        "quiet", "lock", lambda _p, _m: "A note was erased; the events that refer to it stay."
    ),
    "AUDIT_EXPORTED": Sentence(
        "quiet",
        "download",
        lambda p, _m: f"Exported the audit trail as {p['format']}, up to event {p['events_up_to']:,}.",
    ),
}


def tell(event_type: str, payload: Payload, moment: Moment) -> tuple[Sentence, str]:
    """The sentence of an event. One whose type or payload this version does not know is named, not hidden."""
    known = GLOSSARY.get(event_type)
    if known is not None:
        try:
            return known, known.tell(payload, moment)
        except (KeyError, ValueError, TypeError):
            pass
    plain = event_type.replace("_", " ").capitalize() + "."
    return Sentence("quiet", "dots", lambda _p, _m: plain), plain
