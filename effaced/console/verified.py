"""Verified: is it really gone?"""

from __future__ import annotations

from flask import Blueprint, request, url_for
from werkzeug.wrappers import Response

from effaced.console.current import runtime
from effaced.console.htmx import render
from effaced.console.urls import text_arg, with_query, word_arg
from effaced.model import Verification
from effaced.outbox.read import (
    VERIFICATION_ORDER,
    VerificationFilter,
    count_verifications,
    list_verifications,
    read_backs,
)
from effaced.requests.read import refs_of

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


def url_of(which: VerificationFilter, *, after: str | None = None) -> str:
    values = {"outcome": which.outcome, "resolver": which.resolver, "after": after}
    return with_query(url_for("console.verified.index"), values)
