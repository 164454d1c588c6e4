"""Verified: is it really gone?"""

from __future__ import annotations

from uuid import UUID

from flask import Blueprint, abort, request, url_for
from werkzeug.wrappers import Response

from effaced.console.current import me, runtime
from effaced.console.htmx import go_to, render, say
from effaced.console.urls import text_arg, with_query, word_arg
from effaced.core.errors import Conflict, Refused
from effaced.model import Verification
from effaced.outbox.read import (
    VERIFICATION_ORDER,
    VerificationFilter,
    count_verifications,
    find_entry,
    list_verifications,
    read_backs,
)
from effaced.requests.read import refs_of
from effaced.triage.retry import reverify

blueprint = Blueprint("verified", __name__)


@blueprint.get("/verified")
def index() -> Response:
    which = VerificationFilter(word_arg("outcome", Verification), text_arg("resolver"))
    after = request.args.get("after") or None
    with runtime().db.read() as session:
        page = list_verifications(session, which, after=after)
        refs = refs_of(session, [entry.request_id for entry in page.items])
        total = count_verifications(session, which)
        summary = read_backs(session)
    fragment = "console/verified/_rows.html" if after else "console/verified/_list.html"
    return render(
        "console/verified/index.html",
        fragment,
        page=page,
        refs=refs,
        total=total,
        after=after,
        which=which,
        summary=summary,
        outcomes=VERIFICATION_ORDER,
        resolvers=sorted(
            {each.resolver for each in summary} | ({which.resolver} if which.resolver else set())
        ),
        next_url=url_of(which, after=page.next),
    )


@blueprint.get("/verified/<uuid:entry_id>")
def ask(entry_id: UUID) -> Response:
    """Before a system is asked once more: which, and why."""
    return _question(entry_id)


@blueprint.post("/verified/<uuid:entry_id>")
def look_again(entry_id: UUID) -> Response:
    reason = request.form.get("reason", "")
    try:
        with runtime().db.begin() as session:
            resolver = reverify(session, runtime().keyring, entry_id, actor=me().actor, reason=reason)
    except Refused as error:
        return _question(entry_id, reason=reason, error=error.message)
    except Conflict as error:
        say(error.message, tone="warn")
        return go_to(url_for("console.verified.index"))
    say(f"{resolver} will be called to erase and then read back again. The result will appear here.")
    return go_to(url_for("console.verified.index"))


def _question(entry_id: UUID, *, reason: str = "", error: str | None = None) -> Response:
    with runtime().db.read() as session:
        entry = find_entry(session, entry_id)
        if entry is None:
            abort(404)
        refs = refs_of(session, [entry.request_id])
    return render(
        "console/verified/again.html",
        "console/verified/_again.html",
        422 if error else 200,
        entry=entry,
        ref=refs.get(entry.request_id),
        reason=reason,
        error=error,
    )


def url_of(which: VerificationFilter, *, after: str | None = None) -> str:
    values = {"outcome": which.outcome, "resolver": which.resolver, "after": after}
    return with_query(url_for("console.verified.index"), values)
