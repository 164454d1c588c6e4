"""Plans of requests, as they are answered."""

from __future__ import annotations

from effaced.api.operations.call import Call
from effaced.api.requests import models
from effaced.core.errors import Conflict
from effaced.model import UNEXECUTED, RequestKind, RequestStatus
from effaced.requests.duplicates import may_reveal, visible_status
from effaced.requests.intake import CheckedRequest, IntakeRequest, check_request
from effaced.requests.plan import RequestPlan, plan_erasure, plan_rectification, plan_request
from effaced.requests.tables import Request
from effaced.requests.trail import original_of


def planned(call: Call, request: Request) -> models.Plan:
    """What executing the request would do now. Conflict if it was executed, closed, or is a duplicate."""
    original = original_of(call.session, request)
    reveal = call.caller.sees_all or (original is not None and may_reveal(request, original))
    status = request.status if reveal else visible_status(request, original)
    if status not in UNEXECUTED:
        raise Conflict(f"The request is {status}: there is nothing left to plan.")
    if status is RequestStatus.RECEIVED:
        raise Conflict(
            "The request is a duplicate: it ends with the earlier one, and is not executed itself."
        )
    runtime = call.runtime
    plan = runtime.plan_on(call.session)
    found = plan_request(call.session, call.keyring, plan, runtime.registry, request)
    return show_plan(request.kind, found)


def check_and_plan(call: Call, asked: IntakeRequest) -> tuple[CheckedRequest, models.Plan]:
    """What a request would do that was not sent. Refuses what intake refuses."""
    plan, registry = call.runtime.plan_on(call.session).for_people(asked.subject_type), call.runtime.registry
    checked = check_request(call.session, call.keyring, plan, asked)
    subject_id = checked.subject.subject_id
    if asked.kind is RequestKind.ERASURE:
        found = plan_erasure(call.session, plan, registry, subject_id, known_by=checked.subject.refs)
    else:
        found = plan_rectification(call.session, plan, registry, subject_id, checked.corrections)
    return checked, show_plan(asked.kind, found)


def show_plan(kind: RequestKind, plan: RequestPlan) -> models.Plan:
    return models.Plan(
        kind=kind,
        datamap_hash=plan.datamap_hash,
        rows=plan.rows,
        tables=[
            models.PlannedTable(
                table=line.effect.table,
                action=line.effect.action,
                rows=line.effect.rows,
                rows_kept=line.rows_kept or 0,
                kept=[
                    models.KeptColumns(columns=list(each.columns), basis=each.basis, until=each.until)
                    for each in line.kept
                ],
                scrubbed=dict(line.effect.scrubbed),
            )
            for line in plan.lines
        ],
        corrections=[
            models.PlannedCorrection(table=each.table, columns=list(each.columns), rows=each.rows)
            for each in plan.corrections
        ],
        calls=[
            *(
                models.PlannedCall(resolver=name, called=True, note="unable" if name in plan.unable else None)
                for name in plan.calls
            ),
            *(
                models.PlannedCall(resolver=name, called=False, note="not_concerned")
                for name in plan.not_concerned
            ),
            *(
                models.PlannedCall(resolver=name, called=False, note="no_reference")
                for name in plan.unknown_to
            ),
        ],
    )
