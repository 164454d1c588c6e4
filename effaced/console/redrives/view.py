"""Another try for all letters of a filter: ask first, then watch it, row by row, and stop it if need be."""

from __future__ import annotations

from uuid import UUID

from flask import Blueprint, make_response, request, url_for
from flask import Response as Page
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from effaced.accounts.actors import names_of
from effaced.audit.notes import read_notes
from effaced.console.abandoned.query import LetterQuery
from effaced.console.current import me, runtime
from effaced.console.htmx import go_to, render, say, wants_fragment
from effaced.console.urls import with_query
from effaced.core.errors import Conflict, Refused
from effaced.core.paging import PAGE
from effaced.deadletters.read import dead_letters_by_id, groups
from effaced.requests.read import refs_of
from effaced.triage.redrive import (
    MOST_OF_A_SET,
    PER_SECOND,
    advance,
    cancel_redrive,
    count_taken,
    start_redrive,
    taken_of,
)
from effaced.triage.redrive_read import RedriveView, list_redrives, redrive_results, redrive_view

blueprint = Blueprint("redrives", __name__)


@blueprint.get("/abandoned/redrives")
def index() -> Response:
    after = request.args.get("after") or None
    with runtime().db.read() as session:
        page = list_redrives(session, after=after)
        who = names_of(session, [each.by for each in page.items])
        words = {each.id: _words(session, each) for each in page.items}
    url = url_for("console.redrives.index")
    return render(
        "console/redrives/index.html",
        "console/redrives/_rows.html",
        page=page,
        who=who,
        words=words,
        after=after,
        next_url=with_query(url, {"after": page.next}),
    )


@blueprint.post("/abandoned/redrives/confirm")
def confirm() -> Response:
    """Before anything happens: how many, which, and why."""
    return _confirmation(LetterQuery.read(request.form))


@blueprint.post("/abandoned/redrives")
def start() -> Response:
    query, reason = LetterQuery.read(request.form), request.form.get("reason", "")
    force = bool(request.form.get("force"))
    try:
        with runtime().db.begin() as session:
            redrive_id = start_redrive(
                session,
                runtime().keyring,
                query.filter(session),
                actor=me().actor,
                reason=reason,
                force=force,
            )
    except Refused as error:
        return _confirmation(query, reason=reason, force=force, error=error.message)
    # The first few at once, so that a small set is done when the page comes; the scheduler takes the rest.
    advance(runtime().db, redrive_id)
    return go_to(url_for("console.redrives.show", redrive_id=redrive_id))


@blueprint.get("/abandoned/redrives/<uuid:redrive_id>")
def show(redrive_id: UUID) -> Response:
    after = request.args.get("after") or None
    with runtime().db.read() as session:
        view = redrive_view(session, redrive_id)
        seen = request.args.get("seen", "")
        if wants_fragment() and seen == _version(view):
            return make_response("", 204)
        results = redrive_results(session, redrive_id, after=after)
        letters = {
            each.id: each
            for each in dead_letters_by_id(
                session, [row.dead_letter_id for row in results.items], runtime().dead_letter_sla
            )
        }
        note = read_notes(session, runtime().keyring, [view.note_id])
        who = names_of(session, [each for each in (view.by, view.ended_by) if each])
        refs = refs_of(session, [each.request_id for each in letters.values()])
        words = _words(session, view)
    url = url_for("console.redrives.show", redrive_id=redrive_id)
    return render(
        "console/redrives/show.html",
        "console/redrives/_results.html" if after else "console/redrives/_progress.html",
        view=view,
        version=_version(view),
        page=results,
        letters=letters,
        refs=refs,
        who=who,
        why=note.get(view.note_id),
        words=words,
        after=after,
        next_url=with_query(url, {"after": results.next}),
        rows_too=wants_fragment() and (not view.running or _rows_seen(seen) <= PAGE),
    )


@blueprint.post("/abandoned/redrives/<uuid:redrive_id>/cancel")
def cancel(redrive_id: UUID) -> Response:
    try:
        with runtime().db.begin() as session:
            cancel_redrive(session, redrive_id, actor=me().actor)
        say("Cancelled. Steps already retried stay retried; the others are unchanged.")
    except Conflict as error:
        say(error.message, tone="warn")
    return go_to(url_for("console.redrives.show", redrive_id=redrive_id))


def _confirmation(
    query: LetterQuery, *, reason: str = "", force: bool = False, error: str | None = None
) -> Page:
    with runtime().db.read() as session:
        chosen = taken_of(query.filter(session))
        count = count_taken(session, chosen) if chosen else 0
        kinds = groups(session, chosen, limit=8) if chosen else []
    return render(
        "console/redrives/confirm.html",
        "console/redrives/_confirm.html",
        422 if error else 200,
        query=query,
        count=count,
        kinds=kinds,
        reason=reason,
        force=force,
        error=error,
        most=MOST_OF_A_SET,
        per_second=PER_SECOND,
    )


def _words(session: Session, view: RedriveView) -> str:
    request_id = view.filter.get("request_id")
    ref = refs_of(session, [UUID(request_id)]).get(UUID(request_id), "") if request_id else ""
    return LetterQuery.of(view.filter, ref).words()


def _version(view: RedriveView) -> str:
    return f"{view.done}-{view.status.value}"


def _rows_seen(version: str) -> int:
    done = version.partition("-")[0]
    return int(done) if done.isdecimal() and len(done) <= 9 else 0
