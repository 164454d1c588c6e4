"""Telling an alerting host that an entry was abandoned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from effaced.log import get_logger
from effaced.model import OutboxOperation, SubjectKey
from effaced.saga.decide import Decision

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AbandonedSignal:
    """What an alerting host is told of an abandoned entry: nothing personal."""

    entry_id: UUID
    resolver: str
    operation: OutboxOperation
    subject: SubjectKey
    attempts: int
    error: str

    @property
    def subject_id(self) -> str:
        """The keyed hash that stands for the person."""
        return self.subject.hmac


class AbandonedHook(Protocol):
    """Called after an abandonment has been committed; what it raises is logged and forgotten."""

    def on_abandoned(self, signal: AbandonedSignal) -> None: ...


def tell_abandoned(hook: AbandonedHook | None, decision: Decision) -> None:
    entry = decision.entry
    _log.error("entry_abandoned", entry_id=str(entry.entry_id), resolver=entry.resolver, code=decision.code)
    if hook is None:
        return
    signal = AbandonedSignal(
        entry_id=entry.entry_id,
        resolver=entry.resolver,
        operation=entry.operation,
        subject=entry.subject,
        attempts=entry.attempts,
        error=decision.last_error or "",
    )
    try:
        hook.on_abandoned(signal)
    except Exception as error:
        _log.warning("abandoned_hook_failed", error=type(error).__name__)
