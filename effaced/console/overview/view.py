"""Overview: what needs me now?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from flask import Blueprint, render_template, url_for
from sqlalchemy.orm import Session

from effaced.console.charts import Flow, flow_chart
from effaced.console.current import by_hand, local_now, runtime
from effaced.console.requests.query import RequestQuery
from effaced.console.resolver.breakers import load_breakers, not_closed
from effaced.console.resolvers.view import State
from effaced.core.db.days import days_from
from effaced.deadletters.read import DeadLetterFilter, count_dead_letters
from effaced.model import RequestStatus, Verification
from effaced.outbox.absences import recent_alarms
from effaced.outbox.flow import ALL, pauses
from effaced.outbox.read import (
    ParkedFilter,
    VerificationFilter,
    WaitsFor,
    count_scheduled,
    count_verifications,
)
from effaced.requests.read import (
    Due,
    OpenState,
    completed_by_day,
    count_requests,
    list_requests,
    received_by_day,
)
from effaced.retention.read import count_due

blueprint = Blueprint("overview", __name__)
DAYS = 30
NEXT = 6


@dataclass(frozen=True, slots=True)
class Need:
    """One number, what it means, and the list that has exactly that many rows."""

    name: str
    hint: str
    count: int
    url: str
    tone: str
    icon: str


@blueprint.get("/")
def index() -> str:
    now = local_now()
    with runtime().db.read() as session:
        needs = needs_of(session)
        next_up = list_requests(session, RequestQuery().filter(), now, limit=NEXT)
        flow = _flow(session)
        paused, absences = sorted(pauses(session)), sorted(recent_alarms(session))
    return render_template(
        "console/overview/index.html",
        needs=needs,
        calm=not any(need.count for need in needs if need.tone != "info") and not paused and not absences,
        next_up=next_up,
        paused=paused,
        everything_paused=ALL in paused,
        absences=absences,
        all_open=RequestQuery(),
        flow=flow,
        chart=flow_chart(flow),
    )


def needs_of(session: Session) -> list[Need]:
    """All that may need a person, the most urgent first. A count runs the query of the list it links to."""
    return [
        _requests(
            session, RequestQuery(due=Due.OVERDUE), "Overdue", "past the legal deadline", "bad", "alert"
        ),
        _requests(
            session, RequestQuery(due=Due.SOON), "Due in 7 days", "still open, deadline near", "warn", "clock"
        ),
        _requests(
            session,
            RequestQuery(status=RequestStatus.REVIEW.value),
            "Waiting for approval",
            "nothing happens until you decide",
            "warn",
            "user",
        ),
        Need(
            "Failed steps",
            "failed for good, until someone acts",
            count_dead_letters(session, DeadLetterFilter()),
            url_for("console.abandoned.index"),
            "bad",
            "cross",
        ),
        _requests(
            session,
            RequestQuery(status=OpenState.NOT_VERIFIED.value),
            "Not verified",
            "every call made, not yet seen to be gone",
            "warn",
            "eye",
        ),
        Need(
            "Failed verifications",
            "reported gone, found again",
            count_verifications(session, VerificationFilter(Verification.STILL_PRESENT)),
            url_for("console.verified.index", outcome=Verification.STILL_PRESENT.value),
            "bad",
            "eye",
        ),
        Need(
            "Waiting for a person",
            "no interface there: do it and attest",
            count_scheduled(session, ParkedFilter(None, WaitsFor.PERSON, by_hand())),
            url_for("console.scheduled.index", waits=WaitsFor.PERSON.value),
            "warn",
            "user",
        ),
        Need(
            "Open breakers",
            "no calls go out there",
            len(not_closed(load_breakers())),
            url_for("console.resolvers.index", state=State.OPEN.value),
            "bad",
            "globe",
        ),
        Need(
            "Paused systems",
            "nothing is called there",
            len(pauses(session).keys() - {ALL}),
            url_for("console.resolvers.index", state=State.PAUSED.value),
            "warn",
            "pause",
        ),
        Need(
            "Retention ended",
            "need not be kept any more",
            count_due(session, local_now().date()),
            url_for("console.retentions.index"),
            "warn",
            "clock",
        ),
        Need(
            "Waiting at a vendor",
            "the vendor named a later date",
            count_scheduled(session, ParkedFilter(None, WaitsFor.VENDOR, by_hand())),
            url_for("console.scheduled.index", waits=WaitsFor.VENDOR.value),
            "info",
            "hourglass",
        ),
    ]


def _requests(session: Session, query: RequestQuery, name: str, hint: str, tone: str, icon: str) -> Need:
    return Need(name, hint, count_requests(session, query.filter(), local_now()), query.url(), tone, icon)


def _flow(session: Session) -> list[Flow]:
    zone = runtime().settings.zone
    today = local_now().date()
    days = days_from(today - timedelta(days=DAYS - 1), DAYS)
    received, completed = received_by_day(session, days, zone), completed_by_day(session, days, zone)
    return [Flow(day.date, day.count, done.count) for day, done in zip(received, completed, strict=True)]
