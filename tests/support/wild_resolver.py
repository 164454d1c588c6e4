"""A resolver that answers and raises anything at all, for fuzzing the runner."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx

from effaced.core.errors import ResolverError
from effaced.model import SubjectRef
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    AwaitsPerson,
    CredentialsRefused,
    Erased,
    Rectified,
    Rejected,
    Retained,
    Scheduled,
    TransientFailure,
)

LATER = datetime(2026, 4, 1, tzinfo=UTC)


class Odd(BaseException):
    """Neither an Exception nor one that the interpreter knows."""


class RaisingAttributes(Exception):
    """Whatever is read of it raises."""

    def __getattribute__(self, name: str) -> object:
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise random.choice([ValueError, SystemExit, KeyboardInterrupt, Odd])


class RaisingClass:
    """Raises when it is asked what it is, and whether it is true."""

    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise ValueError

    def __bool__(self) -> bool:
        raise SystemExit

    def __eq__(self, _other: object) -> bool:
        raise KeyboardInterrupt

    __hash__ = None  # type: ignore[assignment]


class Unreadable(Erased):
    def __init__(self) -> None:
        pass

    def __getattribute__(self, name: str) -> object:
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise Odd


def _with(error: BaseException, **attributes: object) -> BaseException:
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def _http_error(status: int) -> httpx.HTTPStatusError:
    request = httpx.Request("DELETE", "http://vendor.example/1")
    response = httpx.Response(status, headers={"Retry-After": "later"}, request=request)
    return httpx.HTTPStatusError("no", request=request, response=response)


VALUES: tuple[Callable[[], object], ...] = (
    lambda: None,
    lambda: True,
    lambda: False,
    lambda: 1,
    lambda: "absent",
    lambda: {"absent": True},
    lambda: b"\x00",
    lambda: float("nan"),
    lambda: object(),
    lambda: Erased,
    lambda: RaisingClass(),
    lambda: Unreadable(),
    lambda: Erased(),
    lambda: Erased(status_code="200"),  # type: ignore[arg-type]
    lambda: Erased(retained="x" * 10_000),
    lambda: Erased(retained=RaisingClass()),  # type: ignore[arg-type]
    lambda: AlreadyAbsent(status_code=404),
    lambda: Retained("tax\x00law"),
    lambda: Retained(None),  # type: ignore[arg-type]
    lambda: Rectified(),
    lambda: Scheduled(LATER),
    lambda: Scheduled("tomorrow"),  # type: ignore[arg-type]
    lambda: Scheduled(datetime.max.replace(tzinfo=UTC)),
    lambda: AwaitsPerson(LATER),
    lambda: AwaitsPerson(7),  # type: ignore[arg-type]
)
ERRORS: tuple[Callable[[], BaseException], ...] = (
    lambda: ValueError("x"),
    lambda: RuntimeError(),
    lambda: ConnectionResetError(),
    lambda: TimeoutError(),
    lambda: asyncio.CancelledError(),
    lambda: Odd(),
    lambda: GeneratorExit(),
    lambda: StopAsyncIteration(),
    lambda: RaisingAttributes(),
    lambda: RecursionError(),
    lambda: MemoryError(),
    lambda: ResolverError("never", code="\x00\n"),
    lambda: Rejected("never", code="x" * 500),
    lambda: _with(ResolverError("never"), code=RaisingClass()),
    lambda: TransientFailure("later", retry_after=timedelta.max),
    lambda: _with(TransientFailure("later"), retry_after="soon"),
    lambda: _with(RuntimeError(), status_code="503"),
    lambda: _with(RuntimeError(), status_code=RaisingClass(), retry_after=float("inf")),
    lambda: _with(RuntimeError(), status_code=10**30, retry_after=-1),
    lambda: _http_error(503),
    lambda: _http_error(404),
    lambda: ExceptionGroup("several", [ValueError(), OSError()]),
)
# These end or pause more than one call; they are drawn less often.
GRAVE: tuple[Callable[[], BaseException], ...] = (
    lambda: SystemExit(3),
    lambda: KeyboardInterrupt(),
    lambda: CredentialsRefused("no"),
)


@dataclass
class WildResolver:
    """Its behaviour is drawn anew at each call. `absent` are the references it has said True for."""

    random: random.Random
    absent: set[str] = field(default_factory=set)

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> object:
        return await self._anything()

    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> object:
        said = await self._anything()
        if type(said) is bool and said:
            self.absent.add(ref.value)
        return said

    async def _anything(self) -> object:
        match self.random.randrange(10):
            case 0:
                await asyncio.sleep(self.random.random() * 0.005)
            case 1:
                await asyncio.sleep(60)  # cancelled by its timeout
            case 2:
                await self._swallow_one_cancellation()
            case 3:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.sleep(0)
            case 4 if self.random.random() < 0.2:
                raise self.random.choice(GRAVE)()
        if self.random.random() < 0.5:
            raise self.random.choice(ERRORS)()
        return self.random.choice(VALUES)()

    async def _swallow_one_cancellation(self) -> None:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
