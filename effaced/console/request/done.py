"""What executing a request has done to your database, as the trail has it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from effaced.audit.events import LocalErasureExecuted
from effaced.audit.read import AuditFilter, list_events
from effaced.datamap.model.data_map import Action, Retained
from effaced.datamap.run.erase import TableEffect
from effaced.requests.plan import PlanLine


def done_to(session: Session, request_id: UUID) -> tuple[PlanLine, ...]:
    """Table by table, as the plan before it; nothing for a correction."""
    which = AuditFilter(request_id=request_id, type=LocalErasureExecuted.type)
    found = list_events(session, which, limit=1).items
    return tuple(_line(each, found[0].payload) for each in found[0].payload["tables"]) if found else ()


def _line(table: dict[str, Any], done: dict[str, Any]) -> PlanLine:
    name, action = table["table"], Action(table["action"])
    own = action is not Action.DETACHED
    kept = [each for each in done["retained"] if own and each["table"] == name]
    found = [each for each in done.get("scrubbed", ()) if own and each["table"] == name]
    effect = TableEffect(
        name,
        table["rows"],
        action,
        tuple(Retained(each["column"], each["basis"], each.get("until")) for each in kept),
        {each["column"]: each["rows"] for each in found},
    )
    counted = kept[0].get("rows") if kept else 0
    return PlanLine(effect, table["rows"] if action is Action.RETAINED else counted)
