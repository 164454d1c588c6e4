"""Apply what the figures suggest for one system's policies, or undo it."""

from __future__ import annotations

from flask import Blueprint, request
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from effaced.audit.notes import NoteRef, write_note
from effaced.breakers.advice.tuner import undo
from effaced.console.current import me, runtime
from effaced.console.resolver.page import Form, Typed, back, render_page
from effaced.console.urls import not_allowed
from effaced.core.errors import Conflict, Refused
from effaced.triage.systems import breakers_of

blueprint = Blueprint("advice", __name__)


@blueprint.post("/resolvers/<name>/advice")
def apply(name: str) -> Response:
    breaker = _breaker(name)
    try:
        with runtime().db.begin() as session:
            note = _note(session)
            plans = (
                runtime()
                .tuner(session)
                .enforce(runtime().advisor(session), actor=me().actor, note=note, only=[breaker])
            )
    except Refused as error:
        return render_page(name, Typed(Form.ADVICE, _reason(), error.message, breaker))
    if not plans:
        return back(name, "This suggestion no longer applies. Nothing was changed.", tone="warn")
    return back(name, "The suggestion was applied.")


@blueprint.post("/resolvers/<name>/advice/undo")
def take_back(name: str) -> Response:
    breaker = _breaker(name)
    try:
        with runtime().db.begin() as session:
            undo(session, breaker, actor=me().actor, note=_note(session))
    except Refused as error:
        return render_page(name, Typed(Form.ADVICE_UNDO, _reason(), error.message, breaker))
    except Conflict as error:
        return back(name, error.message, tone="warn")
    return back(name, "The last change was undone.")


def _reason() -> str:
    return request.form.get("reason", "")


def _note(session: Session) -> NoteRef:
    return write_note(session, runtime().keyring, _reason(), author=me().actor)


def _breaker(name: str) -> str:
    known = breakers_of(runtime().registry.get(name)) if name in runtime().registry else ()
    chosen = request.form.get("breaker", "")
    if chosen not in known:
        raise not_allowed("breaker", known)
    return chosen
