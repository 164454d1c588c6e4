"""One system: how it stands, what it did, which policies are in force. And: change its retry policy."""

from __future__ import annotations

from flask import Blueprint, make_response, render_template, request
from werkzeug.wrappers import Response

from effaced.audit.notes import write_note
from effaced.console.current import me, runtime
from effaced.console.htmx import wants_fragment
from effaced.console.resolver.page import Form, Typed, back, find, moves, render_page
from effaced.console.resolver.policies import override_of, retry_target
from effaced.console.resolver.policy_form import PolicyForm
from effaced.core.errors import Conflict, Problem, Refused
from effaced.retries.overrides import set_override, undo_override
from effaced.retries.policy import check_changes

blueprint = Blueprint("resolver", __name__)


@blueprint.get("/resolvers/<name>")
def index(name: str) -> Response:
    if "after" in request.args and wants_fragment():
        return make_response(render_template("console/resolver/_moves.html", **moves(name)))
    if "seen" in request.args and wants_fragment():
        return _state(name)
    return render_page(name)


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
            set_override(
                session, retry_target(name), changes, check=check_changes, actor=me().actor, note=note
            )
    except Refused as error:
        return render_page(name, policy=PolicyForm.typed(request.form, error))
    except Conflict as error:
        return back(name, error.message, tone="warn")
    return back(name, f"The retry policy for {name} was changed.")


@blueprint.post("/resolvers/<name>/policy/undo")
def undo_policy(name: str) -> Response:
    reason = request.form.get("reason", "")
    try:
        with runtime().db.begin() as session:
            _require_configured(name)
            note = write_note(session, runtime().keyring, reason, author=me().actor)
            undo_override(session, retry_target(name), actor=me().actor, note=note)
    except Refused as error:
        return render_page(name, Typed(Form.POLICY_UNDO, reason, error.message))
    except Conflict as error:
        return back(name, error.message, tone="warn")
    return back(name, f"The last change of the retry policy for {name} was undone.")


def _require_configured(name: str) -> None:
    if name not in runtime().registry:
        said = "is not configured any more"
        raise Refused(f"{name} {said}.", problems=[Problem("resolver", said)])


def _state(name: str) -> Response:
    """What a poll brings: nothing while nothing moved and no countdown runs."""
    with runtime().db.read() as session:
        view = find(session, name)
    if not view.counting and request.args["seen"] == view.version:
        return make_response("", 204)
    return make_response(render_template("console/resolver/_state.html", view=view))
