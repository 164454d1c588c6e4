"""Sending subject requests, and following them: their state, external calls, attempts and events."""

from __future__ import annotations

from uuid import UUID

from effaced.accounts.metadata import require_declared
from effaced.accounts.scopes import Scope
from effaced.api.models import PageQuery
from effaced.api.operations.call import Call, Reply
from effaced.api.operations.caller import require_operator_for
from effaced.api.operations.declare import Routes
from effaced.api.requests import models, sandbox
from effaced.api.requests.find import find_request
from effaced.api.requests.models import ExpandQuery, NewRequest, RequestQuery
from effaced.api.requests.show import (
    path_of,
    show_attempt,
    show_entry,
    show_event,
    show_request,
    show_requests,
)
from effaced.api.subject_key import read_subject_key
from effaced.audit.read import AuditFilter, list_events
from effaced.core import clock
from effaced.core.log import get_logger
from effaced.model import Correction, RequestKind, RequestStatus
from effaced.outbox.read import entries_of
from effaced.requests.intake import IntakeRequest, receive
from effaced.requests.read import RequestFilter, find_page, list_attempts
from effaced.requests.trail import visible_trail
from effaced.runtime import Runtime

routes = Routes("Requests", "/api/v1/requests", about="What people ask for: to be erased, or corrected.")
_READ = (Scope.REQUESTS_READ, Scope.DECIDE_READ)
_log = get_logger(__name__)


@routes.post(
    scope=Scope.REQUESTS_WRITE,
    status=201,
    also={200: "Taken in as a duplicate of an open erasure that this key has sent for the same person."},
    sandbox=True,
)
def create_request(call: Call, body: NewRequest) -> Reply[models.Request]:
    """Send a request.

    The answer shows it as it was taken in: one that needs no approval says `approved`, and is executed before
    the answer leaves, or seconds later.
    """
    require_operator_for(call.caller, body.retry or {}, under="retry")
    require_declared(call.caller.key, body.metadata or {})
    asked = IntakeRequest(
        RequestKind(body.kind),
        body.subject.id,
        subject_type=body.subject.type,
        api_key=call.caller.key,
        corrections=[Correction(name, value) for name, value in (body.corrections or {}).items()],
        reason=body.reason,
        retry=body.retry or {},
        metadata=body.metadata or {},
    )
    runtime = call.runtime
    plan = runtime.plan_on(call.session)
    if call.caller.sandbox:
        return sandbox.try_out(call, plan, asked)
    intake = receive(call.session, runtime.keyring, plan, asked, zone=runtime.settings.zone)
    request = intake.request
    if request.status is RequestStatus.APPROVED:
        call.after_commit(lambda: _execute(runtime, request.id))
    # To another key's caller a duplicate looks like any other request.
    duplicate = intake.visible_original is not None
    answer = show_request(call.session, request)
    if body.retry:
        applied = models.RetryApplied(applied=not duplicate, reason="duplicate" if duplicate else None)
        answer = answer.model_copy(update={"retry": applied})
    return Reply(answer, 200 if duplicate else 201, {"Location": path_of(request.id)})


@routes.get(scope=_READ, sandbox=True)
def list_requests(call: Call, query: RequestQuery) -> models.RequestPage:
    """Requests by due date: those that this key has sent.

    A key with `decide:read` lists everybody's.
    """
    if call.caller.sandbox:
        return sandbox.tried_out(call, query)
    which = RequestFilter(
        open=query.open,
        status=query.status,
        due=query.due,
        kind=query.kind,
        subject=read_subject_key(query.subject_key),
        received_from=query.received_from,
        received_before=query.received_before,
        api_key_id=None if call.caller.sees_all else call.caller.key.id,
    )
    page = find_page(
        call.session,
        which,
        clock.now().astimezone(call.runtime.zone),
        latest_first=query.order == "-due_at",
        after=query.after,
        limit=query.limit,
    )
    shown = show_requests(call.session, page.items, query.expand, reveal=call.caller.sees_all)
    return models.RequestPage(data=shown, next=page.next)


@routes.get("/<request_id>", scope=_READ, sandbox=True)
def get_request(call: Call, request_id: str, query: ExpandQuery) -> models.Request:
    """One request, by its `id` or its `ref`."""
    if call.caller.sandbox:
        return sandbox.find_tried_out(call, request_id)
    found = find_request(call, request_id)
    return show_request(call.session, found, query.expand, reveal=call.caller.sees_all)


@routes.get("/<request_id>/entries", scope=_READ)
def list_entries(call: Call, request_id: str) -> models.EntryList:
    """The external calls of a request, by resolver."""
    found = find_request(call, request_id)
    return models.EntryList(data=[show_entry(each) for each in entries_of(call.session, found.id)])


@routes.get("/<request_id>/events", scope=_READ)
def list_request_events(call: Call, request_id: str, query: PageQuery) -> models.EventPage:
    """The audit trail of a request, newest first.

    A key sees nothing there of what other keys have asked.
    """
    found = find_request(call, request_id)
    all_of_it = AuditFilter(request_id=found.id)
    which = all_of_it if call.caller.sees_all else visible_trail(call.session, found)
    page = list_events(call.session, which, after=query.after, limit=query.limit)
    shown = [show_event(each, which.unnamed) for each in page.items]
    return models.EventPage(data=shown, next=page.next)


@routes.get("/<request_id>/attempts", scope=_READ)
def list_request_attempts(call: Call, request_id: str, query: PageQuery) -> models.AttemptPage:
    """Every attempt at the external calls of a request, in the order of their results."""
    found = find_request(call, request_id)
    page = list_attempts(call.session, found.id, after=query.after, limit=query.limit)
    return models.AttemptPage(data=[show_attempt(each) for each in page.items], next=page.next)


def _execute(runtime: Runtime, request_id: UUID) -> None:
    """Carry it out right away. If that fails the request is safe, and the scheduler's sweep finds it."""
    try:
        runtime.executor.execute_now(request_id)
    except Exception as error:
        _log.error("execution_left_to_the_sweep", exc_info=error)
