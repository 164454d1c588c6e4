"""Telling the embedding application about abandoned entries: after the commit, and without delaying calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable
from uuid import UUID

from effaced.core.log import get_logger
from effaced.model import OutboxOperation, SubjectKey
from effaced.saga.result import Decision
from effaced.saga.tasks import to_thread

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AbandonedSignal:
    """What the application learns about an abandoned entry: nothing personal."""

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


@runtime_checkable
class AbandonedHook(Protocol):
    """Called after an abandonment has been committed; what it raises is logged and forgotten."""

    def on_abandoned(self, signal: AbandonedSignal) -> None: ...


class HookCaller:
    """Calls the hook in a thread of its own, one signal after the other. A slow hook delays nobody."""

    def __init__(self, hook: AbandonedHook | None) -> None:
        self._hook = hook
        self._thread: ThreadPoolExecutor | None = None

    def report(self, decision: Decision) -> None:
        """Log the abandonment, and have the hook called soon."""
        entry = decision.entry
        _log.error(
            "entry_abandoned", entry_id=str(entry.entry_id), resolver=entry.resolver, code=decision.code
        )
        if self._hook is None:
            return
        signal = AbandonedSignal(
            entry_id=entry.entry_id,
            resolver=entry.resolver,
            operation=entry.operation,
            subject=entry.subject,
            attempts=entry.attempts,
            error=decision.update.last_error or "",
        )
        self._thread = self._thread or ThreadPoolExecutor(1)
        self._thread.submit(self._call, self._hook, signal)

    async def finish(self) -> None:
        """Wait until the hook has been called for everything."""
        if self._thread is not None:
            await to_thread(self._thread.shutdown)

    def _call(self, hook: AbandonedHook, signal: AbandonedSignal) -> None:
        try:
            hook.on_abandoned(signal)
        except Exception as error:
            _log.warning("abandoned_hook_failed", error=type(error).__name__)
