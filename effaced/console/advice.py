"""What the figures suggest for one system's policies. And: apply it, undo it."""

from __future__ import annotations

from flask import Blueprint, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from effaced.audit.notes import NoteRef, write_note
from effaced.breakers.autotune import AutoTunePlan, target_of, undo
from effaced.console.breaker_view import breakers_of
from effaced.console.current import me, runtime
from effaced.console.htmx import go_to, say
from effaced.console.urls import not_allowed
from effaced.errors import Conflict, Refused
from effaced.model import PolicyKind
from effaced.retries.overrides import get

blueprint = Blueprint("advice", __name__)


def plans_for(session: Session, name: str) -> list[AutoTunePlan]:
    """The suggestions for its own breaker and its host's."""
    mine = breakers_of(runtime().registry.get(name))
    found = runtime().tuner(session).suggest(runtime().advisor(session))
    return [each for each in found if each.breaker in mine]


def undoable(session: Session, name: str) -> list[str]:
    """Those of its breakers whose policy or rate limit was changed and can be changed back."""
    return [
        breaker
        for breaker in breakers_of(runtime().registry.get(name))
        if any(
            (found := get(session, target_of(breaker, kind))) is not None and found.previous is not None
            for kind in (PolicyKind.BREAKER, PolicyKind.RATE)
        )
    ]


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
        return _back(name, error.message, tone="bad")
    if not plans:
        return _back(name, "The figures do not suggest this any more. Nothing was changed.", tone="warn")
    return _back(name, "The suggestion was applied.")


@blueprint.post("/resolvers/<name>/advice/undo")
def take_back(name: str) -> Response:
    breaker = _breaker(name)
    try:
        with runtime().db.begin() as session:
            undo(session, breaker, actor=me().actor, note=_note(session))
    except Refused as error:
        return _back(name, error.message, tone="bad")
    except Conflict as error:
        return _back(name, error.message, tone="warn")
    return _back(name, "The last change was undone.")


def _note(session: Session) -> NoteRef:
    return write_note(session, runtime().keyring, request.form.get("reason", ""), author=me().actor)


def _breaker(name: str) -> str:
    known = breakers_of(runtime().registry.get(name)) if name in runtime().registry else ()
    chosen = request.form.get("breaker", "")
    if chosen not in known:
        raise not_allowed("breaker", known)
    return chosen


def _back(name: str, said: str, *, tone: str = "good") -> Response:
    say(said, tone=tone)
    return go_to(url_for("console.resolver.index", name=name))
