"""The life of a request as one table, and the only code that writes a request's status.

To add a status: a member of `RequestStatus`, and a line here for each way in and out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, cast

from sqlalchemy import Table, Update, Uuid, bindparam, inspect, null, or_, update
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import set_committed_value

from effaced.core.db.pipeline import run_statement
from effaced.core.errors import Conflict, Refused
from effaced.model import CLOSED
from effaced.model import RequestStatus as Status
from effaced.requests.tables import Request


class RequestEvent(StrEnum):
    """What can happen to a request. The values end the sentence "the request can't be ..."."""

    RECEIVED_FOR_REVIEW = "received for review"
    RECEIVED_AS_APPROVED = "received as approved"
    RECEIVED_AS_DUPLICATE = "received as a duplicate"
    RELEASED = "released from its original"
    APPROVED = "approved"
    EXECUTED = "executed"
    COMPLETED = "completed"
    COMPLETED_WITH_ORIGINAL = "completed with its original"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


class Who(StrEnum):
    """The kinds of actor, as they stand before the colon in an event's actor."""

    SYSTEM = "system"
    OFFICER = "officer"
    API_KEY = "api_key"


@dataclass(frozen=True, slots=True)
class Transition:
    """One line of the table. `source` is None for a request that is new."""

    source: Status | None
    event: RequestEvent
    target: Status
    who: tuple[Who, ...]


_NEW = None
_SOURCES = (Who.API_KEY, Who.OFFICER, Who.SYSTEM)
_PEOPLE = (Who.API_KEY, Who.OFFICER)

TRANSITIONS = (
    Transition(_NEW, RequestEvent.RECEIVED_FOR_REVIEW, Status.REVIEW, _SOURCES),
    Transition(_NEW, RequestEvent.RECEIVED_AS_APPROVED, Status.APPROVED, _SOURCES),
    Transition(_NEW, RequestEvent.RECEIVED_AS_DUPLICATE, Status.RECEIVED, _SOURCES),
    Transition(Status.RECEIVED, RequestEvent.RELEASED, Status.REVIEW, (Who.SYSTEM,)),
    Transition(Status.RECEIVED, RequestEvent.COMPLETED_WITH_ORIGINAL, Status.COMPLETED, (Who.SYSTEM,)),
    Transition(Status.REVIEW, RequestEvent.APPROVED, Status.APPROVED, (Who.OFFICER,)),
    Transition(Status.REVIEW, RequestEvent.CANCELLED, Status.CANCELLED, _PEOPLE),
    Transition(Status.REVIEW, RequestEvent.SUPERSEDED, Status.CANCELLED, (Who.SYSTEM,)),
    Transition(Status.APPROVED, RequestEvent.EXECUTED, Status.RUNNING, (Who.SYSTEM,)),
    Transition(Status.APPROVED, RequestEvent.CANCELLED, Status.CANCELLED, _PEOPLE),
    Transition(Status.APPROVED, RequestEvent.SUPERSEDED, Status.CANCELLED, (Who.SYSTEM,)),
    Transition(Status.RUNNING, RequestEvent.COMPLETED, Status.COMPLETED, (Who.SYSTEM,)),
)

_BY_SOURCE = {(each.source, each.event): each for each in TRANSITIONS}
_requests = cast(Table, Request.__table__)
_ID = "changed_id"
_columns = inspect(Request).columns


def transition(session: Session, request: Request, event: RequestEvent, *, by: str, **values: Any) -> None:
    """Give the request the status that follows, and `values` with it; the caller has locked it.

    `by` is the actor. A request that is closed loses its metadata. Refuses, with nothing written, what the
    table does not have. A new request is only given its status: it is written when the caller adds it to the
    session.
    """
    line = check_transition(request, event, by=by)
    values["status"] = line.target
    if line.target in CLOSED:
        values |= {"metadata_values": None}
    if line.source is _NEW:
        for name, value in values.items():
            setattr(request, name, value)
        return
    # Not by a flush, which would wait for the answer: this may travel with other statements.
    run_statement(session, _update_of(tuple(values)), {**values, _ID: request.id})
    columns = {_columns[name]: value for name, value in values.items()}
    session.execute(update(_requests).where(_requests.c.id == request.id).values(columns))
    for name, value in values.items():
        set_committed_value(request, name, value)


@cache
def _update_of(names: tuple[str, ...]) -> Update:
    columns = {_columns[name]: bindparam(name, type_=_columns[name].type) for name in names}
    return update(_requests).where(_requests.c.id == bindparam(_ID, type_=Uuid())).values(columns)


def check_transition(request: Request, event: RequestEvent, *, by: str) -> Transition:
    """The line of the table that applies. Conflict in another status, Refused for another actor."""
    status: Status | None = request.status
    found = _BY_SOURCE.get((status, event))
    if found is None:
        raise Conflict(_why_not(request, status, event))
    if by.partition(":")[0] not in found.who:
        who = " or ".join(each.value.replace("_", " ") for each in found.who)
        raise Refused(f"A request can be {event} only by: {who}.")
    return found


def transition_many(event: RequestEvent) -> Update:
    """The statement that makes the transition for all requests where it may happen; others stay as they are.

    The caller adds which requests, and what else is written with the status.
    """
    found = [each for each in TRANSITIONS if each.event is event and Who.SYSTEM in each.who]
    (target,) = {each.target for each in found}
    forgotten = {_columns["metadata_values"]: null()} if target in CLOSED else {}
    return (
        update(_requests)
        .where(or_(*(_requests.c.status == each.source for each in found)))
        .values({_requests.c.status: target, **forgotten})
    )


def _why_not(request: Request, status: Status | None, event: RequestEvent) -> str:
    if status is None:
        return f"A new request can't be {event}."
    sources = [each.source for each in TRANSITIONS if each.event is event and each.source is not None]
    if not sources:
        return f"Request {request.ref} exists already, so it can't be {event}."
    needed = " or ".join(f"'{each}'" for each in sources)
    return f"Request {request.ref} has the status '{status}'; it can be {event} only in the status {needed}."
