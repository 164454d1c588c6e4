"""Looking at breakers: who is blocked, until when, and what is known without asking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from effaced.breakers import admission as rules
from effaced.breakers.change import new_rows
from effaced.breakers.ground import Admission, Ground, names_of
from effaced.breakers.model import (
    RESTRICTION,
    BreakerRole,
    BreakerState,
    CircuitBreakerStateData,
    StoreUnavailable,
)
from effaced.core import clock

STORE_AGAIN = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Look:
    """What is known without asking anybody. `blocked_until` is None if a call may be made."""

    state: BreakerState
    blocked_until: datetime | None = None
    reason: str = ""


class Looking(Ground):
    """The part of the registry that changes nothing."""

    def blocked(
        self, pairs: Iterable[tuple[str, str | None]], role: BreakerRole | None = None
    ) -> dict[str, datetime]:
        """Those of the resolvers that must not be called, and until when: one load for all of them.

        With a role also those whose trial calls are all under way.
        """
        pairs = list(pairs)
        wanted = {name for resolver, host in pairs for name in names_of(resolver, host)}
        if not wanted:
            return {}
        try:
            found = new_rows(sorted(wanted), self.repository.load(wanted))
        except StoreUnavailable:
            return {resolver: clock.now() + STORE_AGAIN for resolver, _ in pairs}
        self._note(found.values())
        now, answer = self.repository.now(), {}
        for resolver, host in pairs:
            names = names_of(resolver, host)
            block = rules.blocked([found[name] for name in names], now)
            if block is not None:
                answer[resolver] = block.until
            elif role is not None and not all(
                rules.has_room(found[name], self.policy(name, role), role, now) for name in names
            ):
                answer[resolver] = now + rules.LOOK_AGAIN
        return answer

    def retry_at(self, resolver: str | None, host: str | None = None) -> datetime | None:
        """When a call may be tried; None if now."""
        block = rules.blocked(self._load(names_of(resolver, host)), self.repository.now())
        return block.until if block else None

    def current_state(self, host: str | None = None, resolver: str | None = None) -> BreakerState:
        """The more restrictive state of the two, pins included."""
        return _look(self._load(names_of(resolver, host)), None, self.repository.now()).state

    def cooldown_remaining_ms(self, host: str | None = None, resolver: str | None = None) -> int | None:
        """How long a vendor still wants to be left alone; None if it does not."""
        now = self.repository.now()
        ends = [
            row.cooldown_until
            for row in self._load(names_of(resolver, host))
            if row.cooldown_until is not None and row.cooldown_until > now
        ]
        return int((max(ends) - now).total_seconds() * 1000) if ends else None

    def last_known(self, resolver: str | None, host: str | None = None) -> Look:
        """What this process last heard, without asking: for a last look before a call."""
        now, rows = self.repository.now(), self._last(names_of(resolver, host))
        return _look(rows, rules.blocked(rows, now), now)

    def last_look(self, admission: Admission) -> Look:
        """The same for calls admitted a while ago: a breaker that has opened since then denies them."""
        now, rows = self.repository.now(), self._last([hold.service_name for hold in admission.holds])
        block = rules.blocked(rows, now)
        for hold, row in zip(admission.holds, rows, strict=True):
            moved = hold.generation is not None and row.generation > hold.generation
            if block is None and moved and rules.effective_state(row, now) is not BreakerState.CLOSED:
                block = rules.Block(row.service_name, rules.BUDGET, now + rules.LOOK_AGAIN)
        return _look(rows, block, now)


def _look(rows: Sequence[CircuitBreakerStateData], block: rules.Block | None, now: datetime) -> Look:
    state = max((rules.effective_state(row, now) for row in rows), key=lambda each: RESTRICTION[each])
    return Look(state, block.until, block.reason) if block else Look(state)
