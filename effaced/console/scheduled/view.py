"""Scheduled: who waits for whom, until when?"""

from __future__ import annotations

from flask import Blueprint, request, url_for
from werkzeug.wrappers import Response

from effaced.console.charts import strip_chart
from effaced.console.current import by_hand, local_now, runtime
from effaced.console.htmx import render
from effaced.console.urls import text_arg, with_query, word_arg
from effaced.core.db.days import days_from
from effaced.outbox.read import (
    ParkedFilter,
    WaitsFor,
    count_scheduled,
    horizons,
    list_scheduled,
    scheduled_resolvers,
)
from effaced.requests.read import refs_of

blueprint = Blueprint("scheduled", __name__)
DAYS = 90


@blueprint.get("/scheduled")
def index() -> Response:
    which = ParkedFilter(text_arg("resolver"), word_arg("waits", WaitsFor), by_hand())
    after = request.args.get("after") or None
    zone = runtime().settings.zone
    days = days_from(local_now().date(), DAYS)
    with runtime().db.read() as session:
        page = list_scheduled(session, which, after=after)
        refs = refs_of(session, [entry.request_id for entry in page.items])
        total = count_scheduled(session, which)
        strip = horizons(session, days, zone, which)
        resolvers = scheduled_resolvers(session)
    fragment = "console/scheduled/_rows.html" if after else "console/scheduled/_list.html"
    return render(
        "console/scheduled/index.html",
        fragment,
        page=page,
        refs=refs,
        total=total,
        after=after,
        which=which,
        WaitsFor=WaitsFor,
        resolvers=sorted({*resolvers, *([which.resolver] if which.resolver else [])}),
        strip=strip,
        chart=strip_chart(strip),
        next_url=url_of(which, after=page.next),
        first_url=url_of(which),
    )


def url_of(which: ParkedFilter, *, after: str | None = None) -> str:
    values = {"resolver": which.resolver, "waits": which.waits_for, "after": after}
    return with_query(url_for("console.scheduled.index"), values)
