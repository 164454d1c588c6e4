"""Dead letters over HTTP: what failed for good, and what becomes of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Blueprint, Response, jsonify, request

from effaced.accounts.scopes import Scope
from effaced.api.arguments import letter_filter, limit_of, number_of, only, path_id, word_of
from effaced.api.auth import require_key
from effaced.api.bodies import read_body
from effaced.api.current import current_runtime
from effaced.api.letter_bodies import (
    MOST_EVICTED,
    ArchiveBody,
    AssignBody,
    DecideBody,
    EvictBody,
    NoteBody,
    PurgeBody,
    RequeueBody,
    SubjectBody,
    SummaryBody,
)
from effaced.audit.notes import write_note
from effaced.core.errors import Conflict
from effaced.deadletters.archive import archive_settled, count_archivable
from effaced.deadletters.assign import add_note, assign, notes_of
from effaced.deadletters.data import DLQCompressedStatus
from effaced.deadletters.decide import decide
from effaced.deadletters.purge import count_evictable, count_purgeable, evict, purge
from effaced.deadletters.read import get_dead_letter, list_dead_letters
from effaced.deadletters.summaries import set_summary_status, summaries, summary_totals
from effaced.model import DeadLetterDomain, DeadLetterStatus
from effaced.triage.redrive_read import plain_result
from effaced.triage.retry import redrive
from effaced.triage.stats import dead_letter_stats
from effaced.triage.subject_changed import cancel_for_changed_subject, confirm_subject

blueprint = Blueprint("dead_letters", __name__)


@blueprint.get("")
def index() -> Response:
    """A page of letters, oldest first; without `status` those that wait for a person."""
    runtime = current_runtime()
    require_key(runtime.db, Scope.OPERATE_READ)
    which, limit = letter_filter(request.args, runtime.dead_letter_sla, paging=True), limit_of(request.args)
    with runtime.db.read() as session:
        page = list_dead_letters(session, which, after=request.args.get("after") or None, limit=limit)
    return jsonify({"dead_letters": [each.plain() for each in page.items], "next": page.next})


@blueprint.get("/stats")
def stats() -> Response:
    """Totals, what is late, facets and groups."""
    runtime = current_runtime()
    require_key(runtime.db, Scope.OPERATE_READ)
    which = letter_filter(request.args, runtime.dead_letter_sla)
    with runtime.db.read() as session:
        return jsonify(dead_letter_stats(session, which))


@blueprint.get("/<name>")
def show(name: str) -> Response:
    """One letter, with the notes that people made."""
    runtime = current_runtime()
    require_key(runtime.db, Scope.OPERATE_READ)
    return _letter(path_id(name, "dead letter"))


@blueprint.post("/<name>/requeue")
def requeue(name: str) -> Response:
    """Have it tried again. 200 says whether that was possible, and if not why."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.OPERATE_WRITE)
    letter_id, body = path_id(name, "dead letter"), read_body(request, RequeueBody)
    with runtime.db.begin() as session:
        get_dead_letter(session, letter_id, runtime.dead_letter_sla)
        actor = f"api_key:{key.id}"
        (result,) = redrive(
            session, runtime.keyring, [letter_id], actor=actor, reason=body.reason, force=body.force
        )
    return jsonify(plain_result(result))


@blueprint.post("/<name>/decision")
def decision(name: str) -> Response:
    """Resolve, reject or give up a letter, or open it again, with a reason."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.OPERATE_WRITE)
    letter_id, body = path_id(name, "dead letter"), read_body(request, DecideBody)
    with runtime.db.begin() as session:
        to, actor = DeadLetterStatus(body.status), f"api_key:{key.id}"
        decide(session, runtime.keyring, letter_id, to, actor=actor, reason=body.reason)
    return _letter(letter_id)


@blueprint.post("/<name>/subject")
def subject(name: str) -> Response:
    """Say of a `subject_changed` letter whether the row is still the person's: execute, or cancel."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.OPERATE_WRITE)
    letter_id, body = path_id(name, "dead letter"), read_body(request, SubjectBody)
    plan, keyring, actor = runtime.plan, runtime.keyring, f"api_key:{key.id}"
    with runtime.db.begin() as session:
        if body.same_person:
            confirm_subject(session, keyring, plan, letter_id, actor=actor, reason=body.reason)
        else:
            cancel_for_changed_subject(session, keyring, letter_id, actor=actor, reason=body.reason)
    return _letter(letter_id)


