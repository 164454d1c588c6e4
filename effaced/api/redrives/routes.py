"""Redrives over HTTP: retrying a whole set, to be polled and cancelled."""

from __future__ import annotations

from uuid import UUID

from effaced.accounts.scopes import Scope
from effaced.api.models import PageQuery
from effaced.api.operations.call import Call, Reply
from effaced.api.operations.declare import Routes
from effaced.api.path_id import read_path_id
from effaced.api.redrives import models
from effaced.api.redrives.models import NewRedrive
from effaced.triage.redrive import cancel_redrive as cancel
from effaced.triage.redrive import start_redrive
from effaced.triage.redrive_read import (
    RedriveView,
    plain_redrive,
    plain_result,
    redrive_results,
    redrive_view,
)
from effaced.triage.redrive_read import list_redrives as find_page

routes = Routes("Redrives", "/api/v1/redrives", about="Retrying a whole set of dead letters.")


@routes.post(scope=Scope.OPERATE_WRITE, status=202)
def create_redrive(call: Call, body: NewRedrive) -> Reply[models.Redrive]:
    """Retry all open dead letters of a filter, at a limited rate.

    They are chosen now; the scheduler carries it out. One that fits none is refused
    with `nothing_matches`.
    """
    redrive_id = start_redrive(
        call.session,
        call.keyring,
        body.filter.chosen(call.runtime.dead_letter_sla),
        actor=call.actor,
        reason=body.reason,
        force=body.force,
        per_second=body.per_second,
    )
    return Reply(_redrive(call, redrive_id), 202, {"Location": f"/api/v1/redrives/{redrive_id}"})


@routes.get(scope=Scope.OPERATE_READ)
def list_redrives(call: Call, query: PageQuery) -> models.RedrivePage:
    """Redrives, newest first. They are kept for 30 days after their end."""
    page = find_page(call.session, after=query.after, limit=query.limit)
    shown = [_show(each).model_copy(update={"skipped": None}) for each in page.items]
    return models.RedrivePage(data=shown, next=page.next)


@routes.get("/<redrive_id>", scope=Scope.OPERATE_READ)
def get_redrive(call: Call, redrive_id: str) -> models.Redrive:
    """One redrive, and how far it is."""
    return _redrive(call, _id(redrive_id))


@routes.get("/<redrive_id>/results", scope=Scope.OPERATE_READ)
def list_redrive_results(call: Call, redrive_id: str, query: PageQuery) -> models.RedriveResultPage:
    """What became of each dead letter so far, in the order in which they are taken."""
    found_id = _id(redrive_id)
    redrive_view(call.session, found_id)
    page = redrive_results(call.session, found_id, after=query.after, limit=query.limit)
    shown = [models.RedriveResult.model_validate(plain_result(each)) for each in page.items]
    return models.RedriveResultPage(data=shown, next=page.next)


@routes.post("/<redrive_id>/cancel", scope=Scope.OPERATE_WRITE)
def cancel_redrive(call: Call, redrive_id: str) -> models.Redrive:
    """End a redrive where it is. What is retried already stays so.

    409 `ended` if it has ended.
    """
    found_id = _id(redrive_id)
    cancel(call.session, found_id, actor=call.actor)
    call.session.flush()
    return _redrive(call, found_id)


def _id(text: str) -> UUID:
    return read_path_id(text, "There is no such redrive.")


def _redrive(call: Call, redrive_id: UUID) -> models.Redrive:
    return _show(redrive_view(call.session, redrive_id))


def _show(redrive: RedriveView) -> models.Redrive:
    return models.Redrive.model_validate(plain_redrive(redrive))
