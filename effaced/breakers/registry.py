"""All breakers as callers see them: may I call now, what came of it, and what do people do about it.

A flush asks once with `admit` and tells once with `settle`; a single call asks with `allow` and tells with
`on_success`, `on_failure` or `on_neutral`. Nothing is written while a breaker is closed and all goes well.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session

from effaced import clock
from effaced.audit.notes import NoteRef
from effaced.breakers import admission as rules
from effaced.breakers import manual
from effaced.breakers.admission import Hold, Verdict
from effaced.breakers.change import Change, Rows, new_rows, stamp
from effaced.breakers.inforce import Overrides, PoliciesInForce
from effaced.breakers.listeners import BreakerListener, tell
from effaced.breakers.model import (
    RESTRICTION,
    BreakerOpenError,
    BreakerRole,
    BreakerState,
    CircuitBreakerStateData,
    StoreUnavailable,
    Transition,
    host_name,
    resolver_name,
)
from effaced.breakers.outcomes import NEUTRAL, SUCCESS, Outcome, OutcomeKind, classify
from effaced.breakers.policy import BreakerPolicies, BreakerPolicy
from effaced.breakers.repository import CircuitBreakerStateRepository
from effaced.log import get_logger

_log = get_logger(__name__)
STORE_UNAVAILABLE = "store_unavailable"
_STORE_AGAIN = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Admission:
    """How many calls may be made now. None of them: `reason`, `service_name` and `blocked_until` say why."""

    granted: int
    role: BreakerRole
    trial: bool = False
    blocked_until: datetime | None = None
    reason: str = ""
    service_name: str = ""
    holds: tuple[Hold, ...] = ()


Permit = Admission


@dataclass(frozen=True, slots=True)
class Look:
    """What is known without asking anybody. `blocked_until` is None if a call may be made."""

    state: BreakerState
    blocked_until: datetime | None = None
    reason: str = ""


class BreakerRegistry:
    """One per process. `overrides` gives changed policy fields by breaker, and is asked every few seconds."""

    def __init__(
        self,
        repository: CircuitBreakerStateRepository,
        policies: BreakerPolicies | None = None,
        listeners: Sequence[BreakerListener] = (),
        on_transition: Callable[[Transition], None] | None = None,
        overrides: Callable[[], Overrides] | None = None,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.repository = repository
        self._policies = PoliciesInForce(policies or BreakerPolicies(), overrides)
        self._listeners = tuple(listeners)
        self._on_transition = on_transition
        self._chance = chance
        self._known: dict[str, CircuitBreakerStateData] = {}

    # --- one call ---

    def allow(
        self,
        host: str | None = None,
        resolver: str | None = None,
        role: BreakerRole = BreakerRole.ERASE,
    ) -> Permit:
        """Let one call in, or raise BreakerOpenError. Each permit wants one of the three below."""
        permit = self.admit(resolver, host, role)
        if permit.granted:
            return permit
        assert permit.blocked_until is not None
        raise BreakerOpenError(
            permit.service_name,
            reason=permit.reason,
            retry_at=permit.blocked_until,
            remaining=max(timedelta(0), permit.blocked_until - clock.now()),
        )

    def on_success(self, permit: Permit) -> None:
        self.settle(permit, (SUCCESS,))

    def on_failure(
        self,
        permit: Permit,
        status: int | None = None,
        exception: BaseException | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        """It went wrong. A status that the policy does not count as failure decides nothing."""
        policy = self.policy(permit.holds[-1].service_name, permit.role)
        kind = OutcomeKind.FAILURE if status is None else classify(status, exception, policy).kind
        if kind is OutcomeKind.SUCCESS:
            kind = OutcomeKind.FAILURE
        wait = None if retry_after_s is None else timedelta(seconds=retry_after_s)
        self.settle(permit, (Outcome(kind, status, wait),))

    def on_neutral(self, permit: Permit) -> None:
        self.settle(permit, (NEUTRAL,))

    # --- a flush ---

    def admit(
        self,
        resolver: str | None,
        host: str | None = None,
        role: BreakerRole = BreakerRole.ERASE,
        most: int = 1,
    ) -> Admission:
        """Let up to `most` calls in: one look while closed, one atomic change for trials."""
        names = _names(resolver, host)
        try:
            rows = self._load(names)
            if all(map(_quiet, rows)):
                verdict = Verdict(most, tuple(Hold(row.service_name, row.generation) for row in rows))
            else:
                verdict = rules.admit(rows, self._policies_of(names, role), role, clock.now(), most)
                if verdict.trial:
                    verdict = self._start_trials(names, role, most)
        except StoreUnavailable:
            until = clock.now() + _STORE_AGAIN
            verdict = Verdict(0, block=rules.Block(names[-1], STORE_UNAVAILABLE, until))
        if verdict.block is not None:
            block = verdict.block
            return Admission(0, role, False, block.until, block.reason, block.service_name)
        self._tell_transitions(verdict.transitions)
        if self._listeners:
            for name in names:
                tell(self._listeners, "before_call", name, role, verdict.granted)
        return Admission(verdict.granted, role, verdict.trial, holds=verdict.holds)

    def settle(
        self, admission: Admission, outcomes: Sequence[Outcome], unused: int = 0
    ) -> tuple[Transition, ...]:
        """Tell what came of admitted calls, and how many were not made. One atomic change, or none.

        May be told in parts. Returns the transitions that this has made.
        """
        names = [hold.service_name for hold in admission.holds]
        if not names or not (outcomes or unused):
            return ()
        policies = self._policies_of(names, admission.role)
        try:
            made = self._settle(names, policies, admission, outcomes, unused)
        except StoreUnavailable as error:
            _log.warning("breaker_outcomes_not_counted", breakers=names, error=error.error)
            made = ()
        self._tell_outcomes(names, admission.role, outcomes)
        self._tell_transitions(made)
        return made

    def _settle(
        self,
        names: Sequence[str],
        policies: Sequence[BreakerPolicy],
        admission: Admission,
        outcomes: Sequence[Outcome],
        unused: int,
    ) -> tuple[Transition, ...]:
        def recorded(rows: Rows) -> Change[tuple[Sequence[CircuitBreakerStateData], tuple[Transition, ...]]]:
            now, chance = clock.now(), self._chance()
            after, made = [], list[Transition]()
            for hold, policy in zip(admission.holds, policies, strict=True):
                row = rows[hold.service_name]
                new, moves = rules.record(row, policy, hold, outcomes, now, unused=unused, chance=chance)
                after.append(stamp(row, new, now) if new != row else row)
                made += moves
            return Change(after, (after, tuple(made)), made)

        if not any(hold.slots for hold in admission.holds):
            rows = self._load(names)
            if all(map(_calm, rows)) and not any(each.kind is OutcomeKind.FAILURE for each in outcomes):
                return ()
            before = {row.service_name: row for row in rows}
            if all(row == before[row.service_name] for row in recorded(before).rows):
                return ()
        after, made = self.repository.change(names, recorded)
        self._note(after)
        return made

    def _start_trials(self, names: Sequence[str], role: BreakerRole, most: int) -> Verdict:
        policies = self._policies_of(names, role)

        def started(rows: Rows) -> Change[Verdict]:
            now = clock.now()
            verdict = rules.admit([rows[name] for name in names], policies, role, now, most)
            after = [stamp(rows[row.service_name], row, now) for row in verdict.rows]
            return Change(after, verdict, verdict.transitions)

        verdict = self.repository.change(names, started)
        self._note(verdict.rows)
        return verdict

    # --- looking ---

    def blocked(
        self, pairs: Iterable[tuple[str, str | None]], role: BreakerRole | None = None
    ) -> dict[str, datetime]:
        """Those of the resolvers that must not be called, and until when: one load for all of them.

        With a role also those whose trial calls are all under way.
        """
        pairs = list(pairs)
        wanted = {name for resolver, host in pairs for name in _names(resolver, host)}
        if not wanted:
            return {}
        try:
            found = new_rows(sorted(wanted), self.repository.load(wanted))
        except StoreUnavailable:
            return {resolver: clock.now() + _STORE_AGAIN for resolver, _ in pairs}
        self._note(found.values())
        now, answer = clock.now(), {}
        for resolver, host in pairs:
            names = _names(resolver, host)
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
        block = rules.blocked(self._load(_names(resolver, host)), clock.now())
        return block.until if block else None

    def current_state(self, host: str | None = None, resolver: str | None = None) -> BreakerState:
        """The more restrictive state of the two, pins included."""
        return _look(self._load(_names(resolver, host)), None, clock.now()).state

    def cooldown_remaining_ms(self, host: str | None = None, resolver: str | None = None) -> int | None:
        """How long a vendor still wants to be left alone; None if it does not."""
        now = clock.now()
        ends = [
            row.cooldown_until
            for row in self._load(_names(resolver, host))
            if row.cooldown_until is not None and row.cooldown_until > now
        ]
        return int((max(ends) - now).total_seconds() * 1000) if ends else None

    def last_known(self, resolver: str | None, host: str | None = None) -> Look:
        """What this process last heard, without asking: for a last look before a call."""
        now, rows = clock.now(), self._last(_names(resolver, host))
        return _look(rows, rules.blocked(rows, now), now)

    def last_look(self, admission: Admission) -> Look:
        """The same for calls admitted a while ago: a breaker that has opened since then denies them."""
        now, rows = clock.now(), self._last([hold.service_name for hold in admission.holds])
        block = rules.blocked(rows, now)
        for hold, row in zip(admission.holds, rows, strict=True):
            moved = hold.generation is not None and row.generation > hold.generation
            if block is None and moved and rules.effective_state(row, now) is not BreakerState.CLOSED:
                block = rules.Block(row.service_name, rules.BUDGET, now + rules.LOOK_AGAIN)
        return _look(rows, block, now)

    # --- policies ---

    def policy(self, service_name: str, role: BreakerRole = BreakerRole.ERASE) -> BreakerPolicy:
        """The policy in force."""
        return self._policies.named(service_name, role)

    def update_host_policy(self, host: str, **fields: Any) -> BreakerPolicy:
        """Change a host's policy in this process. Its breaker keeps its state."""
        return self._policies.update(host_name(host), fields)

    def update_policy(self, service_name: str, **fields: Any) -> BreakerPolicy:
        return self._policies.update(service_name, fields)

    # --- people ---

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
        """Let nothing through for a while. With a session, in its transaction, and told after its commit."""
        end = manual.until_when(seconds, until)
        made = manual.pin(self._within(session), name, BreakerState.OPEN, until=end, actor=actor, note=note)
        return self._told_by(made, session)

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
        """Let everything through for a while, whatever comes of it."""
        end = manual.until_when(seconds, until)
        made = manual.pin(self._within(session), name, BreakerState.CLOSED, until=end, actor=actor, note=note)
        return self._told_by(made, session)

    def reset(
        self, name: str, *, actor: str, note: NoteRef | None = None, session: Session | None = None
    ) -> Transition:
        """Begin anew: closed, nothing counted, no pin, no cooldown."""
        return self._told_by(manual.reset(self._within(session), name, actor=actor, note=note), session)

    def _within(self, session: Session | None) -> CircuitBreakerStateRepository:
        return self.repository if session is None else self.repository.within(session)

    def _told_by(self, made: Transition, session: Session | None) -> Transition:
        if session is None:
            self._tell_transitions([made])
        else:
            event.listen(session, "after_commit", lambda _: self._tell_transitions([made]), once=True)
        return made

    # --- within ---

    def _load(self, names: Collection[str]) -> list[CircuitBreakerStateData]:
        found = self.repository.load(names)
        self._known.update(found)
        return [found.get(name) or CircuitBreakerStateData(name) for name in names]

    def _last(self, names: Sequence[str]) -> list[CircuitBreakerStateData]:
        return [self._known.get(name) or CircuitBreakerStateData(name) for name in names]

    def _note(self, rows: Iterable[CircuitBreakerStateData]) -> None:
        for row in rows:
            self._known[row.service_name] = row

    def _policies_of(self, names: Sequence[str], role: BreakerRole) -> list[BreakerPolicy]:
        return [self.policy(name, role) for name in names]

    def _tell_outcomes(self, names: Sequence[str], role: BreakerRole, outcomes: Sequence[Outcome]) -> None:
        if not self._listeners:
            return
        for outcome in outcomes:
            for name in names:
                if outcome.kind is OutcomeKind.SUCCESS:
                    tell(self._listeners, "success", name, role)
                elif outcome.kind is OutcomeKind.FAILURE:
                    tell(self._listeners, "failure", name, role, outcome)

    def _tell_transitions(self, made: Sequence[Transition]) -> None:
        for each in made:
            _log.info(
                "breaker_moved",
                breaker=each.service_name,
                old=each.old.value,
                new=each.new.value,
                reason=each.reason,
            )
            tell(self._listeners, "state_change", each)
            if self._on_transition is not None:
                try:
                    self._on_transition(each)
                except Exception as error:
                    _log.warning("breaker_transition_hook_failed", error=type(error).__name__)


def _names(resolver: str | None, host: str | None) -> tuple[str, ...]:
    """Host first: that is the order of decisions."""
    names = (*([host_name(host)] if host else ()), *([resolver_name(resolver)] if resolver else ()))
    if not names:
        raise ValueError("a breaker is that of a host, of a resolver, or both")
    return names


def _look(rows: Sequence[CircuitBreakerStateData], block: rules.Block | None, now: datetime) -> Look:
    state = max((rules.effective_state(row, now) for row in rows), key=lambda each: RESTRICTION[each])
    return Look(state, block.until, block.reason) if block else Look(state)


def _quiet(row: CircuitBreakerStateData) -> bool:
    return row.state is BreakerState.CLOSED and row.pinned is None and row.cooldown_until is None


def _calm(row: CircuitBreakerStateData) -> bool:
    return row.state is BreakerState.CLOSED and row.failure_count == 0 and not row.slots
