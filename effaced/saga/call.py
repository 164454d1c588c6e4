"""Making one external call: within its time, with its key, and read back where that is possible."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar, cast
from uuid import UUID

from effaced import clock
from effaced.crypto import Keyring
from effaced.errors import ResolverError
from effaced.log import get_logger
from effaced.model import OutboxOperation, SubjectRef, Verification
from effaced.outbox.entry import Entry
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    Answer,
    CredentialsRefused,
    Erased,
    Limits,
    Rectified,
    RectifyingResolver,
    Resolver,
    ResumingResolver,
    RetentionOnlyResolver,
    VerifyingResolver,
)
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.saga.decide import NOT_IDEMPOTENT
from effaced.saga.result import Result

T = TypeVar("T")
_log = get_logger(__name__)


class CrashLoop(ResolverError):
    """Running this entry alone has ended the runner too often."""


class MaybeMade(ResolverError):
    """A runner died with this call: it may have been made, and must not be made twice."""


def not_again(entry: Entry) -> Result:
    """What becomes of a call that must not be repeated although nobody knows how it ended."""
    return Result(entry, error=MaybeMade("The call may have been made.", code=NOT_IDEMPOTENT))


async def call(registry: ResolverRegistry, keyring: Keyring, entry: Entry, *, crash_limit: int) -> Result:
    """Call the entry's resolver. Never raises what the call raised: it is part of the result."""
    started = clock.monotonic()
    try:
        if entry.crashes >= crash_limit:
            raise CrashLoop("The entry ends every runner that takes it.", code="crash_loop")
        registered = registry.get(entry.resolver)
        ref = entry.open_ref(keyring)
        answer: Answer | Rectified
        if entry.operation is OutboxOperation.RECTIFY:
            answer = await _within(registered.limits, _rectify(registered, keyring, entry, ref))
        else:
            answer = await _within(registered.limits, _erase(registered, entry, ref))
        checked = entry.operation is OutboxOperation.ERASE and _should_verify(registered, answer)
        looked = await _read_back(registered, ref, entry.entry_id) if checked else None
    except (Exception, asyncio.CancelledError) as error:
        _let_stop(error)
        return Result(
            entry,
            error=error,
            timed_out=isinstance(error, TimeoutError),
            status_code=_status(error),
            latency_ms=_since(started),
        )
    return Result(
        entry,
        answer=answer,
        status_code=_status(answer),
        latency_ms=_since(started),
        verification=looked.seen if looked else None,
        refused=looked is not None and looked.refused,
    )


@dataclass(frozen=True, slots=True)
class LookedBack:
    """What a read-back saw. `error` is what kept it from being made; `refused` if our credentials did."""

    seen: Verification = Verification.DUE
    error: BaseException | None = None

    @property
    def refused(self) -> bool:
        return isinstance(self.error, CredentialsRefused)


async def read_back(registry: ResolverRegistry, keyring: Keyring, entry: Entry) -> LookedBack:
    """Erase once more and look whether the person is gone; `due` when that can't be told now.

    Only looking would never mend what a vendor forgot; where erasing twice does harm, it has to do.
    """
    try:
        registered, ref = registry.get(entry.resolver), entry.open_ref(keyring)
        if not registered.verifies:
            return LookedBack()
        if registered.limits.idempotent:
            answer = await _within(registered.limits, _erase(registered, entry, ref))
            if not _should_verify(registered, answer):
                return LookedBack()
        return LookedBack(await _look(registered, ref, entry.entry_id))
    except (Exception, asyncio.CancelledError) as error:
        _let_stop(error)
        _log.warning("read_back_failed", entry_id=str(entry.entry_id), error=type(error).__name__)
        return LookedBack(error=error)


async def _rectify(
    registered: Registered, keyring: Keyring, entry: Entry, ref: SubjectRef
) -> Answer | Rectified:
    if not registered.rectifies:
        raise ResolverError(f"Resolver '{registered.name}' can't rectify.", code="cannot_rectify")
    resolver = cast(RectifyingResolver, registered.resolver)
    corrections = entry.open_corrections(keyring)
    return await resolver.rectify_subject(ref, corrections, key=entry.entry_id)


async def _erase(registered: Registered, entry: Entry, ref: SubjectRef) -> Answer:
    resolver = registered.resolver
    if registered.retention_only:
        return await cast(RetentionOnlyResolver, resolver).schedule_erasure(ref, key=entry.entry_id)
    if registered.resumes and entry.times_parked:
        return await cast(ResumingResolver, resolver).resume_erasure(ref, key=entry.entry_id)
    return await cast(Resolver, resolver).erase_subject(ref, key=entry.entry_id)


def _should_verify(registered: Registered, answer: Answer | Rectified) -> bool:
    return registered.verifies and isinstance(answer, Erased | AlreadyAbsent)


async def _read_back(registered: Registered, ref: SubjectRef, key: UUID) -> LookedBack:
    """The look right after an erasure. What keeps it from being made takes nothing from the success."""
    try:
        return LookedBack(await _look(registered, ref, key))
    except (Exception, asyncio.CancelledError) as error:
        _let_stop(error)
        _log.info("read_back_not_possible", resolver=registered.name, error=type(error).__name__)
        return LookedBack(error=error)


async def _look(registered: Registered, ref: SubjectRef, key: UUID) -> Verification:
    resolver = cast(VerifyingResolver, registered.resolver)
    absent = await _within(registered.limits, resolver.verify_absent(ref, key=key))
    return Verification.CONFIRMED if absent else Verification.STILL_PRESENT


def _let_stop(error: BaseException) -> None:
    """Raise on if we are being stopped; a task inside the resolver being stopped is only a failed call."""
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error


def _status(said: object) -> int | None:
    """An HTTP status, if that is what it is: third parties may have put anything there."""
    status = getattr(said, "status_code", None)
    return status if type(status) is int and 100 <= status <= 599 else None


async def _within(limits: Limits, awaitable: Awaitable[T]) -> T:
    async with asyncio.timeout(limits.timeout.total_seconds()):
        return await awaitable


def _since(started: float) -> int:
    return int((clock.monotonic() - started) * 1000)
