"""Calling a resolver as a worker does: opened, in one event loop, each call within its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from datetime import timedelta
from typing import Any, Self
from uuid import UUID

from effaced.model import Correction, SubjectRef, new_id
from effaced.resolvers.protocols import ResumingResolver, RetentionOnlyResolver
from effaced.resolvers.registry import Registered, ResolverRegistry


class Calls:
    """A context manager with an event loop of its own, which runs only while a call is under way.

    So the caller may do what it likes in between, an `asyncio.run` included. Answers are `Any`: whether
    they are what the protocol says is what the tests find out.
    """

    def __init__(self, resolver: Any, timeout: timedelta) -> None:
        self._resolver = resolver
        self._registry = ResolverRegistry((Registered("conformance", "person", resolver),))
        self._seconds = timeout.total_seconds()
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._runner.__enter__()
        try:
            self._runner.run(self._open())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._runner.run(self._close())
        finally:
            self._runner.close()

    def erase(self, ref: SubjectRef, key: UUID | None = None) -> Any:
        """Erase or schedule, whichever the resolver can, under `key` or a new one."""
        return self._runner.run(self._within(self._erase(ref, key)))

    def resume(self, ref: SubjectRef, key: UUID) -> Any:
        """The next call after `Scheduled`: `resume_erasure` if the resolver has it, else as before."""
        if isinstance(self._resolver, ResumingResolver):
            return self._runner.run(self._within(self._resolver.resume_erasure(ref, key=key)))
        return self.erase(ref, key)

    def erase_at_once(self, ref: SubjectRef, keys: Iterable[UUID]) -> list[Any]:
        """One call per key, all at the same time; what they answered or raised."""

        async def gather() -> list[Any]:
            calls = [self._within(self._erase(ref, key)) for key in keys]
            return await asyncio.gather(*calls, return_exceptions=True)

        return self._runner.run(gather())

    def verify(self, ref: SubjectRef) -> Any:
        return self._runner.run(self._within(self._resolver.verify_absent(ref, key=new_id())))

    def rectify(self, ref: SubjectRef, corrections: Sequence[Correction], key: UUID | None = None) -> Any:
        call = self._resolver.rectify_subject(ref, corrections, key=key or new_id())
        return self._runner.run(self._within(call))

    def _erase(self, ref: SubjectRef, key: UUID | None) -> Awaitable[Any]:
        if isinstance(self._resolver, RetentionOnlyResolver):
            return self._resolver.schedule_erasure(ref, key=key or new_id())
        answer: Awaitable[Any] = self._resolver.erase_subject(ref, key=key or new_id())
        return answer

    async def _within(self, call: Awaitable[Any]) -> Any:
        async with asyncio.timeout(self._seconds):
            return await call

    # What is opened by a task has to be closed by it, and each call is a task of its own.

    async def _open(self) -> None:
        self._is_open, self._is_over = asyncio.Event(), asyncio.Event()
        self._holder = asyncio.create_task(self._hold_open())
        opened = asyncio.create_task(self._is_open.wait())
        await asyncio.wait({self._holder, opened}, return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        if self._holder.done():
            self._holder.result()

    async def _hold_open(self) -> None:
        async with self._registry.connected():
            self._is_open.set()
            await self._is_over.wait()

    async def _close(self) -> None:
        self._is_over.set()
        await self._holder
