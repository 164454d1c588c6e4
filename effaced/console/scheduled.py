"""Scheduled: who waits for whom, until when?"""

from __future__ import annotations

from flask import Blueprint, request, url_for
from werkzeug.wrappers import Response

from effaced.console.charts import strip_chart
from effaced.console.current import local_now, runtime
from effaced.console.htmx import render
from effaced.console.urls import text_arg, with_query
from effaced.days import days_from
from effaced.outbox.read import count_scheduled, horizons, list_scheduled, scheduled_resolvers
from effaced.requests.read import refs_of

blueprint = Blueprint("scheduled", __name__)
DAYS = 90


@blueprint.get("/scheduled")
def index() -> Response:
    resolver, after = text_arg("resolver"), request.args.get("after") or None
    zone = runtime().settings.zone
    days = days_from(local_now().date(), DAYS)
    with runtime().db.read() as session:
        page = list_scheduled(session, resolver=resolver, after=after)
        refs = refs_of(session, [entry.request_id for entry in page.items])
        total = count_scheduled(session, resolver=resolver)
        strip = horizons(session, days, zone, resolver=resolver)
        resolvers = scheduled_resolvers(session)
    fragment = "console/scheduled/_rows.html" if after else "console/scheduled/_list.html"
    return render(
        "console/scheduled/index.html",
        fragment,
        page=page,
        refs=refs,
        total=total,
        after=after,
        resolver=resolver,
        resolvers=sorted({*resolvers, *([resolver] if resolver else [])}),
        strip=strip,
        chart=strip_chart(strip),
        next_url=with_query(url_for("console.scheduled.index"), {"resolver": resolver, "after": page.next}),
    )
