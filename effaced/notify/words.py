"""Messages as plain sentences, for people who answer for erasures and not for servers."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from effaced.model import NoticeType
from effaced.notify.target import TEST, Outgoing

Facts = Mapping[str, Any]
_WIDTH = 76


@dataclass(frozen=True, slots=True)
class _Sentences:
    """A headline, what has happened, what to do."""

    headline: Callable[[Facts], str]
    happened: Callable[[Facts], str]
    todo: str


def _reason(facts: Facts) -> str:
    known = [str(facts[name]) for name in ("error", "code") if facts.get(name)]
    return f" ({', '.join(known)})" if known else ""


def _attempts(facts: Facts) -> str:
    number = facts["attempts"]
    return f"after {number:,} {'try' if number == 1 else 'tries'}"


def _system(facts: Facts) -> str:
    return str(facts.get("resolver", "another system"))


def _unverified(facts: Facts) -> str:
    name = _system(facts)
    if facts["error"] == "StillPresent":
        return f"{name} reported the data as erased, but when asked again it still had them."
    return (
        f"{name} reported the data as erased, but it could not be asked whether that is so{_reason(facts)}."
    )


def _paused(facts: Facts) -> str:
    whom = "any system" if facts["resolver"] == "*" else _system(facts)
    until = f" until {facts['until']}" if facts.get("until") else ""
    return f"No more calls are made to {whom}{until} ({facts['code']})."


def _breaker_name(facts: Facts) -> str:
    return str(facts["breaker"]).partition(":")[2]


def _breaker_opened(facts: Facts) -> str:
    when = f" before {facts['retry_at']}" if facts.get("retry_at") else " for now"
    return f"Calls to {_breaker_name(facts)} are held back ({facts['reason']}). Nothing is sent to it{when}."


_REQUEUE = "Somebody has to look at it: see to the cause, then requeue it on the Abandoned page."
_NOTHING_TO_DO = "There is nothing to do."
_ALL: dict[str, _Sentences] = {
    NoticeType.ENTRY_ABANDONED: _Sentences(
        lambda facts: f"the call to {_system(facts)} was given up",
        lambda facts: (
            f"The call to {_system(facts)} was given up {_attempts(facts)}{_reason(facts)}."
            " What that system holds about the person may still be there, and the request stays open."
        ),
        _REQUEUE,
    ),
    NoticeType.VERIFICATION_FAILED: _Sentences(
        lambda facts: f"{_system(facts)} may still hold erased data",
        _unverified,
        "Somebody has to ask the vendor, then requeue it on the Abandoned page.",
    ),
    NoticeType.EXECUTION_FAILED: _Sentences(
        lambda _facts: "the company's own database could not be changed",
        lambda facts: (
            f"The company's own database could not be changed{_reason(facts)}. Nothing was changed,"
            " and no other system has been called."
        ),
        _REQUEUE,
    ),
    NoticeType.ATTESTATION_OVERDUE: _Sentences(
        lambda facts: f"nobody has confirmed what was to be done by hand at {_system(facts)}",
        lambda facts: (
            f"What has to be done by hand at {_system(facts)} was not confirmed in time{_reason(facts)}."
        ),
        "Somebody has to do it and to say so in the console.",
    ),
    NoticeType.RESOLVER_PAUSED: _Sentences(
        lambda facts: "all calls are paused" if facts["resolver"] == "*" else f"{_system(facts)} is paused",
        _paused,
        "What is due there waits. Somebody has to see to the cause, then let it go on.",
    ),
    NoticeType.RESOLVER_ABSENCES: _Sentences(
        lambda facts: f"{_system(facts)} suddenly knows nobody",
        lambda facts: (
            f"Of the last {facts['answers']:,} people {_system(facts)} said of {facts['absent']:,} that they"
            " were not there, which it did not use to say. A mistyped address answers so to everybody."
        ),
        "Somebody has to check whether it is true. If not, those people are still there and count as erased.",
    ),
    NoticeType.BREAKER_OPENED: _Sentences(
        lambda facts: f"calls to {_breaker_name(facts)} are held back",
        _breaker_opened,
        "What is due there waits and loses no attempt. It is tried again without you; if it lasts, ask them.",
    ),
    NoticeType.BREAKER_CLOSED: _Sentences(
        lambda facts: f"{_breaker_name(facts)} is called again",
        lambda facts: f"{_breaker_name(facts)} is called again ({facts['reason']}). What has waited follows.",
        "There is nothing to do.",
    ),
    NoticeType.REQUEST_COMPLETED: _Sentences(
        lambda _facts: "a request is completed",
        lambda _facts: "Every call that the request needed has succeeded, and nothing is left to verify.",
        "There is nothing to do.",
    ),
    NoticeType.REQUEST_RECEIVED: _Sentences(
        lambda _facts: "a request was received",
        lambda facts: f"A request ({facts['kind']}) was received. It is due on {facts['due_at']}.",
        "If it needs an approval, an officer gives it in the console.",
    ),
    NoticeType.REQUEST_APPROVED: _Sentences(
        lambda _facts: "a request was approved",
        lambda _facts: "Nothing stands in the way of executing a request any more.",
        _NOTHING_TO_DO,
    ),
    NoticeType.REQUEST_EXECUTED: _Sentences(
        lambda _facts: "a request was executed",
        lambda _facts: "The company's own database was changed. Calls to other systems follow.",
        _NOTHING_TO_DO,
    ),
    NoticeType.REQUEST_CANCELLED: _Sentences(
        lambda _facts: "a request was cancelled",
        lambda _facts: "A request was closed without being executed.",
        _NOTHING_TO_DO,
    ),
    NoticeType.REQUEST_VERIFIED: _Sentences(
        lambda _facts: "a request is verified",
        lambda facts: f"A read-back has confirmed each of the request's calls ({facts['calls']:,}).",
        _NOTHING_TO_DO,
    ),
    NoticeType.STEP_SUCCEEDED: _Sentences(
        lambda facts: f"the call to {_system(facts)} succeeded",
        lambda facts: f"The call to {_system(facts)} succeeded ({facts['outcome']}).",
        _NOTHING_TO_DO,
    ),
    NoticeType.STEP_SCHEDULED: _Sentences(
        lambda facts: f"the call to {_system(facts)} is scheduled",
        lambda facts: f"{_system(facts)} is called again on {facts['until']}.",
        _NOTHING_TO_DO,
    ),
    NoticeType.STEP_FAILED: _Sentences(
        lambda facts: f"the call to {_system(facts)} failed",
        lambda facts: (
            f"The call to {_system(facts)} failed {_attempts(facts)}{_reason(facts)}. It is made again on"
            f" {facts['next_attempt_at']}."
        ),
        _NOTHING_TO_DO,
    ),
    NoticeType.STEP_ABANDONED: _Sentences(
        lambda facts: f"the call to {_system(facts)} was given up",
        lambda facts: f"The call to {_system(facts)} was given up {_attempts(facts)}{_reason(facts)}.",
        _REQUEUE,
    ),
    TEST: _Sentences(
        lambda _facts: "a test message",
        lambda _facts: "Somebody has tried out whether messages arrive here. This one has.",
        "There is nothing to do.",
    ),
}


def subject(message: Outgoing) -> str:
    """One line, whatever the names in it hold."""
    about = f" ({message.ref})" if message.ref else ""
    return " ".join(f"effaced: {_ALL[message.type].headline(message.facts)}{about}".split())


def text(message: Outgoing, public_url: str | None) -> str:
    """The whole message, with a link to the console if it is known where that is."""
    told = _ALL[message.type]
    again = " It had been requeued before and has failed again." if message.facts.get("again") else ""
    paragraphs = [
        " ".join(f"{told.happened(message.facts)}{again}".split()),
        told.todo,
        f"Request: {message.ref}" if message.ref else "",
        _link(message, public_url),
        f"{message.type}, {message.at:%Y-%m-%d %H:%M} UTC, message {message.id}",
    ]
    return "\n\n".join(_wrap(paragraph) for paragraph in paragraphs if paragraph) + "\n"


def _link(message: Outgoing, public_url: str | None) -> str:
    if public_url is None:
        return ""
    page = f"requests/{quote(message.ref, safe='')}" if message.ref else ""
    return f"{public_url.rstrip('/')}/console/{page}"


def _wrap(paragraph: str) -> str:
    return textwrap.fill(paragraph, _WIDTH, break_long_words=False, break_on_hyphens=False)
