"""Dead letters over HTTP: what failed for good, and what is decided about it."""

from __future__ import annotations

from uuid import UUID

from effaced.accounts.scopes import Scope
from effaced.api.dead_letters import models
from effaced.api.dead_letters.models import (
    AssigneeBody,
    ChangedSubjectBody,
    DeadLetterDecisionBody,
    DeadLetterNoteBody,
    DeadLetterQuery,
    DeadLetterRetryBody,
    Expand,
    ExpandQuery,
    StatsQuery,
)
from effaced.api.dead_letters.show import path_of, show_dead_letter, show_note
from effaced.api.operations.call import Call, Reply
from effaced.api.operations.declare import Routes
from effaced.api.path_id import read_path_id
from effaced.core.errors import Conflict, NotFound, Problem
from effaced.deadletters.assign import add_note, assign, notes_of
from effaced.deadletters.decide import decide
from effaced.deadletters.read import get_dead_letter as read_dead_letter
from effaced.deadletters.read import list_dead_letters as find_page
from effaced.model import DeadLetterStatus
from effaced.triage.retry import RedriveResult, redrive
from effaced.triage.stats import dead_letter_stats
from effaced.triage.subject_changed import cancel_for_changed_subject, confirm_subject

routes = Routes(
    "Dead letters", "/api/v1/dead-letters", about="What failed for good and waits for a decision."
)


@routes.get(scope=Scope.OPERATE_READ)
def list_dead_letters(call: Call, query: DeadLetterQuery) -> models.DeadLetterPage:
    """Dead letters, oldest first; without `status` those that are open."""
    which = query.chosen(call.runtime.dead_letter_sla)
    page = find_page(call.session, which, after=query.after, limit=query.limit)
    return models.DeadLetterPage(data=[show_dead_letter(each) for each in page.items], next=page.next)


@routes.get("/stats", scope=Scope.OPERATE_READ)
def get_dead_letter_stats(call: Call, query: StatsQuery) -> models.DeadLetterStats:
    """How many there are, how late they are, and what they have in common.

    Facets and groups are of the filter, everything else of all dead letters.
    """
    found = dead_letter_stats(call.session, query.chosen(call.runtime.dead_letter_sla))
    archivable, purgeable = found["cleanup"].values()
    cleanup = models.DeadLetterCleanup(archivable=archivable, purgeable=purgeable)
    return models.DeadLetterStats.model_validate({**found, "cleanup": cleanup})


@routes.get("/<dead_letter_id>", scope=Scope.OPERATE_READ)
def get_dead_letter(call: Call, dead_letter_id: str, query: ExpandQuery) -> models.DeadLetter:
    """One dead letter."""
    found_id = _id(dead_letter_id)
    line = read_dead_letter(call.session, found_id, call.runtime.dead_letter_sla)
    notes = notes_of(call.session, call.keyring, found_id) if Expand.NOTES in query.expand else None
    return show_dead_letter(line, notes)


@routes.post("/<dead_letter_id>/retry", scope=Scope.OPERATE_WRITE)
def retry_dead_letter(call: Call, dead_letter_id: str, body: DeadLetterRetryBody) -> models.DeadLetter:
    """Retry the work behind a dead letter.

    409 says with its code why that can't be: `needs_force`, `already_` and its status, `reissue`,
    `reference_gone`, `not_approved` or `not_linked`.
    """
    found_id = _id(dead_letter_id)
    _show(call, found_id)
    (result,) = redrive(
        call.session, call.keyring, [found_id], actor=call.actor, reason=body.reason, force=body.force
    )
    if not result.requeued:
        raise _not_retried(result)
    return _show(call, found_id)


