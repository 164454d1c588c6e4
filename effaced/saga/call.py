"""Making one external call: within its timeout, with its idempotency key, and read back where possible.

Nothing that a resolver returns or raises leaves this module: see `answers`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast
from uuid import UUID

from effaced.breakers.admitted import Admission
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.errors import ResolverError
from effaced.core.log import get_logger
from effaced.model import FailureKind, OutboxOperation, SubjectRef, Verification
from effaced.outbox.entry import Entry
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    Answer,
    Erased,
    Limits,
    Rectified,
    RectifyingResolver,
    Resolver,
    ResumingResolver,
    RetentionOnlyResolver,
    VerifyingResolver,
)
from effaced.resolvers.registry import Registered
from effaced.saga.answers import (
    CallFailure,
    cancelled_call,
    is_from_cache,
    read_answer,
    read_error,
    read_presence,
)
from effaced.saga.result import ReadBack, Result
from effaced.saga.tasks import enter_resolver_code

_log = get_logger(__name__)
# Raised again when everything has been settled: they are meant for the whole process.
Fatal = KeyboardInterrupt | SystemExit


class Caller:
    """Calls one resolver.

    `cancelling` says that calls are being cancelled by us, not by the resolver. `fatal` is what
    a call raised that is meant for the whole process, if one did.
    """

    def __init__(self, registered: Registered, keyring: Keyring) -> None:
        self._registered = registered
        self._keyring = keyring
        self._seconds = registered.limits.timeout.total_seconds()
        self._looking: dict[UUID, Result] = {}  # calls that have succeeded and are being read back
        self.cancelling = False
        self.fatal: Fatal | None = None

    async def call(
        self,
        entry: Entry,
        admission: Admission | None = None,
        may_read_back: Callable[[], bool] = lambda: True,
    ) -> Result:
        """Make the call, and read back where the resolver can and `may_read_back` agrees. Never raises."""
        enter_resolver_code()
        started, answer, task = clock.monotonic(), None, asyncio.current_task()
        try:
            ref = entry.open_ref(self._keyring)
            async with self._in_time():
                answer = await self._make(entry, ref)
            said = self._read(answer, entry.operation)
        except BaseException as error:
            said = self.failure(error)
        if task is not None and task.cancelling():
            await self._outlast_cancellation(task)
        latency = _milliseconds_since(started)
        if isinstance(said, CallFailure):
            return Result(entry, failure=said, latency_ms=latency, admission=admission)
        result = Result(entry, said, latency_ms=latency, cached=is_from_cache(answer), admission=admission)
        if not self._should_verify(said):
            return result
        if not may_read_back():
            return result._replace(read_back=ReadBack(clock.now()))
        self._looking[entry.entry_id] = result
        read_back = await self._read_back(ref, entry)
        self._looking.pop(entry.entry_id, None)
        return result._replace(read_back=read_back)

    def left_behind(self, entry: Entry, failure: CallFailure, admission: Admission | None) -> Result:
        """The result of a call that does not end. Where only its read-back does not, the success stands."""
        result = self._looking.pop(entry.entry_id, None)
        if result is None:
            return Result(entry, failure=failure, admission=admission)
        return result._replace(read_back=ReadBack(clock.now(), failure=failure))

    async def erase_and_read_back(self, entry: Entry) -> ReadBack:
        """Erase once more and read back; `due` when the result can't be known now.

        A read-back alone would never mend what a vendor forgot. Where erasing twice does harm, it has to do.
        """
        enter_resolver_code()
        started, at = clock.monotonic(), clock.now()
        try:
            ref = entry.open_ref(self._keyring)
            if not self._registered.verifies:
                return ReadBack(at, failure=CallFailure(FailureKind.PERMANENT, "NoReadBack", "no_read_back"))
            if self._registered.limits.idempotent:
                async with self._in_time():
                    answer = await self._erase(entry, ref)
                said = self._read(answer, OutboxOperation.ERASE)
                if isinstance(said, CallFailure):
                    return ReadBack(at, failure=said, latency_ms=_milliseconds_since(started))
                if not self._should_verify(said):  # gone later, or kept: it can't be known now
                    return ReadBack(at, latency_ms=_milliseconds_since(started))
        except BaseException as error:
            return ReadBack(at, failure=self.failure(error), latency_ms=_milliseconds_since(started))
        return await self._read_back(ref, entry)

    def _make(self, entry: Entry, ref: SubjectRef) -> Awaitable[object]:
        if entry.operation is OutboxOperation.ERASE:
            return self._erase(entry, ref)
        if not self._registered.rectifies:
            raise ResolverError(f"Resolver '{self._registered.name}' can't rectify.", code="cannot_rectify")
        resolver = cast(RectifyingResolver, self._registered.resolver)
        return resolver.rectify_subject(ref, entry.open_corrections(self._keyring), key=entry.entry_id)

    def _read(self, answer: object, operation: OutboxOperation) -> Answer | Rectified | CallFailure:
        return read_answer(answer, operation, retention_only=self._registered.retention_only)

    def _erase(self, entry: Entry, ref: SubjectRef) -> Awaitable[object]:
        resolver = self._registered.resolver
        if self._registered.retention_only:
            return cast(RetentionOnlyResolver, resolver).schedule_erasure(ref, key=entry.entry_id)
        if self._registered.resumes and entry.times_parked:
            return cast(ResumingResolver, resolver).resume_erasure(ref, key=entry.entry_id)
        return cast(Resolver, resolver).erase_subject(ref, key=entry.entry_id)

    async def _read_back(self, ref: SubjectRef, entry: Entry) -> ReadBack:
        """Ask whether the person is gone. A read-back that fails does not change the success before it."""
        started, at, task = clock.monotonic(), clock.now(), asyncio.current_task()
        resolver = cast(VerifyingResolver, self._registered.resolver)
        try:
            async with self._in_time():
                absent = await resolver.verify_absent(ref, key=entry.entry_id)
            seen = read_presence(absent)
        except BaseException as error:
            seen = self.failure(error)
        if task is not None and task.cancelling():
            await self._outlast_cancellation(task)
        if isinstance(seen, Verification):
            return ReadBack(at, seen, latency_ms=_milliseconds_since(started))
        _log.warning(
            "read_back_failed", resolver=entry.resolver, entry_id=str(entry.entry_id), error=seen.error
        )
        return ReadBack(at, failure=seen, latency_ms=_milliseconds_since(started))

    async def _outlast_cancellation(self, task: asyncio.Task[object]) -> None:
        """Keep a result although the resolver's code has cancelled its own task; ours ends the task."""
        try:
            if asyncio.current_task() is not task:
                return  # a task that was left behind is being destroyed
        except RuntimeError:  # and its loop is gone already
            return
        while not self.cancelling and task.cancelling():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
            task.uncancel()

    def _should_verify(self, said: Answer | Rectified) -> bool:
        return self._registered.verifies and isinstance(said, Erased | AlreadyAbsent)

    def failure(self, error: BaseException) -> CallFailure:
        if issubclass(type(error), KeyboardInterrupt | SystemExit):
            self.fatal = self.fatal or cast(Fatal, error)
        if self.cancelling and issubclass(type(error), asyncio.CancelledError):
            return cancelled_call()
        return read_error(error)

    def _in_time(self) -> asyncio.Timeout:
        return asyncio.timeout(self._seconds)


def longest_call(limits: Limits) -> float:
    """How many seconds a call and its read-back take at most, if the resolver honours its timeout."""
    return 2 * limits.timeout.total_seconds()


def _milliseconds_since(started: float) -> int:
    return int((clock.monotonic() - started) * 1000)
