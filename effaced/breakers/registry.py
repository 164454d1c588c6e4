"""The breakers of a process: may I call now, what came of it, and what do people do about it.

A flush asks once with `admit` and reports once with `settle`; a single call asks with `allow` and reports
with `on_success`, `on_failure` or `on_neutral`. Nothing is written while calls succeed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from datetime import datetime, timedelta
from typing import Any, Self

from sqlalchemy.orm import Session

from effaced.audit.notes import NoteRef
from effaced.breakers import admission as rules
from effaced.breakers import machine, operations
from effaced.breakers.admission import Hold, Verdict
from effaced.breakers.admitted import (
    ONE_SUCCESS,
    Admission,
    KnownState,
    Permit,
    is_healthy,
    is_unrestricted,
    known_state_of,
    names_of,
    none_failed,
)
from effaced.breakers.cooldowns import CooldownStore
from effaced.breakers.listeners import BreakerListener, Notifier
from effaced.breakers.model import (
    BreakerOpenError,
    BreakerRole,
    BreakerState,
    CircuitBreakerStateData,
    StoreUnavailable,
    Transition,
    host_name,
    require_name,
)
from effaced.breakers.outcomes import NEUTRAL, SUCCESS, Outcome, OutcomeKind, kind_of, wait_of
from effaced.breakers.policies_in_force import PoliciesInForce
from effaced.breakers.policy import DEFAULTS, BreakerPolicies, BreakerPolicy, CallLimits, Overrides
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.breakers.stores.base import BreakerStore, new_row
from effaced.core import clock
from effaced.core.arguments import checked, require_type
from effaced.core.errors import Problem, Refused
from effaced.core.log import get_logger
from effaced.model import FailureKind

_log = get_logger(__name__)
STORE_UNAVAILABLE = "store_unavailable"
STORE_RETRY = timedelta(seconds=5)
_MOST_CACHED = 4_096


class BreakerRegistry:
    """One per process. `overrides` returns policy fields changed at run time, `limits` the call limits.

    Both are asked every few seconds.
    """

    @checked
    def __init__(
        self,
        store: BreakerStore,
        policies: BreakerPolicies | None = None,
        listeners: Sequence[BreakerListener] = (),
        on_transition: Callable[[Transition], None] | None = None,
        overrides: Callable[[], Overrides] | None = None,
        *,
        limits: Callable[[], Mapping[str, CallLimits]] | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.store = store
        self._policies = PoliciesInForce(policies or BreakerPolicies(), overrides, limits)
        self._notifier = Notifier(listeners, on_transition)
        self._jitter = jitter
        self._cached: dict[tuple[str | None, str | None, BreakerRole, int], Admission] = {}
        self._known: dict[str, CircuitBreakerStateData] = {}

    @property
    def repository(self) -> CircuitBreakerStateRepository:
        """The same breakers by the verbs of CircuitBreakerStateRepository."""
        return CircuitBreakerStateRepository(
            self.store, policy=self.policy, on_transitions=self._notifier.announce_transitions
        )

    @property
    def cooldowns(self) -> CooldownStore:
        """The cooldowns of the same breakers, by the verbs of CooldownStore."""
        return CooldownStore(
            self.store, policy=self.policy, on_transitions=self._notifier.announce_transitions
        )

    def within(self, session: Session) -> Self:
        """The same registry in the caller's transaction, as far as the store can."""
        other = copy(self)
        other.store = self.store.within(session)
        return other

    # --- policies ---

    def policy(self, service_name: str, role: BreakerRole = BreakerRole.ERASE) -> BreakerPolicy:
        """The policy in force."""
        return self._policies.named(service_name, role)

    @checked
    def update_host_policy(self, host: str, **fields: Any) -> BreakerPolicy:
        """Change a host's policy in this process. Its breaker keeps its state."""
        return self.update_policy(host_name(host), **fields)

    @checked
    def update_policy(self, service_name: str, **fields: Any) -> BreakerPolicy:
        """Change the policy of a breaker, or `defaults`, in this process."""
        name = DEFAULTS if service_name == DEFAULTS else require_name(service_name)
        return self._policies.update(name, fields)

    def refresh_policies(self) -> None:
        """Read what was changed at run time again, before the next call."""
        self._policies.refresh_soon()

    def classify(
        self,
        resolver: str | None,
        host: str | None,
        role: BreakerRole,
        status: int | None,
        failure: FailureKind | None,
        retry_after: timedelta | None = None,
    ) -> Outcome:
        """What a result says about the host and about the resolver, each by its own policy."""
        if status is None and failure is None:
            return SUCCESS
        kinds = [kind_of(status, failure, self.policy(name, role)) for name in names_of(resolver, host)]
        if OutcomeKind.SUCCESS is kinds[0] is kinds[-1]:
            return SUCCESS
        return Outcome(kinds[-1], status, retry_after, kinds[0] if kinds[0] is not kinds[-1] else None)

    # --- one call ---

    @checked
    def allow(
        self,
        host: str | None = None,
        resolver: str | None = None,
        role: BreakerRole = BreakerRole.ERASE,
    ) -> Permit:
        """Admit one call, or raise BreakerOpenError. Report each permit with one of the three below."""
        permit = self.admit(resolver, host, role)
        if permit.granted:
            return permit
        assert permit.blocked_until is not None
        raise BreakerOpenError(
            permit.service_name,
            reason=permit.reason,
            retry_at=permit.blocked_until,
            remaining=max(timedelta(0), permit.blocked_until - self.store.now()),
        )

    @checked
    def on_success(self, permit: Permit) -> None:
        self.settle(permit, ONE_SUCCESS)

    @checked
    def on_failure(
        self,
        permit: Permit,
        status: int | None = None,
        exception: BaseException | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        """The call failed. A status that a policy does not count as a failure is neutral there."""
        kinds = [
            kind_of(status, FailureKind.UNKNOWN, self.policy(hold.service_name, permit.role))
            for hold in permit.holds
        ]
        wait = None if retry_after_s is None else wait_of("retry_after_s", retry_after_s)
        self.settle(permit, (Outcome(kinds[-1], status, wait, kinds[0]),))

    @checked
    def on_neutral(self, permit: Permit) -> None:
        """The result says nothing about the system, such as an answer from a cache."""
        self.settle(permit, (NEUTRAL,))

    # --- a flush ---

    def admit(
        self,
        resolver: str | None,
        host: str | None = None,
        role: BreakerRole = BreakerRole.ERASE,
        most: int = 1,
    ) -> Admission:
        """Admit up to `most` calls: one read while closed, one atomic change for trials."""
        revision = self.store.revision()
        if revision is not None and not self._notifier.listeners:
            cached = self._cached.get((resolver, host, role, most))
            if cached is not None and cached.revision == revision:
                return cached
        names = names_of(resolver, host)
        _require_calls(role, most)
        try:
            rows = self._load(names)
            if all(map(is_unrestricted, rows)):
                return self._admit_all(resolver, host, role, most, revision, rows)
            rows = self._restart_waits(rows)
            policies = [self.policy(name, role) for name in names]
            verdict = rules.admit(rows, policies, role, self.store.now(), most)
            if verdict.trial:
                verdict = operations.start_trials(self.store, names, policies, role, most)
                self._remember(verdict.rows)
        except StoreUnavailable:
            until = clock.now() + STORE_RETRY
            verdict = Verdict(0, block=rules.Block(names[-1], STORE_UNAVAILABLE, until))
        if verdict.block is not None:
            block = verdict.block
            return Admission(0, role, False, block.until, block.reason, block.service_name)
        self._notifier.announce_transitions(verdict.transitions)
        self._notifier.announce_admitted(names, role, verdict.granted)
        return Admission(verdict.granted, role, verdict.trial, holds=verdict.holds)

    def glance(
        self, resolver: str, host: str | None, role: BreakerRole, most: int, session: Session
    ) -> Admission | None:
        """Admit with one read in the caller's transaction; None if any breaker restricts calls."""
        try:
            rows = self.within(session)._load(names_of(resolver, host))
        except StoreUnavailable:
            return None
        if not all(map(is_unrestricted, rows)):
            return None
        return self._admit_all(resolver, host, role, most, None, rows)

    def _admit_all(
        self,
        resolver: str | None,
        host: str | None,
        role: BreakerRole,
        most: int,
        revision: int | None,
        rows: Sequence[CircuitBreakerStateData],
    ) -> Admission:
        """No breaker restricts calls. While the store's revision stays, the answer stays."""
        holds = tuple([Hold(row.service_name, row.generation) for row in rows])
        healthy = all(map(is_healthy, rows))
        admission = Admission(
            most, role, holds=holds, revision=revision if healthy else None, healthy=healthy
        )
        if healthy and revision is not None:
            if len(self._cached) >= _MOST_CACHED:
                self._cached.clear()
            self._cached[resolver, host, role, most] = admission
        if self._notifier.listeners:
            self._notifier.announce_admitted([hold.service_name for hold in holds], role, most)
        return admission

    def settle(
        self, admission: Admission, outcomes: Sequence[Outcome], unused: int = 0, *, trusting: bool = False
    ) -> tuple[Transition, ...]:
        """Report the outcomes of admitted calls, and how many were not made. One atomic change, or none.

        May be reported in parts. Returns the transitions that this made. `trusting`: if all breakers were
        healthy at admission and no call failed, nothing is read again; failures that other processes had
        meanwhile are seen by the next admission.
        """
        if trusting and admission.healthy and none_failed(outcomes):
            self._notifier.announce_outcomes(
                [hold.service_name for hold in admission.holds], admission.role, outcomes
            )
            return ()
        known = admission.revision is not None and not self._notifier.listeners and none_failed(outcomes)
        if known and admission.revision == self.store.revision():
            return ()
        names = [hold.service_name for hold in admission.holds]
        if not names or not (outcomes or unused):
            return ()
        made: tuple[Transition, ...] = ()
        try:
            if not self._nothing_to_write(names, admission, outcomes):
                made = self._record(names, admission, outcomes, unused)
        except StoreUnavailable as error:
            _log.warning("breaker_outcomes_not_counted", breakers=names, error=error.error)
            self._free_slots(names, admission, len(outcomes) + unused)
        self._notifier.announce_outcomes(names, admission.role, outcomes)
        self._notifier.announce_transitions(made)
        return made

    def _free_slots(self, names: Sequence[str], admission: Admission, ended: int) -> None:
        """The outcomes of trials could not be counted, but the next trials may start."""
        if any(hold.slots for hold in admission.holds):
            with suppress(StoreUnavailable):
                self._record(names, admission, (), ended)

    def _nothing_to_write(
        self, names: Sequence[str], admission: Admission, outcomes: Sequence[Outcome]
    ) -> bool:
        """The usual case: no trial, no failure, and all breakers are still healthy."""
        if any(hold.slots for hold in admission.holds) or not none_failed(outcomes):
            return False
        return all(map(is_healthy, self._load(names)))

    def _record(
        self, names: Sequence[str], admission: Admission, outcomes: Sequence[Outcome], unused: int
    ) -> tuple[Transition, ...]:
        policies = [self.policy(name, admission.role) for name in names]
        results = operations.Results(admission.holds, policies, outcomes, unused, self._jitter())
        if not any(hold.slots for hold in admission.holds):
            before = {row.service_name: row for row in self._load(names)}
            after = results.applied(before, self.store.now()).rows
            if all(row == before[row.service_name] for row in after):
                return ()  # too late, or under a pin
        rows, made = operations.record_results(self.store, results)
        self._remember(rows)
        return made

    # --- reading ---

    def blocked(
        self, pairs: Iterable[tuple[str, str | None]], role: BreakerRole | None = None
    ) -> dict[str, datetime]:
        """Which of these resolvers, given with their hosts, must not be called, and until when: one read.

        With a role, also those whose half-open budget for it is used up.
        """
        pairs = list(pairs)
        wanted = sorted({name for resolver, host in pairs for name in names_of(resolver, host)})
        if not wanted:
            return {}
        try:
            rows = self._restart_waits(self._load(wanted))
        except StoreUnavailable:
            return {resolver: clock.now() + STORE_RETRY for resolver, _ in pairs}
        found = {row.service_name: row for row in rows}
        now, answer = self.store.now(), {}
        for resolver, host in pairs:
            names = names_of(resolver, host)
            block = rules.blocked([found[name] for name in names], now)
            if block is not None:
                answer[resolver] = block.until
            elif role is not None and not all(
                rules.has_room(found[name], self.policy(name, role), role, now) for name in names
            ):
                answer[resolver] = now + rules.BUDGET_RETRY
        return answer

    def retry_at(self, resolver: str | None, host: str | None = None) -> datetime | None:
        """When a call may be tried; None if now."""
        rows = self._restart_waits(self._load(names_of(resolver, host)))
        block = rules.blocked(rows, self.store.now())
        return block.until if block else None

    def current_state(self, host: str | None = None, resolver: str | None = None) -> BreakerState:
        """The more restrictive state of the two, pins included."""
        return known_state_of(self._load(names_of(resolver, host)), None, self.store.now()).state

    def cooldown_remaining_ms(self, host: str | None = None, resolver: str | None = None) -> int | None:
        """How long a vendor still asks not to be called; None if it does not."""
        now = self.store.now()
        rows = self._restart_waits(self._load(names_of(resolver, host)))
        ends = [row.cooldown_until for row in rows if row.cooldown_until is not None and row.is_cooling(now)]
        return int((max(ends) - now).total_seconds() * 1000) if ends else None

    def last_known(self, resolver: str | None, host: str | None = None) -> KnownState:
        """What this process last knew, without a read."""
        now, rows = self.store.now(), self._last(names_of(resolver, host))
        return known_state_of(rows, rules.blocked(rows, now), now)

    def recheck(self, admission: Admission) -> KnownState:
        """What this process knows about calls admitted earlier: a breaker that opened since denies them."""
        now, rows = self.store.now(), self._last([hold.service_name for hold in admission.holds])
        block = rules.blocked(rows, now)
        for hold, row in zip(admission.holds, rows, strict=True):
            moved = hold.generation is not None and row.generation > hold.generation
            if block is None and moved and rules.effective_state(row, now) is not BreakerState.CLOSED:
                block = rules.Block(row.service_name, rules.BUDGET, now + rules.BUDGET_RETRY)
        return known_state_of(rows, block, now)

    def _load(self, names: Collection[str]) -> list[CircuitBreakerStateData]:
        found = self.store.load(names)
        self._known.update(found)
        return [found.get(name) or new_row(name) for name in names]

    def _last(self, names: Sequence[str]) -> list[CircuitBreakerStateData]:
        return [self._known.get(name) or new_row(name) for name in names]

    def _remember(self, rows: Iterable[CircuitBreakerStateData]) -> None:
        self._known.update((row.service_name, row) for row in rows)

    def _restart_waits(self, rows: list[CircuitBreakerStateData]) -> list[CircuitBreakerStateData]:
        """The same rows, unless the clock was set back: then their waits keep their length."""
        now = self.store.now()
        if all(is_unrestricted(row) or machine.after_clock_set_back(row, now) is row for row in rows):
            return rows
        names = [row.service_name for row in rows]
        operations.restart_waits(self.store, names)
        return self._load(names)

    # --- manual control; `name` is `resolver:crm` or `host:api.example` ---

    @checked
    def force_open(
        self,
        name: str,
        *,
        actor: str,
        seconds: float | None = None,
        until: datetime | None = None,
        note: NoteRef | None = None,
        session: Session | None = None,
    ) -> Transition:
        """Let no call through for a while. With a session: in its transaction, announced after its commit."""
        return self._pin(BreakerState.OPEN, name, (seconds, until), actor, note, session)

    @checked
    def force_close(
        self,
        name: str,
        *,
        actor: str,
        seconds: float | None = None,
        until: datetime | None = None,
        note: NoteRef | None = None,
        session: Session | None = None,
    ) -> Transition:
        """Let every call through for a while, whatever the outcomes."""
        return self._pin(BreakerState.CLOSED, name, (seconds, until), actor, note, session)

    @checked
    def unpin(
        self, name: str, *, actor: str, note: NoteRef | None = None, session: Session | None = None
    ) -> Transition:
        """Remove the pin and keep the state. From open, the next call is a trial. Conflict if not pinned."""
        name, store = require_name(name), self._store_for(session)
        return self._announce(operations.unpin(store, name, actor=actor, note=note)[1], session)

    @checked
    def reset(
        self, name: str, *, actor: str, note: NoteRef | None = None, session: Session | None = None
    ) -> Transition:
        """Close it and clear counters, pin and cooldown."""
        name, store = require_name(name), self._store_for(session)
        return self._announce(operations.reset(store, name, actor=actor, note=note)[1], session)

    @checked
    def delete(
        self, name: str, *, actor: str, note: NoteRef | None = None, session: Session | None = None
    ) -> Transition | None:
        """Delete it, in the memory of every process too; None if it does not exist."""
        name, store = require_name(name), self._store_for(session)
        deleted = operations.delete(store, name, actor=actor, note=note)
        return self._announce(deleted[1], session) if deleted else None

    def _pin(
        self,
        state: BreakerState,
        name: str,
        end: tuple[float | None, datetime | None],
        actor: str,
        note: NoteRef | None,
        session: Session | None,
    ) -> Transition:
        name, store = require_name(name), self._store_for(session)
        until = operations.pin_until(self.store.now(), *end)
        return self._announce(
            operations.pin(store, name, state, until=until, actor=actor, note=note)[1], session
        )

    def _store_for(self, session: Session | None) -> BreakerStore:
        return self.store if session is None else self.store.within(session)

    def _announce(self, made: Transition, session: Session | None) -> Transition:
        self._notifier.announce_transitions([made], session)
        return made


def _require_calls(role: BreakerRole, most: int) -> None:
    require_type("role", role, BreakerRole)
    require_type("most", most, int)
    if most < 0:
        raise Refused("most must be at least 0.", problems=[Problem("most", "must be at least 0")])
