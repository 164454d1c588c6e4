"""One external call, done by hand: show how the system knows the person, then take somebody's word for it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from flask import Blueprint, abort, make_response, render_template, url_for
from flask import request as http
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from effaced.console.call.page import CallView, call_views
from effaced.console.current import me, runtime
from effaced.console.htmx import go_to, instead, render, say, wants_fragment
from effaced.console.request.page import view_of
from effaced.core.errors import Conflict, Refused
from effaced.model import RequestStatus
from effaced.outbox.read import find_entry
from effaced.requests.read import find_by_ref
from effaced.requests.tables import Request
from effaced.triage.attest import Revealed, attest, reveal

blueprint = Blueprint("call", __name__)


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed into one of a call's two forms, and why it was refused."""

    entry_id: UUID
    form: str
    text: str
    error: str


@blueprint.get("/requests/<ref>/calls/<uuid:entry_id>")
def index(ref: str, entry_id: UUID) -> Response:
    return _page(ref, entry_id)


@blueprint.post("/requests/<ref>/calls/<uuid:entry_id>/reveal")
def show_reference(ref: str, entry_id: UUID) -> Response:
    """The reference is in this answer and nowhere else: it is neither kept nor shown again without asking."""
    reason = http.form.get("reason", "")
    try:
        with runtime().db.begin() as session:
            _find(session, ref, entry_id)
            revealed = reveal(session, runtime().keyring, entry_id, actor=me().actor, reason=reason)
    except Refused as error:
        return _page(ref, entry_id, typed=Typed(entry_id, "reveal", reason, error.message))
    except Conflict as error:
        return _too_late(ref, error)
    return _page(ref, entry_id, revealed=revealed)


@blueprint.post("/requests/<ref>/calls/<uuid:entry_id>/attest")
def give_word(ref: str, entry_id: UUID) -> Response:
    note = http.form.get("note", "")
    try:
        with runtime().db.begin() as session:
            _find(session, ref, entry_id)
            attest(session, runtime().keyring, entry_id, actor=me().actor, reason=note)
    except Refused as error:
        said = error.message.replace("reason", "note")
        return _page(ref, entry_id, typed=Typed(entry_id, "attest", note, said))
    except Conflict as error:
        return _too_late(ref, error)
    return _attested(ref)


def _page(
    ref: str, entry_id: UUID, *, typed: Typed | None = None, revealed: Revealed | None = None
) -> Response:
    with runtime().db.read() as session:
        request, call = _find(session, ref, entry_id)
    return render(
        "console/call/index.html",
        "console/call/_hand.html",
        422 if typed else 200,
        ref=request.ref,
        call=call,
        typed=typed,
        revealed=revealed,
    )


def _attested(ref: str) -> Response:
    url = url_for("console.request.index", ref=ref)
    with runtime().db.read() as session:
        request = find_by_ref(session, ref)
        assert request is not None
        view = view_of(session, request, me(), with_plan=False)
    said = (
        "Attested."
        if view.line.status is not RequestStatus.COMPLETED
        else "Attested. The request is completed."
    )
    if not wants_fragment():
        say(said)
        return go_to(url)
    response = make_response(
        render_template("console/request/_request.html", view=view, reason="", error=None, titled=True)
    )
    say(said, on=response)
    response.headers["HX-Push-Url"] = url
    return instead(response, target="#request")


def _too_late(ref: str, error: Conflict) -> Response:
    say(error.message, tone="warn")
    return go_to(url_for("console.request.index", ref=ref))


def _find(session: Session, ref: str, entry_id: UUID) -> tuple[Request, CallView]:
    request = find_by_ref(session, ref)
    entry = find_entry(session, entry_id)
    if request is None or entry is None or entry.request_id != request.id:
        abort(404)
    return request, call_views(session, [entry])[0]
