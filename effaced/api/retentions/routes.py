"""Retentions over HTTP: what erasures had to keep, and erasing it when that ends."""

from __future__ import annotations

from datetime import date
from uuid import UUID

from effaced.accounts.scopes import Scope
from effaced.api.operations.call import Call, Reply
from effaced.api.operations.declare import Routes
from effaced.api.path_id import read_path_id
from effaced.api.retentions import models
from effaced.api.retentions.models import NewEnding, RetentionQuery
from effaced.datamap.plan.retention import RetentionPlan
from effaced.retention import read
from effaced.retention.begin import begin_ending
from effaced.retention.read import RetentionFilter, RetentionLine

routes = Routes("Retentions", "/api/v1/retentions", about="What erasures had to keep, and until when.")


@routes.get(scope=Scope.OPERATE_READ)
def list_retentions(call: Call, query: RetentionQuery) -> models.RetentionPage:
    """What erasures have kept: one for each request and table."""
    plan = call.runtime.retention_on(call.session)
    page = read.list_retentions(
        call.session,
        plan,
        RetentionFilter(query.request_id, query.table, query.due_before, query.state),
        by_due_date=query.order == "first_due",
        after=query.after,
        limit=query.limit,
    )
    return models.RetentionPage(data=[_show(each, plan.today) for each in page.items], next=page.next)


@routes.get("/<retention_id>", scope=Scope.OPERATE_READ)
def get_retention(call: Call, retention_id: str) -> models.Retention:
    """One retention, with what ending it now would do."""
    plan = call.runtime.retention_on(call.session)
    found_id = read_path_id(retention_id, "There is no such retention.")
    return _show(read.get_retention(call.session, call.keyring, plan, found_id), plan.today)


@routes.post("/endings", scope=Scope.OPERATE_WRITE, status=202)
def create_ending(call: Call, body: NewEnding) -> Reply[models.Ending]:
    """Erase what need not be kept any more of a request.

    The scheduler does it, in short transactions. 409 with `nothing_due`, `already_running`, `in_use`,
    `waiting`, `not_retained` or `unreadable` where nothing could be erased.
    """
    plan = call.runtime.retention_on(call.session)
    begin_ending(call.session, call.keyring, plan, body.request_id, actor=call.actor, reason=body.reason)
    location = f"{routes.prefix}/endings/{body.request_id}"
    return Reply(_ending(call, plan, body.request_id), 202, {"Location": location})


@routes.get("/endings/<request_id>", scope=Scope.OPERATE_READ)
def get_ending(call: Call, request_id: str) -> models.Ending:
    """How far the end of a request's retentions is."""
    plan = call.runtime.retention_on(call.session)
    return _ending(call, plan, read_path_id(request_id, "There is no such request."))


def _ending(call: Call, plan: RetentionPlan, request_id: UUID) -> models.Ending:
    found = read.get_ending(call.session, plan, request_id)
    return models.Ending(
        request_id=found.request_id,
        status=found.status,
        created_by=found.by,
        progress=_progress(found.erasing),
        error=found.error,
        retentions=[_show(each, plan.today) for each in found.lines],
    )


def _show(line: RetentionLine, today: date) -> models.Retention:
    return models.Retention(
        id=line.id,
        request_id=line.request_id,
        table=line.table,
        state=line.phase(today),
        reasons=[models.RetentionReason(basis=basis, until=until) for basis, until in line.reasons],
        rows=line.rows,
        undated_rows=line.undated,
        first_due=line.first_due,
        error=line.error,
        ending=_progress(line.erasing),
        assessment=_assessment(line),
        created_at=line.created_at,
        checked_at=line.looked_at,
        ended_at=line.closed_at,
    )


def _assessment(line: RetentionLine) -> models.RetentionAssessment | None:
    if line.standing is None or line.ended is None:
        return None
    return models.RetentionAssessment(
        state=line.standing,
        deleted=line.ended.deleted,
        anonymised=line.ended.changed,
        waiting=line.ended.waiting,
    )


def _progress(erasing: tuple[int, int] | None) -> models.EndingProgress | None:
    if erasing is None:
        return None
    rows, total = erasing
    return models.EndingProgress(rows=rows, total=total or None)