@blueprint.put("/<name>/assignee")
def assignee(name: str) -> Response:
    """Give a letter to an officer, or with null to nobody."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.OPERATE_WRITE)
    letter_id, body = path_id(name, "dead letter"), read_body(request, AssignBody)
    with runtime.db.begin() as session:
        officer_id = UUID(body.officer) if body.officer else None
        assign(session, letter_id, officer_id, actor=f"api_key:{key.id}")
    return _letter(letter_id)


@blueprint.post("/<name>/notes")
def note(name: str) -> tuple[Response, int]:
    """Write something down about a letter."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.OPERATE_WRITE)
    letter_id, body = path_id(name, "dead letter"), read_body(request, NoteBody)
    with runtime.db.begin() as session:
        add_note(session, runtime.keyring, letter_id, body.text, actor=f"api_key:{key.id}")
    return _letter(letter_id), 201


@blueprint.post("/archive")
def archive() -> Response:
    """Put letters away that were settled long enough ago, at most 1,000.

    Returns how many, and how many are left.
    """
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.OPERATE_WRITE)
    older_than = read_body(request, ArchiveBody).age
    with runtime.db.begin() as session:
        archived = archive_settled(session, older_than=older_than, actor=f"api_key:{key.id}")
    with runtime.db.read() as session:
        left = count_archivable(session, older_than)
    return jsonify({"archived": archived, "left": left})


@blueprint.get("/purge")
def purge_preview() -> Response:
    """How many a purge with the same age would remove."""
    runtime = current_runtime()
    require_key(runtime.db, Scope.OPERATE_READ)
    days = number_of(request.args, "older_than_days", 0, 36_500)
    with runtime.db.read() as session:
        return jsonify({"older_than_days": days, "purgeable": count_purgeable(session, older_than_days=days)})


@blueprint.post("/purge")
def purge_archived() -> Response:
    """Remove archived letters for good; `expected` has to be what the preview said."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.OPERATE_WRITE)
    body, actor = read_body(request, PurgeBody), f"api_key:{key.id}"
    with runtime.db.begin() as session:
        why = write_note(session, runtime.keyring, body.reason, author=actor)
        days, expected = body.older_than_days, body.expected
        count = purge(session, older_than_days=days, expected=expected, actor=actor, note=why)
    return jsonify({"purged": count})


@blueprint.get("/evict")
def evict_preview() -> Response:
    """How many an eviction with the same count and domain would remove."""
    runtime = current_runtime()
    require_key(runtime.db, Scope.OPERATE_READ)
    only(request.args, "count", "domain")
    count = number_of(request.args, "count", 1, MOST_EVICTED)
    domain = word_of(request.args, "domain", DeadLetterDomain)
    with runtime.db.read() as session:
        return jsonify({"count": count, "evictable": count_evictable(session, count, domain)})


@blueprint.post("/evict")
def evict_archived() -> Response:
    """Remove the oldest archived dead letters for good; with `compress` a summary of each kind stays."""
    runtime = current_runtime()
    key = require_key(runtime.db, Scope.OPERATE_WRITE)
    body, actor = read_body(request, EvictBody), f"api_key:{key.id}"
    with runtime.db.begin() as session:
        note = write_note(session, runtime.keyring, body.reason, author=actor)
        count = evict(session, body.count, body.domain, compress=body.compress, actor=actor, note=note)
    return jsonify({"evicted": count})


@blueprint.get("/summaries")
def summary_index() -> Response:
    """What is left of compressed dead letters, last seen first, and totals of all summaries."""
    runtime = current_runtime()
    require_key(runtime.db, Scope.OPERATE_READ)
    only(request.args, "domain", "status", "limit")
    domain = word_of(request.args, "domain", DeadLetterDomain)
    status = word_of(request.args, "status", DLQCompressedStatus)
    with runtime.db.read() as session:
        found = summaries(session, domain=domain, status=status, limit=limit_of(request.args))
        totals = summary_totals(session)
    return jsonify({"summaries": [each.plain() for each in found], "totals": totals})


@blueprint.post("/summaries/<name>/status")
def mark_summary(name: str) -> Response:
    """Mark a summary as stale, so that it no longer grows, or as archived."""
    runtime = current_runtime()
    require_key(runtime.db, Scope.OPERATE_WRITE)
    summary_id, to = path_id(name, "summary"), read_body(request, SummaryBody).status
    with runtime.db.begin() as session:
        if not set_summary_status(session, summary_id, to):
            raise Conflict(f"There is no such summary, or it can't become {to} any more.")
    return jsonify({"id": str(summary_id), "status": to})


def _letter(letter_id: UUID) -> Response:
    runtime = current_runtime()
    with runtime.db.read() as session:
        shape: dict[str, Any] = get_dead_letter(session, letter_id, runtime.dead_letter_sla).plain()
        shape["notes"] = [each.plain() for each in notes_of(session, runtime.keyring, letter_id)]
    return jsonify(shape)
