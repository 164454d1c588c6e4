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
from effaced.saga.abandoned_hook import AbandonedHook
from effaced.saga.claims import Claims
from effaced.saga.facade import Outbox
from effaced.saga.gate import Gate
from effaced.saga.rules import RuleBook
from effaced.saga.run import ResolverRun
from effaced.saga.run_context import RunContext, StopSignal
from effaced.saga.settle import OnComplete
from effaced.saga.tasks import isolated, start, to_thread

_log = get_logger(__name__)
# How often to look for resolvers that have become due beside those that are being driven.
_LOOK_AGAIN = 0.5


def _nothing(_session: Session, _completed: Sequence[Completed]) -> None:
    pass


class _Runs:
    """The runs of several resolvers at the same time, by name. One that failed is not started again."""

    def __init__(self, context: RunContext, stop: StopSignal) -> None:
        self._context = context
        self._stop = stop
        self._errors: dict[str, BaseException] = {}
        self.under_way: dict[str, tuple[ResolverRun, asyncio.Task[None]]] = {}
        self.settled = 0

    @property
    def error(self) -> BaseException | None:
        """The first error; one that is meant for the whole process comes before others."""
        return min(self._errors.values(), key=lambda each: isinstance(each, Exception), default=None)

    def start(self, resolvers: set[str]) -> None:
        for name in sorted(resolvers - self.under_way.keys() - self._errors.keys()):
            run = ResolverRun(self._context, name, self._stop)
            self.under_way[name] = run, start(run.run())

    async def wait(self) -> None:
        """Wait a while for any of them to end."""
        if self.under_way:
            await asyncio.wait([task for _, task in self.under_way.values()], timeout=_LOOK_AGAIN)

    def collect(self) -> None:
        """Remove the runs that have ended, and add up what they settled and how they failed."""
        for name, (run, task) in list(self.under_way.items()):
            if task.done():
                del self.under_way[name]
                self.settled += run.settled
                if run.error is not None:
                    _log.error("run_failed", resolver=name, error=type(run.error).__name__)
                    self._errors[name] = run.error
        if any(not isinstance(error, Exception) for error in self._errors.values()):
            self._stop.set()  # meant for the whole process: what is under way is settled first

    def cancel(self) -> None:
        for _, task in self.under_way.values():
            task.cancel()

    async def finish(self) -> None:
        """Have nothing more claimed, and wait until what is under way has been settled."""
        self._stop.set()
        await asyncio.gather(*(task for _, task in self.under_way.values()), return_exceptions=True)


@checked
class SagaRunner:
    """Drives entries to an end. Any number may work at once, and one can be used any number of times.

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
        book, gate = RuleBook(policy, registry), Gate(breakers, registry)
        sessions = with_sink(outbox.sessions, audit) if audit else outbox.sessions
        self._context = RunContext(
            registry=registry,
            keyring=outbox.keyring,
            sessions=sessions,
            claims=Claims(sessions, registry, gate, book, backoff.lease),
            gate=gate,
            book=book,
            on_complete=on_operations_complete,
            crash_limit=crash_limit,
            batch_size=batch_size,
            hook=on_abandoned,
        )
        self._stop = StopSignal()

    def stop(self) -> None:
        """Claim nothing more, now or later; what is under way is finished."""
        self._stop.set()

    async def run_once(self) -> int:
        """Work through everything that is due; returns how many entries were settled.

        Resolvers are driven side by side. One in trouble ends its own run; its error is raised when the
        others have worked through theirs. When cancelled, it claims nothing more and settles what has
        returned.
        """
        settled, error = await isolated(self._run_all())
        if error is not None:
            raise error
        return settled

    async def _run_all(self) -> tuple[int, BaseException | None]:
        stop = StopSignal(self._stop)
        runs = _Runs(self._context, stop)
        try:
            while True:
                if not stop:
                    runs.start(await to_thread(self._due))
                await runs.wait()
                runs.collect()
                if not runs.under_way:
                    break
        except asyncio.CancelledError:
            runs.cancel()
            raise
        finally:
            await runs.finish()
        return runs.settled, runs.error

    def _due(self) -> set[str]:
        with self._context.sessions.begin() as session:
            restart_waits(session)
            due = due_resolvers(session)
        return self._context.gate.open_for(due)

    async def drain(self, resolver: str, *, seconds: float | None = None) -> int:
        """Work on one resolver until nothing of it is due, or until `seconds` have passed."""
        run = ResolverRun(self._context, resolver, self._stop, seconds=seconds)
        await isolated(run.run())
        if run.error is not None:
            raise run.error
        return run.settled
