"""Retentions: what need not be kept any more? And: erase it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from flask import Blueprint, request, url_for
from flask import Response as Page
from werkzeug.wrappers import Response

from effaced.console.current import me, runtime
from effaced.console.htmx import render
from effaced.console.urls import not_allowed, with_query
from effaced.core import clock
from effaced.core.errors import Refused
from effaced.requests.read import refs_of
from effaced.requests.retention import RetentionState
from effaced.retention.read import RetentionLine, count_due, list_due

blueprint = Blueprint("retentions", __name__)
MOST = 100
_TABLES = 20
# So many seconds somebody waits for the page; what is not done by then, the scheduler does.
_PATIENCE = 5.0


@blueprint.get("/retentions")
def index() -> Response:
    after = request.args.get("after") or None
    here = runtime()
    with here.db.read() as session:
        plan = here.retention_on(session)
        page = list_due(session, here.keyring, plan, after=after)
        total = count_due(session, plan.today)
    url = url_for("console.retentions.index")
    return render(
        "console/retentions/index.html",
        "console/retentions/_rows.html" if after else "console/retentions/_list.html",
        page=page,
        total=total,
        after=after,
        on_schedule=here.settings.retention_erase == "on_schedule",
        RetentionState=RetentionState,
        next_url=with_query(url, {"after": page.next}),
    )


@blueprint.post("/retentions/confirm")
def confirm() -> Response:
    """Before anything happens: whose, how many rows, and why."""
    return _confirmation(_chosen("only") or _chosen("ids"))


@blueprint.post("/retentions/erase")
def erase() -> Response:
    ids, reason, here = _chosen("ids"), request.form.get("reason", ""), runtime()
    try:
        until = clock.monotonic() + _PATIENCE
        results = list(here.ender.end_requests(ids, actor=me().actor, reason=reason, until=until))
    except Refused as error:
        return _confirmation(ids, reason=reason, error=error.message)
    with here.db.read() as session:
        refs = refs_of(session, ids)
    return render(
        "console/retentions/results.html", "console/retentions/_results.html", results=results, refs=refs
    )


def _chosen(field: str) -> list[UUID]:
    try:
        return [UUID(value) for value in dict.fromkeys(request.form.getlist(field))][:MOST]
    except ValueError:
        raise not_allowed(field, ["ids of requests"]) from None


def _confirmation(ids: Sequence[UUID], *, reason: str = "", error: str | None = None) -> Page:
    here = runtime()
    with here.db.read() as session:
        plan = here.retention_on(session)
        found = list_due(session, here.keyring, plan, only=list(ids), limit=MOST * _TABLES)
    return render(
        "console/retentions/confirm.html",
        "console/retentions/_confirm.html",
        422 if error else 200,
        ids=ids,
        lines=found.items,
        deleted=_sum(found.items, "deleted"),
        changed=_sum(found.items, "changed"),
        reason=reason,
        error=error,
        RetentionState=RetentionState,
    )


def _sum(lines: Sequence[RetentionLine], what: str) -> int:
    return sum(getattr(each.ended, what) for each in lines if each.standing is RetentionState.DUE)
