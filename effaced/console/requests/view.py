"""Requests: where is everything?"""

from __future__ import annotations

from dataclasses import replace

from flask import Blueprint, request
from werkzeug.wrappers import Response

from effaced.audit.append import append_one
from effaced.audit.events import SubjectSearched
from effaced.console.current import local_now, me, runtime
from effaced.console.guard import reading
from effaced.console.htmx import go_to, render
from effaced.console.requests.query import (
    ALL,
    CLOSED,
    DUE_WORDS,
    OPEN,
    STATES_IN_USE,
    RequestQuery,
    current_page,
    query_of_url,
)
from effaced.console.search_token import make_token, read_token
from effaced.console.words import label
from effaced.core.errors import Problem, Refused
from effaced.model import RequestKind
from effaced.requests.identifiers import LONGEST, SUBJECT_ID, find_requests
from effaced.requests.read import Blocker, count_requests, list_requests

blueprint = Blueprint("requests", __name__)


@blueprint.get("/requests")
def index() -> Response:
    query, after, now = query_of_url(), current_page(), local_now()
    if query.subject:
        found = read_token(runtime().keyring, query.subject, officer=me().id)
        query = replace(query, found=found)
    with runtime().db.read() as session:
        page = list_requests(session, query.filter(), now, latest_first=query.latest_first, after=after)
        total = count_requests(session, query.filter(), now)
    fragment = "console/requests/_rows.html" if after else "console/requests/_list.html"
    return render(
        "console/requests/index.html",
        fragment,
        query=query,
        page=page,
        total=total,
        after=after,
        choices=_choices(query),
        kinds=identifier_kinds(),
        search_error=None,
        search_kind=None,
    )


@blueprint.post("/requests/search")
@reading
def search() -> Response:
    kind, value = request.form.get("kind", ""), request.form.get("value", "").strip()
    if kind not in identifier_kinds():
        expected = f"expected {', '.join(identifier_kinds())}"
        raise Refused("The kind of identifier is not known.", problems=[Problem("kind", expected)])
    if not value or len(value) > LONGEST:
        return _ask_again(
            kind, "Type what to look for." if not value else "This is too long for an identifier."
        )
    with runtime().db.begin() as session:
        found = find_requests(session, runtime().keyring, kind, value)
        append_one(session, SubjectSearched(kind=kind, found=len(found)), actor=me().actor)
    token = make_token(runtime().keyring, found, officer=me().id)
    return go_to(RequestQuery(status=ALL, subject=token).url())


def identifier_kinds() -> list[str]:
    """By what a person can be looked up: their key, and what the data map declares."""
    return [SUBJECT_ID, *runtime().datamap.identifier_kinds]


def _ask_again(kind: str, error: str) -> Response:
    # What was typed may name a person; it is not sent back.
    query, now = RequestQuery(), local_now()
    with runtime().db.read() as session:
        page = list_requests(session, query.filter(), now)
        total = count_requests(session, query.filter(), now)
    return render(
        "console/requests/index.html",
        "console/requests/_search.html",
        422,
        query=query,
        page=page,
        total=total,
        after=None,
        choices=_choices(query),
        kinds=identifier_kinds(),
        search_error=error,
        search_kind=kind,
    )


def _choices(query: RequestQuery) -> dict[str, list[tuple[str, str]]]:
    """What each filter can be set to, in words."""
    groups = [("", "Open"), (CLOSED, "Closed"), (ALL, "Open and closed")]
    if query.subject:
        groups = [("", "Open and closed"), (OPEN, "Open"), (CLOSED, "Closed")]
    return {
        "status": groups + [(status.value, label(status)) for status in STATES_IN_USE],
        "due": [("", "Any time"), *((due.value, words.capitalize()) for due, words in DUE_WORDS.items())],
        "kind": [("", "Any kind"), *((each.value, label(each)) for each in RequestKind)],
        "blocked": [
            ("", "Blocked or not"),
            *((each.value, label(each)) for each in Blocker if each is not Blocker.HOLD),
        ],
    }
