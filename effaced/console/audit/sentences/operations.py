"""Systems and people: pauses, policies, circuit breakers, accounts, the audit trail itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from effaced.console.audit.sentences.sentence import Moment, Payload, Sentence, count
from effaced.console.words import label
from effaced.model import (
    CheckReason,
    PolicyKind,
    ReadBackProof,
    Role,
    TargetChange,
)


def _everything(payload: Payload) -> str:
    return "Everything" if payload["resolver"] == "*" else payload["resolver"]


def _created_key(payload: Payload) -> str:
    if payload.get("sandbox"):
        return "A sandbox API key was created; it executes nothing."
    officer = " It decides in an officer's name." if payload.get("officer_id") else ""
    needed = count(payload["approvals_needed"], "approval")
    return f"An API key was created; its requests need {needed}.{officer}"


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
    return words[0] if len(words) == 1 else f"{count(len(words), 'value')}"


def _breaker(payload: Payload) -> str:
    scope, _, key = payload["breaker"].partition(":")
    return key if scope == "resolver" else f"the host {key}"


def _forced(how: str) -> Callable[[Payload, Moment], str]:
    def sentence(payload: Payload, moment: Moment) -> str:
        end = payload["until"] and f" until {moment(datetime.fromisoformat(payload['until']))}"
        return f"The breaker of {_breaker(payload)} was {how}{end or ''}."

    return sentence


def _refused_sign_ins(payload: Payload, moment: Moment) -> str:
    why = _REFUSALS.get(payload["why"], payload["why"])
    number = payload.get("count", 1)
    if number == 1:
        return f"A sign-in was refused: {why}."
    since = moment(datetime.fromisoformat(payload["since"]))
    return f"{number:,} sign-ins were refused since {since}. The reason for the last: {why}."


_REFUSALS = {
    "unknown_officer": "no officer has that address",
    "wrong_password": "the password was wrong",
    "locked": "the account was locked after wrong passwords",
    "inactive": "the account is deactivated",
}


OPERATIONS: dict[str, Sentence] = {
    "ABSENCE_SPIKED": Sentence(
        "bad",
        "alert",
        lambda p, _m: (
            f"{p['resolver']} suddenly found nobody: it reported {p['absent']:,} of {p['answers']:,} people "
            "as absent."
        ),
    ),
    "RESOLVER_CHECKED": Sentence("info", "eye", lambda p, _m: _checked(p)),
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
    "API_KEY_CREATED": Sentence("quiet", "key", lambda p, _m: _created_key(p)),
    "API_KEY_REVOKED": Sentence("quiet", "key", lambda _p, _m: "An API key was revoked."),
    "MESSAGE_TARGET_CHANGED": Sentence(
        "quiet",
        "key",
        lambda p, _m: f"A message target of an API key was {label(TargetChange(p['change']))}.",
    ),
    "SUBJECT_SEARCHED": Sentence(
        "quiet",
        "search",
        lambda p, _m: f"Looked a person up by {p['kind']}: {count(p['found'], 'request')} found.",
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
