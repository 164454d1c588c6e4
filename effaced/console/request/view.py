"""Request: what happened to this person's request?"""

from __future__ import annotations

from flask import Blueprint, abort, make_response, render_template, url_for
from flask import request as http
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from effaced.console.current import me, runtime
from effaced.console.htmx import go_to, instead, render, say, wants_fragment
from effaced.console.request.page import view_of
from effaced.core.errors import Conflict, Refused
from effaced.model import RequestKind, RequestStatus
from effaced.requests.approve import approve_and_execute
from effaced.requests.read import find_by_ref
from effaced.requests.tables import Request

blueprint = Blueprint("request", __name__)


@blueprint.get("/requests/<ref>")
def index(ref: str) -> Response:
    """The page; for a poll the live part, or nothing if it is as the browser has it."""
    page, samples = not wants_fragment(), http.args.get("rows") == "masked"
    with runtime().db.read() as session:
        view = view_of(session, _find(session, ref), me(), with_plan=page, with_samples=samples)
    if wants_fragment() and http.args.get("seen") == view.version:
        return make_response("", 204)
    return render(
        "console/request/index.html",
        "console/request/_live.html",
        view=view,
        hands_seen=http.args.get("hands"),
        **_form(),
    )


@blueprint.post("/requests/<ref>/approve")
def give_approval(ref: str) -> Response:
    reason = http.form.get("reason", "")
    if (seen := http.form.get("datamap")) and seen != runtime().datamap.hash:
        # What was read before the click is not what would be done now.
        say("The data map has changed. See what it would do now, and approve again.", tone="warn")
        return go_to(url_for("console.request.index", ref=ref))
    try:
        with runtime().db.read() as session:
            found = _find(session, ref)
        request = approve_and_execute(runtime().executor, found.id, by=me().id, reason=reason)
    except Refused as error:
        return _ask_again(ref, reason, error)
    except Conflict as error:
        say(error.message, tone="warn")
        return go_to(url_for("console.request.index", ref=ref))
    return _approved(request)


def _approved(request: Request) -> Response:
    if request.status is RequestStatus.REVIEW:
        said, tone = "Approved. Another officer's approval is still needed.", "good"
    elif request.status is RequestStatus.APPROVED and not request.execute_attempts:
        said, tone = "Approved. There are very many rows: they are changed in batches next.", "good"
    elif request.status is RequestStatus.APPROVED:
        said, tone = "Approved, but your database could not be changed. Nothing was lost.", "warn"
    else:
        done = "corrected" if request.kind is RequestKind.RECTIFICATION else "executed"
        said, tone = f"Approved and {done} in your database.", "good"
    if request.status is RequestStatus.CANCELLED:
        said, tone = "Approved, but the person was erased meanwhile: nothing is left to correct.", "warn"
    if not wants_fragment():
        say(said, tone=tone)
        return go_to(url_for("console.request.index", ref=request.ref))
    with runtime().db.read() as session:
        view = view_of(session, _find(session, request.ref), me(), with_plan=True)
    response = make_response(render_template("console/request/_request.html", view=view, **_form()))
    say(said, tone=tone, on=response)
    return instead(response, target="#request")


def _ask_again(ref: str, reason: str, error: Refused) -> Response:
    with runtime().db.read() as session:
        view = view_of(session, _find(session, ref), me(), with_plan=True)
    return render(
        "console/request/index.html",
        "console/request/_approve.html",
        422,
        view=view,
        **_form(reason=reason, error=error.message),
    )


def _form(reason: str = "", error: str | None = None) -> dict[str, str | None]:
    return {"reason": reason, "error": error}


def _find(session: Session, ref: str) -> Request:
    found = find_by_ref(session, ref)
    if found is None:
        abort(404)
    return found
