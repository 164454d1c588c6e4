"""Breakers in Redis: read, decide here, and store only if nobody was faster; a script compares and sets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar, cast

from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from effaced import clock
from effaced.breakers import transitions
from effaced.breakers.change import Changing, new_rows, to_write
from effaced.breakers.codec import as_text, from_text
from effaced.breakers.memory import Keep, told
from effaced.breakers.model import CircuitBreakerStateData, StoreUnavailable
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.errors import Conflict

T = TypeVar("T")
# In braces: on a cluster all breakers live in one slot, so that two can be changed together.
PREFIX = "{effaced:breakers}:"
_TRIES = 1_000
# Each row's text holds its version and its moment, so an equal text is an unchanged row.
_COMPARE_AND_SET = """
for i = 1, #KEYS do
    if (redis.call('GET', KEYS[i]) or '') ~= ARGV[i] then return 0 end
end
for i = 1, #KEYS do
    if ARGV[#KEYS + i] ~= '' then redis.call('SET', KEYS[i], ARGV[#KEYS + i]) end
end
return 1
"""


class RedisCircuitBreakerStateRepository(CircuitBreakerStateRepository):
    """Shared by all processes that share the connection's database. `keep` is told every transition."""

    def __init__(
        self,
        connection: Redis,
        keep: Keep | None = None,
        *,
        prefix: str = PREFIX,
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self._redis = connection
        self._script = connection.register_script(_COMPARE_AND_SET)
        self._keep = keep
        self._prefix = prefix
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
        return {name: from_text(text) for name, text in zip(names, self._texts(names), strict=True) if text}

    def load_all(self) -> list[CircuitBreakerStateData]:
        with _answering():
            keys = sorted(set(self._redis.scan_iter(match=f"{self._prefix}*", count=1_000)))
            texts = cast("list[bytes | None]", self._redis.mget(keys)) if keys else []
        rows = [from_text(text) for text in texts if text]
        return sorted(rows, key=lambda row: row.service_name)

    def change(self, names: Collection[str], fn: Changing[T]) -> T:
        ordered = sorted(names)
        for _ in range(_TRIES):
            texts = self._texts(ordered)
            found = {name: from_text(text) for name, text in zip(ordered, texts, strict=True) if text}
            before = new_rows(ordered, found)
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

    def _texts(self, names: Sequence[str]) -> list[str]:
        if not names:
            return []
        with _answering():
            found = self._redis.mget([self._prefix + name for name in names])
        return [text.decode() if isinstance(text, bytes) else text or "" for text in found]

    def _swap(self, names: Sequence[str], seen: Sequence[str], written: dict[str, str]) -> bool:
        new = [written.get(name, "") for name in names]
        with _answering():
            return bool(self._script(keys=[self._prefix + name for name in names], args=[*seen, *new]))


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreUnavailable(error) from error
