"""What keeps breakers: a store supplies `load`, `load_all`, `change` and `delete`, and nothing else.

`change` gives a function the current rows, alone with them, and stores what it makes of them; it may call
the function again if somebody was faster. So exactly one caller sees each transition, and no verb that is
made of it can be made unsafe by a store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from datetime import datetime
from typing import TypeVar

from effaced.breakers import machine
from effaced.breakers.change import Change, Changing, Rows, stamp
from effaced.breakers.model import CircuitBreakerStateData, Transition
from effaced.core import clock

T = TypeVar("T")


class Kept(ABC):
    """Breakers by name, wherever they are kept."""

    @abstractmethod
    def load(self, names: Collection[str]) -> dict[str, CircuitBreakerStateData]:
        """Those of the breakers that exist."""

    @abstractmethod
    def load_all(self) -> list[CircuitBreakerStateData]:
        """All of them, by name."""

    def now(self) -> datetime:
        """The moment by which breakers are judged. Whoever shares a store has to share its clock too."""
        return clock.now()

    @property
    def away(self) -> bool:
        """Whether what it tells is what this process last knew, because the store behind it is silent."""
        return False

    @abstractmethod
    def change(self, names: Collection[str], fn: Changing[T]) -> T:
        """Let `fn` change those breakers, all or none. One that does not exist comes as a new one.

        What is not changed is not written. Transitions and audit records are kept with it.
        """

    @abstractmethod
    def delete(self, name: str) -> bool: ...

    def edition(self) -> int | None:
        """A number that stays the same while no breaker changes; None if telling would cost a look."""
        return None

    def _change_one(
        self, service_name: str, change: Callable[[CircuitBreakerStateData], machine.Step]
    ) -> CircuitBreakerStateData:
        return self._step(service_name, change)[0]

    def _step(
        self, service_name: str, step: Callable[[CircuitBreakerStateData], machine.Step]
    ) -> tuple[CircuitBreakerStateData, Transition | None]:
        """Change one breaker; the row as it was written, and the transition if this call made one."""

        def changed(rows: Rows) -> Change[tuple[CircuitBreakerStateData, Transition | None]]:
            made = step(rows[service_name])
            after = stamp(rows[service_name], made.data, self.now())
            return Change([after], (after, made.transition), [made.transition] if made.transition else [])

        return self.change([service_name], changed)


def stepped(before: CircuitBreakerStateData, step: machine.Step, now: datetime, result: T) -> Change[T]:
    after = stamp(before, step.data, now)
    return Change([after], result, [step.transition] if step.transition else [])
