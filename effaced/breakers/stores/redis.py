"""Breakers in Redis: read, decide here, and write only if nothing changed meanwhile (compare and set)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from effaced.breakers import transitions
from effaced.breakers.model import BreakerState, CircuitBreakerStateData, StoreUnavailable
from effaced.breakers.stores.base import (
    BreakerStore,
    ChangeFunction,
    WriteLog,
    changed_rows,
    with_new_rows,
    write_log,
)
from effaced.breakers.stores.codec import Unreadable, as_text, from_text
from effaced.core import clock
from effaced.core.errors import Conflict
from effaced.core.log import get_logger

T = TypeVar("T")
# Braces: on a cluster all breakers live in one hash slot, so that two can be changed together.
PREFIX = "{effaced:breakers}:"
_TRIES = 1_000
_MOST_BYTES = 262_144
_MOST_BREAKERS = 10_000
# Keys of another type, and values too long to be ours, are read as this and can be replaced like any row.
_UNREADABLE = b"?"
_READ = f"""
local function read(key)
    local kind = redis.call('TYPE', key).ok
    if kind == 'none' then return '' end
    if kind ~= 'string' or redis.call('STRLEN', key) > {_MOST_BYTES} then return '{_UNREADABLE.decode()}' end
    return redis.call('GET', key)
end
"""
_READ_ALL = f"""{_READ}
local found = {{}}
for i = 1, #KEYS do found[i] = read(KEYS[i]) end
return found
"""
# A row's text holds its version and time, so an equal text is an unchanged row. After the texts read
# come the texts to write ('' keeps a row), then their time to live in ms (0 for ever).
_COMPARE_AND_SET = f"""{_READ}
for i = 1, #KEYS do
    if read(KEYS[i]) ~= ARGV[i] then return 0 end
end
for i = 1, #KEYS do
    local text, ttl = ARGV[#KEYS + i], ARGV[2 * #KEYS + i]
    if text ~= '' and ttl ~= '0' then redis.call('SET', KEYS[i], text, 'PX', ttl)
    elseif text ~= '' then redis.call('SET', KEYS[i], text) end
end
return 1
"""
# Written in place of a deleted row, until its deletion is in the log that all processes read.
_DELETED = b"deleted"
_DELETED_MS = 600_000
# A closed breaker that nobody wrote to for this long has nothing left to remember.
_IDLE = timedelta(days=1)
_log = get_logger(__name__)


class RedisBreakerStore(BreakerStore):
    """Shared by all processes that use this Redis database. `log` is passed every transition.

    A row that can't be read counts as lost; the layered store restores it from its own copy.
    """

    def __init__(
        self,
        connection: Redis,
        log: WriteLog | None = None,
        *,
        prefix: str = PREFIX,
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self._redis = connection
        self._read_all = connection.register_script(_READ_ALL)
        self._compare_and_set = connection.register_script(_COMPARE_AND_SET)
        self._log = log
        self._prefix = prefix
        self._unreadable: set[str] = set()
        self._now = now

    def now(self) -> datetime:
        return self._now()

    def within(self, session: Session) -> BreakerStore:
        """Redis takes no part in the transaction, but the log of the change does."""
        log = partial(transitions.write, session)
        return RedisBreakerStore(self._redis, log, prefix=self._prefix, now=self._now)

    def load(self, names: Collection[str]) -> dict[str, CircuitBreakerStateData]:
        names = list(names)
        return self._rows(names, self._read_rows(names))

    def load_all(self) -> list[CircuitBreakerStateData]:
        with _store_errors():
            scanned = self._redis.scan_iter(match=f"{self._prefix}*", count=1_000)
            names = {self._name(key) for key in islice(scanned, _MOST_BREAKERS)}
        rows = self.load(sorted(name for name in names if name))
        return sorted(rows.values(), key=lambda row: row.service_name)

    def change(self, names: Collection[str], fn: ChangeFunction[T]) -> T:
        ordered = sorted(names)
        for _ in range(_TRIES):
            texts = self._read_rows(ordered)
            before = with_new_rows(ordered, self._rows(ordered, texts))
            change = fn(before)
            written = {row.service_name: row for row in changed_rows(before, change)}
            if (written or change.deleted) and not self._swap(ordered, texts, written, change.deleted):
                continue
            write_log(self._log, change)
            return change.result
        raise Conflict("A breaker in Redis is being changed all the time; try again.")

    def recently_deleted(self, names: Collection[str]) -> set[str]:
        names = list(names)
        return {name for name, text in zip(names, self._read_rows(names), strict=True) if text == _DELETED}

    def _read_rows(self, names: Sequence[str]) -> list[bytes]:
        if not names:
            return []
        with _store_errors():
            found: Any = self._read_all(keys=[self._prefix + name for name in names])
        return [text if isinstance(text, bytes) else text.encode() for text in found]

    def _rows(self, names: Sequence[str], texts: Sequence[bytes]) -> dict[str, CircuitBreakerStateData]:
        """The rows that exist. One that can't be read is logged once and left out."""
        rows: dict[str, CircuitBreakerStateData] = {}
        for name, text in zip(names, texts, strict=True):
            try:
                if text and text != _DELETED:
                    rows[name] = from_text(text, name)
                self._unreadable.discard(name)
            except Unreadable as error:
                if name not in self._unreadable:
                    _log.warning("breaker_row_unreadable", breaker=name, error=str(error))
                self._unreadable.add(name)
        return rows

    def _swap(
        self,
        names: Sequence[str],
        seen: Sequence[bytes],
        written: Mapping[str, CircuitBreakerStateData],
        deleted: Collection[str],
    ) -> bool:
        now = self.now()
        texts: list[str | bytes] = []
        lives: list[int] = []
        for name in names:
            row = written.get(name)
            texts.append(as_text(row) if row else _DELETED if name in deleted else "")
            lives.append(_time_to_live_ms(row, now) if row else _DELETED_MS)
        with _store_errors():
            keys = [self._prefix + name for name in names]
            return bool(self._compare_and_set(keys=keys, args=[*seen, *texts, *lives]))

    def _name(self, key: bytes | str) -> str:
        """The breaker of this key; empty if it can't be one."""
        try:
            return (key if isinstance(key, str) else key.decode()).removeprefix(self._prefix)
        except UnicodeDecodeError:
            return ""


def _time_to_live_ms(row: CircuitBreakerStateData, now: datetime) -> int:
    """How long Redis keeps a row; 0 for ever. What blocks calls stays; a mere cooldown goes when it ends."""
    if row.state is not BreakerState.CLOSED or row.pinned is not None:
        return 0
    cooldown = max(row.cooldown_until - now, timedelta(0)) if row.cooldown_until else timedelta(0)
    only_cooldown = cooldown and not (row.generation or row.failure_count or row.recent_failures)
    return max(1, int((cooldown if only_cooldown else cooldown + _IDLE) / timedelta(milliseconds=1)))


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreUnavailable(error) from error
