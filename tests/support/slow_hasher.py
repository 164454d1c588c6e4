"""argon2 that takes as long as a test wants."""

from __future__ import annotations

from threading import Condition
from typing import Literal

from argon2 import PasswordHasher


class SlowHasher(PasswordHasher):
    """Real argon2 with little work, which waits before each computation until it is told to go on."""

    def __init__(self) -> None:
        super().__init__(time_cost=2, memory_cost=64, parallelism=1)
        self._changed = Condition()
        self._waiting = self._most = 0
        self._open = False

    def wait_for(self, number: int) -> None:
        """Until so many computations have begun and wait."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._waiting == number, timeout=60)

    def go_on(self) -> None:
        """Let all go on, now and from now on."""
        with self._changed:
            self._open = True
            self._changed.notify_all()

    @property
    def most(self) -> int:
        """How many have waited at the same time."""
        return self._most

    def hash(self, password: str | bytes, *, salt: bytes | None = None) -> str:
        self._wait()
        return super().hash(password, salt=salt)

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
        self._wait()
        return super().verify(hash, password)

    def _wait(self) -> None:
        with self._changed:
            self._waiting += 1
            self._most = max(self._most, self._waiting)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._open)
            self._waiting -= 1
