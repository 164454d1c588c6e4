"""The runner: drives every resolver that has something due, side by side and isolated from each other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy.orm import Session

from effaced.audit.sink import AuditSink, with_sink
from effaced.breakers.registry import BreakerRegistry
from effaced.core import retry_defaults as defaults
from effaced.core.arguments import checked, require_positive
from effaced.core.log import get_logger
from effaced.outbox.countdown import Completed
from effaced.outbox.due import due_resolvers
from effaced.outbox.waits import restart_waits
from effaced.resolvers.registry import ResolverRegistry
from effaced.retries.policy import BackoffPolicy, RetryPolicy
from effaced.saga.claims import Claims
from effaced.saga.facade import Outbox
from effaced.saga.gate import Gate
from effaced.saga.parts import Parts, StopSignal
from effaced.saga.rules import RuleBook
from effaced.saga.run import ResolverRun
from effaced.saga.settle import OnComplete
from effaced.saga.tasks import isolated, start
from effaced.saga.tell import AbandonedHook
from effaced.saga.writer import Ledger

_log = get_logger(__name__)
# How often to look for resolvers that have become due beside those that are being driven.
_LOOK_AGAIN = 0.5


def _nothing(_session: Session, _completed: Sequence[Completed]) -> None:
    pass


@checked
class SagaRunner:
    """Carries entries to an end. Any number of runners may work at once, and one as often as you like.

    `policy` stands for `max_attempts`, `max_age` and the waits of `backoff`, whose lease it leaves.
    """

    def __init__(
        self,
        registry: ResolverRegistry,
        outbox: Outbox,
        audit: AuditSink | None = None,
        *,
        max_attempts: int = defaults.MAX_ATTEMPTS,
        crash_limit: int = defaults.CRASH_LIMIT,
        batch_size: int = defaults.BATCH_SIZE,
        max_age: timedelta = timedelta(days=defaults.MAX_AGE_DAYS),
        backoff: BackoffPolicy | None = None,
        policy: RetryPolicy | None = None,
        breakers: BreakerRegistry | None = None,
        on_abandoned: AbandonedHook | None = None,
        on_operations_complete: OnComplete = _nothing,
    ) -> None:
        require_positive("SagaRunner", crash_limit=crash_limit, batch_size=batch_size, max_age=max_age)
        registry.require_order()
        backoff = backoff or BackoffPolicy()
        registry.require_time(backoff.lease)
        policy = policy or backoff.policy(max_attempts=max_attempts, max_age=max_age)
        book, self._gate = RuleBook(policy, registry), Gate(breakers, registry)
        self._sessions = with_sink(outbox.sessions, audit) if audit else outbox.sessions
        self._claims = Claims(self._sessions, registry, self._gate, book, backoff.lease)
        ledger = Ledger(
            self._sessions,
            self._claims,
            self._gate,
            book,
            on_operations_complete,
        )
        self._parts = Parts(registry, outbox.keyring, ledger, crash_limit, batch_size, on_abandoned)
        self._stop = StopSignal()

    def stop(self) -> None:
        """Claim nothing more, now or later; what is under way is finished."""
        self._stop.set()

    async def run_once(self) -> int:
        """Work through everything that is due; returns what was settled.

        Resolvers are driven side by side. One in trouble ends its own run; its error is raised when the
        others have worked through theirs. Cancelled, nothing more is claimed, and what has returned is
        settled.
        """
        settled, error = await isolated(self._run_all())
        if error is not None:
            raise error
        return settled

    async def _run_all(self) -> tuple[int, BaseException | None]:
        stop, settled, errors = StopSignal(self._stop), 0, dict[str, BaseException]()
        driving = dict[str, tuple[ResolverRun, asyncio.Task[None]]]()
        try:
            while True:
                due = set[str]() if stop else await asyncio.to_thread(self._due)
                for name in sorted(due - driving.keys() - errors.keys()):
                    run = ResolverRun(self._parts, name, stop)
                    driving[name] = run, start(run.run())
                if driving:
                    await asyncio.wait([task for _, task in driving.values()], timeout=_LOOK_AGAIN)
                for name, (run, task) in list(driving.items()):
                    if task.done():
                        del driving[name]
                        settled += run.settled
                        if run.error is not None:
                            _log.error("run_failed", resolver=name, error=type(run.error).__name__)
                            errors[name] = run.error
                if any(not isinstance(error, Exception) for error in errors.values()):
                    stop.set()  # meant for the whole process: what is under way is settled first
                if not driving:
                    break
        except asyncio.CancelledError:
            for _, task in driving.values():
                task.cancel()
            raise
        finally:
            stop.set()
            await asyncio.gather(*(task for _, task in driving.values()), return_exceptions=True)
        error = min(errors.values(), key=lambda each: isinstance(each, Exception)) if errors else None
        return settled, error

    def _due(self) -> set[str]:
        with self._sessions.begin() as session:
            restart_waits(session)
            due = due_resolvers(session)
        return self._gate.open_for(due)

    async def drain(self, resolver: str, *, seconds: float | None = None) -> int:
        """Work on one resolver until nothing of it is due, or until `seconds` have passed."""
        run = ResolverRun(self._parts, resolver, self._stop, seconds=seconds)
        await isolated(run.run())
        if run.error is not None:
            raise run.error
        return run.settled
