"""What a resolver is: the one thing that knows how to talk to one external system.

Implement these members in a class of your own; nothing needs to be subclassed. A resolver never sees
a database session: it gets a reference and a key, makes its call, and answers or raises.

- `key` is the outbox entry's id. It is the same on every retry: pass it on as idempotency key.
- Raise `ResolverError` when trying again cannot help. Anything else raised counts as passing trouble
  and is tried again with backoff.
- Exceptions carry codes and class names. A reference, a response body or a URL never goes into one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable
from uuid import UUID

from effaced.core.arguments import checked, require_positive
from effaced.core.errors import EffacedError, Problem, ResolverError
from effaced.model import Correction, SubjectRef


@dataclass(frozen=True, slots=True)
class Erased:
    """The data was there and is gone now. `retained` is on which basis a part of it stays, a short code."""

    status_code: int | None = field(default=None, compare=False)
    retained: str | None = None


@dataclass(frozen=True, slots=True)
class AlreadyAbsent:
    """There was nothing to erase. That is a success."""

    status_code: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The system will let the data go by `until`; the entry is parked and looked at again then."""

    until: datetime
    status_code: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Retained:
    """The system must keep the data. `basis` is a short code, e.g. `tax_law_10y`, never free text."""

    basis: str
    status_code: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Rectified:
    """The corrections were applied."""

    status_code: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class AwaitsPerson:
    """Nobody can be called: a person has to do it and attest it until `by`."""

    by: datetime
    status_code: int | None = field(default=None, compare=False)


Answer = Erased | AlreadyAbsent | Scheduled | Retained | AwaitsPerson


class TransientFailure(EffacedError):
    """Passing trouble. `retry_after` is how long the system asked to be left alone."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "transient",
        status_code: int | None = None,
        retry_after: timedelta | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status_code = status_code
        self.retry_after = retry_after


class CredentialsRefused(TransientFailure):
    """Our credentials are wrong, not the entry: the resolver is paused, and nothing loses an attempt."""


class Unreachable(TransientFailure):
    """No answer came: the connection was refused, broken or never made."""


class CallTimeout(TransientFailure, TimeoutError):
    """No answer came in time. Whether the system acted is unknown, which is why calls carry a key."""


class Rejected(ResolverError):
    """The system answered that it will not do this, whenever asked."""

    def __init__(self, message: str, *, code: str, status_code: int | None = None) -> None:
        super().__init__(message, code=code)
        self.status_code = status_code


@runtime_checkable
class Resolver(Protocol):
    """Erases one person in one system."""

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer: ...


@runtime_checkable
class RectifyingResolver(Protocol):
    """Can also correct values."""

    async def rectify_subject(
        self, ref: SubjectRef, corrections: Sequence[Correction], *, key: UUID
    ) -> Rectified | AlreadyAbsent | AwaitsPerson: ...


@runtime_checkable
class RetentionOnlyResolver(Protocol):
    """Cannot delete on demand, only mark for expiry: answers `Scheduled` until the data is gone."""

    async def schedule_erasure(
        self, ref: SubjectRef, *, key: UUID
    ) -> Scheduled | AlreadyAbsent | AwaitsPerson: ...


@runtime_checkable
class ResumingResolver(Protocol):
    """Continues an erasure that `erase_subject` answered with `Scheduled`, once that moment has come.

    Without this, `erase_subject` is called again. It is never called first: looking whether the person is
    gone proves nothing before the system was told to delete.
    """

    async def resume_erasure(self, ref: SubjectRef, *, key: UUID) -> Answer: ...


@runtime_checkable
class VerifyingResolver(Protocol):
    """Can check whether the person is really gone. True means absent."""

    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool: ...


@runtime_checkable
class InspectingResolver(Protocol):
    """Can check whether system and configuration fit, with nobody in mind; changes nothing."""

    async def find_problems(self) -> Sequence[Problem]: ...


@checked
@dataclass(frozen=True, slots=True)
class Limits:
    """How hard one resolver may be driven."""

    timeout: timedelta = timedelta(seconds=30)
    concurrency: int = 10
    rate_per_second: float | None = None
    """Shared by all processes."""
    batch_size: int | None = None
    """How many entries one claim takes at most; like the rest below, as the settings say if None."""
    max_attempts: int | None = None
    max_age: timedelta | None = None
    backoff: timedelta | None = None
    """The wait after the first failure."""
    backoff_cap: timedelta | None = None
    idempotent: bool = True
    """Whether a call may be made twice without harm. If not, it is made once, unless the policy allows it."""

    def __post_init__(self) -> None:
        require_positive(
            "Limits",
            timeout=self.timeout,
            concurrency=self.concurrency,
            rate_per_second=self.rate_per_second,
            batch_size=self.batch_size,
            max_attempts=self.max_attempts,
            max_age=self.max_age,
            backoff=self.backoff,
            backoff_cap=self.backoff_cap,
        )
