"""Audit: what was done, by whom?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from flask import Blueprint, Response, request, url_for
from sqlalchemy.orm import Session
from werkzeug.wrappers import Response as BaseResponse

from effaced.accounts.actors import all_actors, names_of
from effaced.audit.events import TYPES
from effaced.audit.export import MEDIA_TYPES, export
from effaced.audit.read import AuditFilter, AuditLine, list_events
from effaced.console import times
from effaced.console.audit.sentences import describe_event
from effaced.console.current import me, runtime
from effaced.console.guard import reading
from effaced.console.htmx import render
from effaced.console.urls import not_allowed, request_id_of, with_query
from effaced.core import clock
from effaced.core.db.days import start_of
from effaced.core.errors import Problem, Refused
from effaced.core.paging import Page
from effaced.model import ExportFormat
from effaced.requests.read import refs_of

blueprint = Blueprint("audit", __name__)
_ACTOR = re.compile(r"system|cli|(officer|api_key):[0-9a-f-]{36}")


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """The filters as they stand in the URL."""

    type: str = ""
    ref: str = ""
    actor: str = ""
    since: str = ""
    until: str = ""

    @classmethod
    def read(cls, values: Mapping[str, str]) -> AuditQuery:
        given = {name: values.get(name, "").strip() for name in cls.__slots__}
        for name, value in given.items():
            if len(value) > 80 or not value.isprintable():
                raise not_allowed(name, ["at most 80 printable characters"])
        if given["actor"] and not _ACTOR.fullmatch(given["actor"]):
            raise not_allowed("actor", ["system", "cli", "officer:<id>", "api_key:<id>"])
        if given["type"] and given["type"] not in TYPES:
            raise not_allowed("type", sorted(TYPES))
        return cls(**given)

    def url(self, *, after: str | None = None) -> str:
        values = {name: getattr(self, name) for name in self.__slots__} | {"after": after}
        return with_query(url_for("console.audit.index"), values)

    @property
    def filtered(self) -> bool:
        return self != AuditQuery()

    def filter(self, session: Session) -> AuditFilter:
        """What it means in the database. Days are those of the console's time zone; `until` is included."""
        zone = runtime().settings.zone
        since, until = _day("since", self.since), _day("until", self.until)
        if since and until and until < since:
            raise Refused("The range ends before it begins.", problems=[Problem("To", "comes before From")])
        return AuditFilter(
            request_id=request_id_of(session, self.ref),
            type=self.type or None,
            actor=self.actor or None,
            since=start_of(since, zone) if since else None,
            until=start_of(until + timedelta(days=1), zone) if until else None,
        )


@blueprint.get("/audit")
def index() -> BaseResponse:
    query, after = AuditQuery.read(request.args), request.args.get("after") or None
    zone, error = runtime().settings.zone, None
    page: Page[AuditLine] = Page(())
    with runtime().db.read() as session:
        try:
            page = list_events(session, query.filter(session), after=after)
        except Refused as refusal:
            error = str(refusal)
        refs = refs_of(session, [line.request_id for line in page.items])
        names = names_of(session, [line.actor for line in page.items])
        actors = all_actors(session)
    told = [
        (line, *describe_event(line.type, line.payload, lambda at: times.absolute(at, zone)))
        for line in page.items
    ]
    fragment = "console/audit/_rows.html" if after and not error else "console/audit/_list.html"
    return render(
        "console/audit/index.html",
        fragment,
        422 if error else 200,
        query=query,
        page=page,
        told=told,
        refs=refs,
        names=names,
        actors=actors,
        types=sorted(TYPES),
        after=after,
        error=error,
        next_url=query.url(after=page.next),
    )


@blueprint.post("/audit/export/<fmt>")
@reading
def take_out(fmt: str) -> Response:
    """The events of the filter as a file. That somebody took them is an event itself."""
    try:
        wanted = ExportFormat(fmt)
    except ValueError:
        raise not_allowed("format", [each.value for each in ExportFormat]) from None
    query = AuditQuery.read(request.form)
    with runtime().db.read() as session:
        which = query.filter(session)
    spool = export(runtime().db, which, wanted, actor=me().actor, spool_dir=runtime().settings.spool_dir)
    name = f"effaced-audit-{clock.now():%Y%m%dT%H%M%SZ}.{wanted.value}"
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Length": str(spool.size),
    }
    return Response(spool, content_type=MEDIA_TYPES[wanted], headers=headers)


def _day(name: str, value: str) -> date | None:
    if not value:
        return None
    try:
        day = date.fromisoformat(value)
    except ValueError:
        day = None
    if day is None or not 1970 <= day.year <= 2200:
        raise not_allowed(name, ["a day like 2026-03-31"])
    return day
