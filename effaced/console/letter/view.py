"""One dead letter: what happened, what to do about it. And: take it, write a note, decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from flask import Blueprint, abort, request, url_for
from flask import Response as Page
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from effaced.accounts.actors import names_of
from effaced.console.current import me, runtime
from effaced.console.htmx import go_to, render, say, wants_fragment
from effaced.console.letter.timeline import letter_timeline
from effaced.core.errors import Conflict, Refused
from effaced.deadletters import decide as decisions
from effaced.deadletters.assign import add_note, assign
from effaced.deadletters.linked_work import why_not_closed
from effaced.deadletters.read import DeadLetterLine, dead_letters_by_id
from effaced.deadletters.rules import DECISIONS, SETTLED
from effaced.model import DeadLetterDomain, DeadLetterStatus
from effaced.outbox.read import find_entry
from effaced.requests.read import refs_of
from effaced.triage.subject_changed import (
    awaits_decision,
    cancel_for_changed_subject,
    confirm_subject,
)

blueprint = Blueprint("letter", __name__)


class Decision(StrEnum):
    """What a person may make of a letter here."""

    RESOLVE = "resolve"
    REJECT = "reject"
    REVIEW = "review"
    REOPEN = "reopen"


_BECOMES = {
    Decision.RESOLVE: DeadLetterStatus.RESOLVED,
    Decision.REJECT: DeadLetterStatus.REJECTED,
    Decision.REVIEW: DeadLetterStatus.REVIEWING,
    Decision.REOPEN: DeadLetterStatus.PENDING,
}
_SAID = {
    Decision.RESOLVE: "Resolved.",
    Decision.REJECT: "Rejected.",
    Decision.REVIEW: "In review.",
    Decision.REOPEN: "Reopened.",
}


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed into which form, and why it was refused."""

    form: str
    text: str
    error: str
    choice: str = ""


@dataclass(frozen=True, slots=True)
class LetterView:
    """A letter with what can be done about it. `kept_open` says why it can't be closed."""

    letter: DeadLetterLine
    ref: str | None
    assignee: str | None
    mine: bool
    attestable: bool
    decisions: tuple[Decision, ...]
    kept_open: str | None
    asks_who: bool
    """Whether somebody has to say if the row under the key is still the person's."""

    @property
    def requeueable(self) -> bool:
        return self.letter.open and self.letter.recommended_action != "reissue"

    @property
    def at_cap(self) -> bool:
        return self.letter.retry_count >= self.letter.max_retries


@blueprint.get("/abandoned/<uuid:letter_id>")
def index(letter_id: UUID) -> Response:
    return _page(letter_id)


@blueprint.post("/abandoned/<uuid:letter_id>/assign")
def take(letter_id: UUID) -> Response:
    """To whoever asks, or to nobody."""
    officer = None if request.form.get("to") == "nobody" else me().id

    def act(session: Session) -> None:
        assign(session, letter_id, officer, actor=me().actor)

    return _do(letter_id, act, "Assigned to you." if officer else "Unassigned.", "assign", "")


@blueprint.post("/abandoned/<uuid:letter_id>/notes")
def write(letter_id: UUID) -> Response:
    text = request.form.get("note", "")

    def act(session: Session) -> None:
        add_note(session, runtime().keyring, letter_id, text, actor=me().actor)

    return _do(letter_id, act, "The note was added.", "note", text)


@blueprint.post("/abandoned/<uuid:letter_id>/decide")
def decide(letter_id: UUID) -> Response:
    reason, word = request.form.get("reason", ""), request.form.get("decision", "")
    if word not in list(Decision):
        said = "Select a decision."
        return _page(letter_id, Typed("decide", reason, said, word))
    decision = Decision(word)

    def act(session: Session) -> None:
        decisions.decide(
            session, runtime().keyring, letter_id, _BECOMES[decision], actor=me().actor, reason=reason
        )

    return _do(letter_id, act, _SAID[decision], "decide", reason, word)


@blueprint.post("/abandoned/<uuid:letter_id>/subject")
def decide_subject(letter_id: UUID) -> Response:
    """Confirm that the row is still the person's, or cancel the request."""
    reason, choice = request.form.get("reason", ""), request.form.get("subject", "")
    who, keyring = me().actor, runtime().keyring
    if choice == "same":
        plan = runtime().plan

        def act(session: Session) -> None:
            confirm_subject(session, keyring, plan, letter_id, actor=who, reason=reason)

        said = "Confirmed. The request is executed next."
    elif choice == "other":

        def act(session: Session) -> None:
            cancel_for_changed_subject(session, keyring, letter_id, actor=who, reason=reason)

        said = "The request is cancelled. Nothing was erased."
    else:
        return _page(letter_id, Typed("subject", reason, "Select whether it is the same person."))
    return _do(letter_id, act, said, "subject", reason, choice)


def _do(
    letter_id: UUID, act: Callable[[Session], None], said: str, form: str, text: str, choice: str = ""
) -> Response:
    with runtime().db.read() as session:
        _find(session, letter_id)
    try:
        with runtime().db.begin() as session:
            act(session)
    except (Refused, Conflict) as error:
        return _page(letter_id, Typed(form, text, error.message, choice))
    if not wants_fragment():
        say(said)
        return go_to(url_for("console.letter.index", letter_id=letter_id))
    response = _page(letter_id)
    say(said, on=response)
    return response


def _page(letter_id: UUID, typed: Typed | None = None) -> Page:
    with runtime().db.read() as session:
        view = _view(session, _find(session, letter_id))
        story = letter_timeline(session, runtime().keyring, runtime().settings.zone, view.letter)
        closed_by = names_of(session, [view.letter.resolved_by] if view.letter.resolved_by else [])
    return render(
        "console/letter/index.html",
        "console/letter/_letter.html",
        422 if typed else 200,
        view=view,
        story=story,
        typed=typed,
        closed_by=closed_by.get(view.letter.resolved_by or ""),
    )


def _view(session: Session, letter: DeadLetterLine) -> LetterView:
    actor = f"officer:{letter.assigned_to}" if letter.assigned_to else ""
    possible = {each: to for each, to in _BECOMES.items() if letter.status in DECISIONS[to]}
    closable = not set(SETTLED).isdisjoint(possible.values())
    kept_open = why_not_closed(session, letter.id, decided=True) if closable else None
    return LetterView(
        letter,
        refs_of(session, [letter.request_id]).get(letter.request_id) if letter.request_id else None,
        names_of(session, [actor])[actor] if actor else None,
        letter.assigned_to == me().id,
        letter.open and _attestable(session, letter),
        tuple(each for each, to in possible.items() if not (kept_open and to in SETTLED)),
        kept_open,
        awaits_decision(letter.domain, letter.error_code, letter.status),
    )


def _attestable(session: Session, letter: DeadLetterLine) -> bool:
    entry = find_entry(session, letter.entry_id) if letter.entry_id else None
    if entry is None:
        return False
    return entry.unconfirmed if letter.domain is DeadLetterDomain.VERIFICATION else entry.attestable


def _find(session: Session, letter_id: UUID) -> DeadLetterLine:
    found = dead_letters_by_id(session, [letter_id], runtime().dead_letter_sla)
    if not found:
        abort(404)
    return found[0]
