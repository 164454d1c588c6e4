"""Abandoned: what failed, and why? And: try it again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from flask import Blueprint, request
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response

from effaced.accounts.actors import names_of
from effaced.console.abandoned.facets import facet_rows, group_views
from effaced.console.abandoned.query import LetterQuery
from effaced.console.current import me, runtime
from effaced.console.htmx import render
from effaced.console.urls import not_allowed
from effaced.core.errors import Refused
from effaced.deadletters.read import (
    DeadLetterLine,
    count_dead_letters,
    dead_letters_by_id,
    list_dead_letters,
)
from effaced.requests.read import refs_of
from effaced.triage.retry import MOST, RedriveResult, redrive

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
        which = query.filter(session)
        page = list_dead_letters(session, which, after=after)
        kinds = [] if after else group_views(session, query, which, request.args.get("expand", ""))
        inner = [letter for kind in kinds for letter in kind.rows]
        context = {
            "page": page,
            "refs": refs_of(session, [letter.request_id for letter in (*page.items, *inner)]),
            "owners": _owners(session, (*page.items, *inner)),
            "total": count_dead_letters(session, which),
            "kinds": kinds,
            "facets": [] if after else facet_rows(session, query, which),
        }
    fragment = "console/abandoned/_rows.html" if after else "console/abandoned/_list.html"
    return render("console/abandoned/index.html", fragment, query=query, after=after, most=MOST, **context)


def _owners(session: Session, letters: Iterable[DeadLetterLine]) -> dict[UUID, str]:
    """Who looks after which letter, by name."""
    ids = {letter.assigned_to for letter in letters if letter.assigned_to}
    names = names_of(session, [f"officer:{each}" for each in ids])
    return {each: names[f"officer:{each}"] for each in ids}


@blueprint.post("/abandoned/confirm")
def confirm() -> Response:
    """Before anything happens: how many, which, and why."""
    query = LetterQuery.read(request.form)
    with runtime().db.read() as session:
        choice = _chosen()
        shown = dead_letters_by_id(session, choice.ids[:SHOWN], runtime().dead_letter_sla)
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
            shown = dead_letters_by_id(session, ids[:SHOWN], runtime().dead_letter_sla)
            refs = refs_of(session, [letter.request_id for letter in shown])
        return _confirmation(query, choice, shown, refs, reason=reason, error=error.message, status=422)
    return _results(query, results)


def _chosen() -> Choice:
    """The letters themselves: what is confirmed is what will be done."""
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
            letter.id: letter
            for letter in dead_letters_by_id(
                session, [each.dead_letter_id for each in results], runtime().dead_letter_sla
            )
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
