"""Erasing, looking and correcting in another database, in threads beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any, Self, TypeVar
from uuid import UUID

from effaced.core.crypto import Keyring
from effaced.core.errors import ConfigurationError, Problem
from effaced.datamap.compile.retention_groups import ending_columns
from effaced.datamap.load.file import load_map
from effaced.datamap.model.data_map import DataMap, SubjectRule
from effaced.datamap.surrogates.shapes import Hashing
from effaced.model import Correction, SubjectRef
from effaced.resolvers.protocols import AlreadyAbsent, Answer, CallTimeout, Limits, Rectified
from effaced.resolvers.settings import suggest, validate
from effaced.resolvers.sql.config import SqlConfig
from effaced.resolvers.sql.database import OtherDatabase, Span
from effaced.resolvers.sql.errors import failure_of
from effaced.resolvers.sql.work import Work

KIND = "sql"
T = TypeVar("T")
# The database is told to stop a little before we stop waiting, so that mostly it is the one to say so.
_SHARE = 0.9
# How often, and how long apart, a call that is out of time is called off.
_TRIES, _PAUSE = 4, 0.25
_NO_END = "nobody would end it in another database; leave 'until' out"


@dataclass(slots=True)
class _Open:
    """The connections and the threads that use them, as many as calls may be made at once."""

    database: OtherDatabase
    threads: ThreadPoolExecutor
    holders: int = 0


class SqlResolver:
    """Erases by the other map's plan, and looks by it. Connections are made when calls need them."""

    def __init__(self, name: str, config: SqlConfig, work: Work, limits: Limits) -> None:
        self.name = name
        self._config = config
        self._work = work
        self._timeout = limits.timeout.total_seconds()
        self._concurrency = limits.concurrency
        self._lock = Lock()
        self._open: _Open | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, map={self._config.map!r})"

    @property
    def host(self) -> str | None:
        """The host and port that is called; a file has none."""
        url = self._config.parsed
        if url.get_backend_name() == "sqlite":
            return None
        named = url.query.get("host", "")
        host = url.host or (named if isinstance(named, str) else named[0]) or "localhost"
        return f"{host}:{url.port or 5432}"

    async def __aenter__(self) -> Self:
        self._acquire()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._release()

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        return await self._run(lambda db, span: self._work.erase(db, span, ref.value, key))

    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        return await self._run(lambda db, span: self._work.is_absent(db, span, ref.value, key))

    async def find_problems(self) -> Sequence[Problem]:
        return await self._run(self._work.find_problems)

    # --- one call: a thread, a span of time, an end ---

    async def _run(self, work: Callable[[OtherDatabase, Span], T]) -> T:
        opened = self._acquire()
        try:
            span = Span(self._timeout * _SHARE)
            call = opened.threads.submit(_run_and_translate_errors, work, opened.database, span)
            return await self._wait(call, span)
        finally:
            await self._release()

    async def _wait(self, call: Future[T], span: Span) -> T:
        answer = asyncio.wrap_future(call)
        # Nobody may be left to ask for it.
        answer.add_done_callback(lambda each: each.cancelled() or each.exception())
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.shield(answer)
        except CallTimeout:
            raise
        except TimeoutError:
            pass
        finally:
            if not call.done() and not call.cancel():
                await _cancel(answer, span)
        raise CallTimeout("No answer in time.", code="timeout")

    def _acquire(self) -> _Open:
        with self._lock:
            if self._open is None:
                database = OtherDatabase(
                    self._config.parsed,
                    connections=self._concurrency,
                    timeout=self._timeout,
                    lock_timeout=self._config.lock_timeout,
                )
                threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix=f"sql-{self.name}")
                self._open = _Open(database, threads)
            self._open.holders += 1
            return self._open

    async def _release(self) -> None:
        with self._lock:
            opened = self._open
            assert opened is not None
            opened.holders -= 1
            if opened.holders:
                return
            self._open = None
        await asyncio.to_thread(_close, opened)


class RectifyingSql(SqlResolver):
    """Corrects too: the categories that the other map has under `rectify`."""

    @property
    def fields(self) -> frozenset[str]:
        return self._work.fields

    async def rectify_subject(
        self, ref: SubjectRef, corrections: Sequence[Correction], *, key: UUID
    ) -> Rectified | AlreadyAbsent:
        return await self._run(lambda db, span: self._work.rectify(db, span, ref.value, corrections, key))


def from_config(
    name: str, config: dict[str, Any], limits: Limits, *, keyring: Keyring | None = None
) -> SqlResolver:
    """The resolver that a block of resolvers.yaml describes. Its map is read now, its schema when needed.

    Of the keyring it keeps one secret, to make the map's keyed hashes with.
    """
    settings = validate(SqlConfig, config)
    try:
        data_map = load_map(settings.map)
    except ConfigurationError as error:
        found = [f"{each.where}: {each.message}" for each in error.problems] or [error.message]
        problems = [Problem("map", each) for each in found]
        raise ConfigurationError("The map can't be used.", problems=problems) from None
    _require_no_ends(data_map)
    subject = _subject(settings, data_map)
    hashing = None
    if keyring is not None and data_map.pseudonymises:
        # Apart, or whoever gets hold of two databases could join them by the hashes.
        hashing = Hashing.under(keyring, f"resolver:{name}" if settings.hashes == "apart" else "")
    work = Work(settings, data_map, subject, hashing)
    kind = RectifyingSql if work.fields else SqlResolver
    return kind(name, settings, work, limits)


def _subject(settings: SqlConfig, data_map: DataMap) -> SubjectRule:
    """Which of the map's kinds of people the references name."""
    kinds = [each.name for each in data_map.people]
    if settings.subject is None and len(kinds) > 1:
        raise _wrong("subject", f"the map has several kinds of people; say which: {', '.join(kinds)}")
    subject = next((each for each in data_map.people if settings.subject in (None, each.name)), None)
    if subject is None:
        raise _wrong("subject", f"the map has no such kind of people{suggest(settings.subject or '', kinds)}")
    known = [rule.kind for rule in subject.identifiers]
    if settings.find_by is not None and settings.find_by not in known:
        raise _wrong("find_by", f"the map has no such identifier{suggest(settings.find_by, known)}")
    return subject


def _require_no_ends(data_map: DataMap) -> None:
    """A retention there would never end: what is left in that database is registered nowhere."""
    problems = [
        Problem("map", f"{data_map.where(rule.line)}: {table.name}.{name}.retain.until: {_NO_END}")
        for table in data_map.tables.values()
        for name, rule in ending_columns(table).items()
    ]
    if problems:
        raise ConfigurationError("The map can't be used so.", problems=problems)


def _wrong(key: str, said: str) -> ConfigurationError:
    return ConfigurationError("The map can't be used so.", problems=[Problem(key, said)])


def _run_and_translate_errors(
    work: Callable[[OtherDatabase, Span], T], database: OtherDatabase, span: Span
) -> T:
    """Do the work. An error is raised as one of ours, without the database's message and values."""
    try:
        return work(database, span)
    except Exception as error:
        trouble = failure_of(error)
    # Raised out here: an exception of the database's holds statement and values.
    raise trouble


async def _cancel(answer: asyncio.Future[Any], span: Span) -> None:
    """End the statement and with it the transaction; waits for that, up to a limit."""
    for _ in range(_TRIES):
        await asyncio.to_thread(span.end)
        await asyncio.wait({answer}, timeout=_PAUSE)
        if answer.done():
            return
    span.cut()


def _close(opened: _Open) -> None:
    opened.threads.shutdown()
    opened.database.dispose()
