"""Breakers in Redis: read, decide here, and store only if nobody was faster; a script compares and sets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from effaced.breakers import transitions
from effaced.breakers.change import Changing, new_rows, to_write
from effaced.breakers.codec import Unreadable, as_text, from_text
from effaced.breakers.memory import Keep, told
from effaced.breakers.model import CircuitBreakerStateData, StoreUnavailable
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.core import clock
from effaced.core.errors import Conflict
from effaced.core.log import get_logger

T = TypeVar("T")
# In braces: on a cluster all breakers live in one slot, so that two can be changed together.
PREFIX = "{effaced:breakers}:"
_TRIES = 1_000
_MOST_BYTES = 262_144
_MOST_BREAKERS = 10_000
# What is no text, or too long to be ours, is read as this, and can be replaced like any other row.
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
# Each row's text holds its version and its moment, so an equal text is an unchanged row.
_COMPARE_AND_SET = f"""{_READ}
for i = 1, #KEYS do
    if read(KEYS[i]) ~= ARGV[i] then return 0 end
end
for i = 1, #KEYS do
    if ARGV[#KEYS + i] ~= '' then redis.call('SET', KEYS[i], ARGV[#KEYS + i]) end
end
return 1
"""
_log = get_logger(__name__)


class RedisCircuitBreakerStateRepository(CircuitBreakerStateRepository):
    """Shared by all processes that share the connection's database. `keep` is told every transition.

    A row that can't be read counts as lost: who has a memory of it (`layered.py`) writes that back.
    """

    def __init__(
        self,
        connection: Redis,
        keep: Keep | None = None,
        *,
        prefix: str = PREFIX,
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self._redis = connection
        self._read_all = connection.register_script(_READ_ALL)
        self._compare_and_set = connection.register_script(_COMPARE_AND_SET)
        self._keep = keep
        self._prefix = prefix
        self._unreadable: set[str] = set()
        self._now = now

    def now(self) -> datetime:
        return self._now()

    def within(self, session: Session) -> CircuitBreakerStateRepository:
        """Redis has no part in the transaction, but what is told of the change has."""

        def keep(*made: Any) -> None:
            transitions.keep(session, *made)

        return RedisCircuitBreakerStateRepository(self._redis, keep, prefix=self._prefix, now=self._now)

    def load(self, names: Collection[str]) -> dict[str, CircuitBreakerStateData]:
        names = list(names)
        return self._rows(names, self._texts(names))

    def load_all(self) -> list[CircuitBreakerStateData]:
        with _answering():
            scanned = self._redis.scan_iter(match=f"{self._prefix}*", count=1_000)
            names = {self._name(key) for key in islice(scanned, _MOST_BREAKERS)}
        rows = self.load(sorted(name for name in names if name))
        return sorted(rows.values(), key=lambda row: row.service_name)

    def change(self, names: Collection[str], fn: Changing[T]) -> T:
        ordered = sorted(names)
        for _ in range(_TRIES):
            texts = self._texts(ordered)
            before = new_rows(ordered, self._rows(ordered, texts))
            change = fn(before)
            written = {row.service_name: as_text(row) for row in to_write(before, change)}
            if written and not self._swap(ordered, texts, written):
                continue
            told(self._keep, change.transitions, change.records)
            return change.result
        raise Conflict("A breaker in Redis is being changed all the time; try again.")

    def delete(self, name: str) -> bool:
        with _answering():
            return self._redis.delete(self._prefix + name) > 0

    def _texts(self, names: Sequence[str]) -> list[bytes]:
        if not names:
            return []
        with _answering():
            found: Any = self._read_all(keys=[self._prefix + name for name in names])
        return [text if isinstance(text, bytes) else text.encode() for text in found]

    def _rows(self, names: Sequence[str], texts: Sequence[bytes]) -> dict[str, CircuitBreakerStateData]:
        """The rows that are there. One that can't be read is told of, once, and left out."""
        rows: dict[str, CircuitBreakerStateData] = {}
        for name, text in zip(names, texts, strict=True):
            try:
                if text:
                    rows[name] = from_text(text, name)
                self._unreadable.discard(name)
            except Unreadable as error:
                if name not in self._unreadable:
                    _log.warning("breaker_row_unreadable", breaker=name, error=str(error))
                self._unreadable.add(name)
        return rows

    def _swap(self, names: Sequence[str], seen: Sequence[bytes], written: dict[str, str]) -> bool:
        new = [written.get(name, "") for name in names]
        with _answering():
            return bool(
                self._compare_and_set(keys=[self._prefix + name for name in names], args=[*seen, *new])
            )

    def _name(self, key: bytes | str) -> str:
        """The breaker of this key; empty if it can't be one."""
        try:
            return (key if isinstance(key, str) else key.decode()).removeprefix(self._prefix)
        except UnicodeDecodeError:
            return ""


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreUnavailable(error) from error
