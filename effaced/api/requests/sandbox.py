"""What a sandbox key sends: checked and planned as if it were real, and never executed.

It is kept in a table of its own, which nothing that executes ever reads, and without the person.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from effaced.api.operations.call import Call, Reply
from effaced.api.requests import models
from effaced.api.requests.find import id_or_ref
from effaced.api.requests.models import RequestQuery
from effaced.api.requests.plan import check_and_plan
from effaced.api.requests.show import path_of
from effaced.core import clock
from effaced.core.errors import NotFound, Problem, Refused
from effaced.core.paging import after_key, decode, page_of
from effaced.model import RequestStatus, new_id
from effaced.requests.deadline import due_date
from effaced.requests.intake import IntakeRequest, new_ref
from effaced.requests.tables import SandboxRequest


def try_out(call: Call, asked: IntakeRequest) -> Reply[models.Request]:
    """Check and plan the request as if it were real, and keep what would have been answered."""
    checked, plan = check_and_plan(call, asked)
    request_id, now = new_id(), clock.now()
    status = RequestStatus.REVIEW if asked.approvals_needed else RequestStatus.APPROVED
    answer = models.Request(
        id=request_id,
        ref=new_ref(),
        kind=asked.kind,
        status=status,
        state=status,
        received_at=now,
        due_at=due_date(now, call.runtime.settings.zone),
        executed_at=None,
        completed_at=None,
        closed_at=None,
        corrections=sorted(each.column for each in checked.corrections),
        metadata=dict(asked.metadata),
        steps=models.Steps(total=0, done=0),
        unverified=0,
        evidence=None,
        verification=None,
        progress=None,
        duplicate_of=None,
        retry=models.RetryApplied(applied=True, reason=None) if asked.retry else None,
        sandbox=True,
        plan=plan,
        entries=None,
        events=None,
        links=models.Links(self=path_of(request_id)),
    )
    call.session.add(
        SandboxRequest(
            id=request_id,
            ref=answer.ref,
            api_key_id=call.caller.key.id,
            answer=answer.model_dump(mode="json"),
            created_at=now,
        )
    )
    return Reply(answer, 201, {"Location": path_of(request_id)})


def tried_out(call: Call, query: RequestQuery) -> models.RequestPage:
    """What this key has tried out, newest first. Refuses the filters, which are for real requests."""
    said = "can't be used with a sandbox key"
    given = query.model_fields_set - {"after", "limit"}
    filters = [name for name in type(query).model_fields if name in given]
    if filters:
        problems = [Problem(name, said, code="not_for_sandbox_keys") for name in filters]
        raise Refused("The query is invalid.", problems=problems)
    rows = select(SandboxRequest).where(SandboxRequest.api_key_id == call.caller.key.id)
    if query.after:
        rows = rows.where(after_key([SandboxRequest.id], decode(query.after, UUID), descending=True))
    found = list(call.session.scalars(rows.order_by(SandboxRequest.id.desc()).limit(query.limit + 1)))
    page = page_of(found, query.limit, [(each.id,) for each in found])
    return models.RequestPage(
        data=[models.Request.model_validate(each.answer) for each in page.items], next=page.next
    )


def find_tried_out(call: Call, name: str) -> models.Request:
    """What this key has tried out under this id or ref."""
    named = id_or_ref(SandboxRequest, name)
    mine = select(SandboxRequest).where(SandboxRequest.api_key_id == call.caller.key.id)
    found = call.session.scalar(mine.where(named)) if named is not None else None
    if found is None:
        raise NotFound("This sandbox key has sent no request with this id or ref.")
    return models.Request.model_validate(found.answer)


def plan_tried_out(call: Call, name: str) -> models.Plan:
    """The plan that this key was answered with."""
    plan = find_tried_out(call, name).plan
    if plan is None:  # sent before plans were kept
        raise NotFound("This sandbox request has no plan.")
    return plan
