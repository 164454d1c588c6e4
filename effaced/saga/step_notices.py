"""What integrators are notified of about one external call."""

from __future__ import annotations

from typing import Any

from effaced.model import OutboxStatus, evidence_of
from effaced.notify import notices
from effaced.notify.notices import StepNotice
from effaced.saga.result import Decision


def step_notice(decision: Decision) -> StepNotice | None:
    """The notice of a decision. None if the attempt was returned: then nothing was learnt of the step."""
    entry, new = decision.entry, decision.update
    about: dict[str, Any] = {
        "request_id": entry.request_id,
        "entry_id": entry.entry_id,
        "resolver": entry.resolver,
        "operation": entry.operation,
        "attempts": new.attempts,
    }
    match new.status:
        case OutboxStatus.SUCCEEDED if new.outcome is not None:
            evidence = evidence_of(new.outcome, new.verification)
            return notices.StepSucceeded(**about, outcome=new.outcome, evidence=evidence)
        case OutboxStatus.SCHEDULED if new.gate is not None:
            return notices.StepScheduled(**about, until=new.gate)
        case OutboxStatus.FAILED if new.gate is not None:
            return notices.StepFailed(**about, error=new.last_error, next_attempt_at=new.gate)
        case OutboxStatus.ABANDONED:
            return notices.StepAbandoned(**about, error=new.last_error, code=decision.code or None)
        case _:
            return None
