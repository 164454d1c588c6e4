"""One system: how it stands, what it did, which policies are in force. And: change its retry policy."""

from __future__ import annotations

from flask import Blueprint, abort, make_response, render_template, request, url_for
from flask import Response as Page
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from effaced.accounts.actors import names_of
from effaced.audit.notes import read_notes, write_note
from effaced.breakers import transitions
from effaced.breakers.model import host_name
from effaced.console.advice import plans_for, undoable
from effaced.console.breaker_view import breakers_of
from effaced.console.current import me, runtime
from effaced.console.htmx import go_to, render, say, wants_fragment
from effaced.console.policy_form import CHOICES, PolicyForm
from effaced.console.policy_view import breaker_lines, breaker_name, override_of, retry_lines, retry_target
from effaced.console.resolver_view import SystemView, one_system
from effaced.console.urls import with_query
from effaced.errors import Conflict, Problem, Refused
from effaced.retries.overrides import Override, put, undo
from effaced.retries.policy import check_changes

blueprint = Blueprint("resolver", __name__)
MOVES = 20


@blueprint.get("/resolvers/<name>")
def index(name: str) -> Response:
    if "after" in request.args and wants_fragment():
        return make_response(render_template("console/resolver/_moves.html", **_moves(name)))
    if "seen" in request.args and wants_fragment():
        return _state(name)
    return _page(name)


@blueprint.post("/resolvers/<name>/policy")
def change_policy(name: str) -> Response:
    """Have exactly the fields that are filled in differ from what is configured."""
    form = PolicyForm.typed(request.form)
    try:
        with runtime().db.begin() as session:
            _require_configured(name)
            before = override_of(session, name)
            changes = form.changes(before.body if before else {})
            check_changes(changes)
            note = write_note(session, runtime().keyring, form.reason, author=me().actor)
            put(session, retry_target(name), changes, check=check_changes, actor=me().actor, note=note)
    except Refused as error:
        return _page(name, PolicyForm.typed(request.form, error))
    except Conflict as error:
        return _back(name, error.message, tone="warn")
    return _back(name, f"The retry policy for {name} was changed.")


@blueprint.post("/resolvers/<name>/policy/undo")
def undo_policy(name: str) -> Response:
    reason = request.form.get("reason", "")
    try:
        with runtime().db.begin() as session:
            _require_configured(name)
            note = write_note(session, runtime().keyring, reason, author=me().actor)
            undo(session, retry_target(name), actor=me().actor, note=note)
    except Refused as error:
        return _page(name, undo_error=error.message, undo_reason=reason)
    except Conflict as error:
        return _back(name, error.message, tone="warn")
    return _back(name, f"The last change of the retry policy for {name} was undone.")


def find(session: Session, name: str) -> SystemView:
    found = one_system(session, name)
    if found is None:
        abort(404)
    return found


def _require_configured(name: str) -> None:
    if name not in runtime().registry:
        said = "is not configured any more"
        raise Refused(f"{name} {said}.", problems=[Problem("resolver", said)])


def _page(
    name: str, form: PolicyForm | None = None, *, undo_error: str | None = None, undo_reason: str = ""
) -> Page:
    with runtime().db.read() as session:
        view = find(session, name)
        called = view.system.registered is not None and not view.system.by_hand
        override = override_of(session, name)
        host = view.system.registered.host if view.system.registered else None
        context = {
            "retry": retry_lines(session, name) if called else [],
            "breaking": breaker_lines(session, breaker_name(name)) if called else [],
            "host_breaking": breaker_lines(session, host_name(host)) if called and host else [],
            "plans": plans_for(session, name) if called else [],
            "undoable": undoable(session, name) if called else [],
            "override": override,
            "changed_by": _changed_by(session, override),
        }
    return render(
        "console/resolver/index.html",
        "console/resolver/_page.html",
        422 if form or undo_error else 200,
        view=view,
        each=view,
        form=form or PolicyForm.of(override.body if override else {}),
        asked=form is not None,
        choices=CHOICES,
        undo_error=undo_error,
        undo_reason=undo_reason,
        **context,
        **_moves(name),
    )


def _state(name: str) -> Response:
    """What a poll brings: nothing while nothing moved and no countdown runs."""
    with runtime().db.read() as session:
        view = find(session, name)
    counting = view.worst is not None and view.worst.until is not None
    if not counting and view.worst is not None and request.args["seen"] == view.worst.circuit.value:
        return make_response("", 204)
    return make_response(render_template("console/resolver/_state.html", view=view, each=view))


def _moves(name: str) -> dict[str, object]:
    after = request.args.get("after") or None
    registry = runtime().registry
    names = breakers_of(registry.get(name)) if name in registry else (breaker_name(name),)
    with runtime().db.read() as session:
        page = transitions.page(session, names, after=after, limit=MOVES)
        who = names_of(session, [each.actor for each in page.items])
    url = url_for("console.resolver.index", name=name)
    return {"page": page, "who": who, "after": after, "next_url": with_query(url, {"after": page.next})}


def _changed_by(session: Session, override: Override | None) -> tuple[str, str | None] | None:
    """Who changed it last, and why."""
    if override is None or not override.changed_by:
        return None
    name = names_of(session, [override.changed_by])[override.changed_by]
    notes = [override.note_id] if override.note_id else []
    return name, next(iter(read_notes(session, runtime().keyring, notes).values()), None)


def _back(name: str, said: str, *, tone: str = "good") -> Response:
    say(said, tone=tone)
    return go_to(url_for("console.resolver.index", name=name))
