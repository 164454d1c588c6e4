"""Abandoned: what failed, and why? And: try it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from flask import Blueprint, request
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from effaced.console.current import me, runtime
from effaced.console.htmx import render
from effaced.console.letter_query import ALL, LetterQuery
from effaced.console.urls import not_allowed
from effaced.console.words import label
from effaced.deadletters.read import (
    DeadLetterLine,
    choices,
    count_dead_letters,
    groups,
    ids_matching,
    lines_by_id,
    list_dead_letters,
)
from effaced.deadletters.tables import DeadLetter
from effaced.errors import Refused
from effaced.model import DeadLetterDomain, DeadLetterStatus
from effaced.requests.read import refs_of
from effaced.requests.redrive import MOST, RedriveResult, redrive

blueprint = Blueprint("abandoned", __name__)
SHOWN = 12


@dataclass(frozen=True, slots=True)
class Choice:
    """What a requeue is about: these letters, how they were chosen, and how many more there are."""

    ids: tuple[UUID, ...]
    words: str
    matching: int

    @property
    def left_out(self) -> int:
        return max(0, self.matching - len(self.ids))


@blueprint.get("/abandoned")
def index() -> Response:
    query, after = LetterQuery.read(request.args), request.args.get("after") or None
    with runtime().db.read() as session:
        page = list_dead_letters(session, query.filter(session), after=after)
        context = {
            "page": page,
            "refs": refs_of(session, [letter.request_id for letter in page.items]),
            "total": count_dead_letters(session, query.filter(session)),
            "groups": groups(session, query.filter(session)),
            "filters": _filters(session, query),
        }
    fragment = "console/abandoned/_rows.html" if after else "console/abandoned/_list.html"
    return render("console/abandoned/index.html", fragment, query=query, after=after, most=MOST, **context)


@blueprint.post("/abandoned/confirm")
def confirm() -> Response:
    """Before anything happens: how many, which, and why."""
    query = LetterQuery.read(request.form)
    with runtime().db.read() as session:
        choice = _chosen(session, query)
        shown = lines_by_id(session, choice.ids[:SHOWN])
        refs = refs_of(session, [letter.request_id for letter in shown])
    return _confirmation(query, choice, shown, refs)


@blueprint.post("/abandoned/requeue")
def requeue() -> Response:
    query, reason = LetterQuery.read(request.form), request.form.get("reason", "")
    ids = _ids(request.form.getlist("ids"))
    try:
        with runtime().db.begin() as session:
            results = redrive(session, runtime().keyring, ids, actor=me().actor, reason=reason, force=True)
    except Refused as error:
        with runtime().db.read() as session:
            choice = Choice(tuple(ids), request.form.get("words", ""), len(ids))
            shown = lines_by_id(session, ids[:SHOWN])
            refs = refs_of(session, [letter.request_id for letter in shown])
        return _confirmation(query, choice, shown, refs, reason=reason, error=error.message, status=422)
    return _results(query, results)


def _chosen(session: Session, query: LetterQuery) -> Choice:
    """The letters themselves, not the filter: what is confirmed is what will be done."""
    if request.form.get("all"):
        ids = ids_matching(session, query.filter(session), limit=MOST)
        return Choice(
            tuple(ids),
            f"all dead letters that are {query.words()}",
            count_dead_letters(session, query.filter(session)),
        )
    picked = request.form.getlist("only") or request.form.getlist("ids")
    ids = _ids(picked)[:MOST]
    return Choice(tuple(ids), "chosen one by one", len(picked))


def _ids(values: list[str]) -> list[UUID]:
    try:
        return [UUID(value) for value in dict.fromkeys(values)]
    except ValueError:
        raise not_allowed("ids", ["ids of dead letters"]) from None


def _confirmation(
    query: LetterQuery,
    choice: Choice,
    shown: list[DeadLetterLine],
    refs: dict[UUID, str],
    *,
    reason: str = "",
    error: str | None = None,
    status: int = 200,
) -> Response:
    return render(
        "console/abandoned/confirm.html",
        "console/abandoned/_confirm.html",
        status,
        query=query,
        choice=choice,
        shown=shown,
        refs=refs,
        reason=reason,
        error=error,
        most=MOST,
    )


def _results(query: LetterQuery, results: list[RedriveResult]) -> Response:
    with runtime().db.read() as session:
        letters = {
            letter.id: letter for letter in lines_by_id(session, [each.dead_letter_id for each in results])
        }
        refs = refs_of(session, [letter.request_id for letter in letters.values()])
    response = render(
        "console/abandoned/results.html",
        "console/abandoned/_results.html",
        query=query,
        results=results,
        letters=letters,
        refs=refs,
        requeued=sum(each.requeued for each in results),
    )
    # A reload shows the list, not the question that has been answered.
    response.headers["HX-Replace-Url"] = query.url()
    return response


def _filters(session: Session, query: LetterQuery) -> dict[str, list[tuple[str, str]]]:
    """What each filter can be set to: only what exists under the other filters."""
    resolvers = choices(session, DeadLetter.resolver, replace(query, resolver="").filter(session))
    errors = choices(session, DeadLetter.failure_type, replace(query, error="").filter(session))
    return {
        "status": [
            ("", "Open"),
            (ALL, "Any state"),
            *((each.value, label(each)) for each in DeadLetterStatus),
        ],
        "domain": [("", "Anywhere"), *((each.value, label(each)) for each in DeadLetterDomain)],
        "resolver": [("", "Any system"), *((name, name) for name in _with(resolvers, query.resolver))],
        "error": [("", "Any error"), *((name, name) for name in _with(errors, query.error))],
    }


def _with(names: list[str], chosen: str) -> list[str]:
    return sorted({*names, *([chosen] if chosen else [])})
