"""Resolvers that end their process, and runs in processes that they may end."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from uuid import UUID

import forked

from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import Database
from effaced.model import SubjectRef
from effaced.resolvers.protocols import Answer, Erased
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner
from effaced.testing import RecordingResolver, VerifyingRecordingResolver

# Not a plain fork: the tests' own process has threads, whose locks a child would find taken.
_context = forked.context


class Killer(RecordingResolver):
    """Ends its process a moment after it was called, when the calls of others have begun."""

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        await asyncio.sleep(0.05)
        os._exit(9)


class KillerAtOpening(RecordingResolver):
    """Ends its process while it is being opened."""

    async def __aenter__(self) -> KillerAtOpening:
        os._exit(9)

    async def __aexit__(self, *_: object) -> None:
        pass


class Slow(RecordingResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        await asyncio.sleep(0.6)
        return Erased()


class SlowReadBack(VerifyingRecordingResolver):
    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        await asyncio.sleep(0.6)
        return True


KINDS = {kind.__name__: kind for kind in (Killer, KillerAtOpening, Slow, SlowReadBack)}


def run_in_a_process(url: str, keys: str, resolvers: dict[str, str]) -> int | None:
    """`run_once` in a process of its own at the time of ours, with these kinds by name; its exit code."""
    process = _context.Process(target=_run, args=(url, keys, resolvers, clock.now()))
    process.start()
    process.join()
    return process.exitcode


def _run(url: str, keys: str, resolvers: dict[str, str], at: datetime) -> None:
    registry = ResolverRegistry(
        tuple(Registered(name, name, KINDS[kind]()) for name, kind in resolvers.items())
    )
    outbox = Outbox(Database(url).sessions, keyring=Keyring.parse(keys))
    with clock.pretend(at):
        asyncio.run(SagaRunner(registry, outbox).run_once())