@routes.post("/<dead_letter_id>/decision", scope=Scope.OPERATE_WRITE)
def decide_dead_letter(call: Call, dead_letter_id: str, body: DeadLetterDecisionBody) -> models.DeadLetter:
    """Resolve, reject or give up a dead letter, review it, or open it again.

    One over work that was not done can't be resolved or rejected: 409 `work_not_done`. One that can't have
    the status after the one that it has: 409 `wrong_state`.
    """
    found_id, to = _id(dead_letter_id), DeadLetterStatus(body.status)
    decide(call.session, call.keyring, found_id, to, actor=call.actor, reason=body.reason)
    return _show(call, found_id)


@routes.post("/<dead_letter_id>/subject", scope=Scope.OPERATE_WRITE)
def decide_subject(call: Call, dead_letter_id: str, body: ChangedSubjectBody) -> models.DeadLetter:
    """Say of a dead letter with the code `subject_changed` whether the row is still the person's.

    409 `nothing_to_decide` for any other.
    """
    found_id, session, keyring = _id(dead_letter_id), call.session, call.keyring
    if body.same_person:
        plan = call.runtime.plan_on(session)
        confirm_subject(session, keyring, plan, found_id, actor=call.actor, reason=body.reason)
    else:
        cancel_for_changed_subject(session, keyring, found_id, actor=call.actor, reason=body.reason)
    return _show(call, found_id)


@routes.put("/<dead_letter_id>/assignee", scope=Scope.OPERATE_WRITE)
def assign_dead_letter(call: Call, dead_letter_id: str, body: AssigneeBody) -> models.DeadLetter:
    """Assign a dead letter to an officer, or to nobody."""
    found_id = _id(dead_letter_id)
    assign(call.session, found_id, body.assigned_to, actor=call.actor)
    return _show(call, found_id)


@routes.get("/<dead_letter_id>/notes", scope=Scope.OPERATE_READ)
def list_dead_letter_notes(call: Call, dead_letter_id: str) -> models.DeadLetterNoteList:
    """What people wrote about a dead letter, the reasons of decisions included, oldest first."""
    found_id = _id(dead_letter_id)
    read_dead_letter(call.session, found_id, call.runtime.dead_letter_sla)
    return models.DeadLetterNoteList(
        data=[show_note(each) for each in notes_of(call.session, call.keyring, found_id)]
    )


@routes.post("/<dead_letter_id>/notes", scope=Scope.OPERATE_WRITE, status=201, secrets=("text",))
def create_dead_letter_note(
    call: Call, dead_letter_id: str, body: DeadLetterNoteBody
) -> Reply[models.DeadLetterNote]:
    """Write something down about a dead letter."""
    found_id = _id(dead_letter_id)
    note = add_note(call.session, call.keyring, found_id, body.text, actor=call.actor)
    location = f"{path_of(found_id)}/notes/{note.note_id}"
    return Reply(_note(call, found_id, note.note_id), 201, {"Location": location})


@routes.get("/<dead_letter_id>/notes/<note_id>", scope=Scope.OPERATE_READ)
def get_dead_letter_note(call: Call, dead_letter_id: str, note_id: str) -> models.DeadLetterNote:
    """One note about a dead letter."""
    return _note(call, _id(dead_letter_id), read_path_id(note_id, "There is no such note."))


def _id(text: str) -> UUID:
    return read_path_id(text, "There is no such dead letter.")


def _show(call: Call, dead_letter_id: UUID) -> models.DeadLetter:
    call.session.flush()
    return show_dead_letter(read_dead_letter(call.session, dead_letter_id, call.runtime.dead_letter_sla))


def _note(call: Call, dead_letter_id: UUID, note_id: UUID) -> models.DeadLetterNote:
    for each in notes_of(call.session, call.keyring, dead_letter_id, only=note_id):
        return show_note(each)
    raise NotFound("There is no such note.")


def _not_retried(result: RedriveResult) -> Conflict:
    field = "force" if result.code == "needs_force" else "status"
    problem = Problem(field, result.why, code=result.code)
    return Conflict(f"The dead letter was not retried: it {result.why}.", problems=[problem])
