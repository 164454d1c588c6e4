"""All breakers as callers see them: may I call now, what came of it, and what do people do about it.

A flush asks once with `admit` and tells once with `settle`; a single call asks with `allow` and tells with
`on_success`, `on_failure` or `on_neutral`. Nothing is written while a breaker is closed and all goes well.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from sqlalchemy.orm import Session

from effaced.breakers import admission as rules
from effaced.breakers.admission import Hold, Verdict
from effaced.breakers.change import Change, Rows, stamp
from effaced.breakers.ground import Admission, Permit, names_of
from effaced.breakers.looks import STORE_AGAIN, Look, Looking
from effaced.breakers.manual import Steering
from effaced.breakers.model import (
    BreakerOpenError,
    BreakerRole,
    BreakerState,
    CircuitBreakerStateData,
    StoreUnavailable,
    Transition,
)
from effaced.breakers.outcomes import NEUTRAL, SUCCESS, Outcome, OutcomeKind, classify
from effaced.core import clock
from effaced.core.log import get_logger
from effaced.model import FailureKind

__all__ = ["Admission", "BreakerRegistry", "Look", "Outcome", "Permit"]

_log = get_logger(__name__)
STORE_UNAVAILABLE = "store_unavailable"
_ONE_SUCCESS = (SUCCESS,)
_MOST_DOORS = 4_096


class BreakerRegistry(Looking, Steering):
    """One per process. `overrides` gives changed policy fields by breaker, and is asked every few seconds."""

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
            remaining=max(timedelta(0), permit.blocked_until - self.repository.now()),
        )

    def on_success(self, permit: Permit) -> None:
        self.settle(permit, _ONE_SUCCESS)

    def on_failure(
        self,
        permit: Permit,
        status: int | None = None,
        exception: BaseException | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        """It went wrong. A status that the policy does not count as failure decides nothing."""
        policy = self.policy(permit.holds[-1].service_name, permit.role)
        kind = OutcomeKind.FAILURE if status is None else classify(status, FailureKind.UNKNOWN, policy).kind
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
        edition = self.repository.edition()
        if edition is not None and not self._telling.listeners:
            door = self._doors.get((resolver, host, role, most))
            if door is not None and door.edition == edition:
                return door
        names = names_of(resolver, host)
        try:
            rows = self._load(names)
            if all(map(_quiet, rows)):
                return self._open_door(resolver, host, role, most, edition, rows)
            verdict = rules.admit(rows, self._policies_of(names, role), role, self.repository.now(), most)
            if verdict.trial:
                verdict = self._start_trials(names, role, most)
        except StoreUnavailable:
            until = clock.now() + STORE_AGAIN
            verdict = Verdict(0, block=rules.Block(names[-1], STORE_UNAVAILABLE, until))
        if verdict.block is not None:
            block = verdict.block
            return Admission(0, role, False, block.until, block.reason, block.service_name)
        self._telling.transitions(verdict.transitions)
        self._telling.admitted(names, role, verdict.granted)
        return Admission(verdict.granted, role, verdict.trial, holds=verdict.holds)

    def glance(
        self, resolver: str, host: str | None, role: BreakerRole, most: int, session: Session
    ) -> Admission | None:
        """Let calls in if all is quiet, with one look in the caller's transaction; None if more is needed."""
        try:
            rows = self.within(session)._load(names_of(resolver, host))
        except StoreUnavailable:
            return None
        if not all(map(_quiet, rows)):
            return None
        return self._open_door(resolver, host, role, most, None, rows)

    def _open_door(
        self,
        resolver: str | None,
        host: str | None,
        role: BreakerRole,
        most: int,
        edition: int | None,
        rows: Sequence[CircuitBreakerStateData],
    ) -> Admission:
        """Nothing stands in the way. As long as the store's edition holds, nothing will."""
        holds = tuple([Hold(row.service_name, row.generation) for row in rows])
        calm = all(map(_calm, rows))
        admission = Admission(most, role, holds=holds, edition=edition if calm else None, calm=calm)
        if calm and edition is not None:
            if len(self._doors) >= _MOST_DOORS:
                self._doors.clear()
            self._doors[resolver, host, role, most] = admission
        if self._telling.listeners:
            self._telling.admitted([hold.service_name for hold in holds], role, most)
        return admission

    def settle(
        self, admission: Admission, outcomes: Sequence[Outcome], unused: int = 0, *, trusting: bool = False
    ) -> tuple[Transition, ...]:
        """Tell what came of admitted calls, and how many were not made. One atomic change, or none.

        May be told in parts. Returns the transitions that this has made. `trusting`: where nothing was the
        matter when they were let in and all went well, nobody is asked again; failures that others have had
        meanwhile are met by the next admission.
        """
        if trusting and admission.calm and _all_well(outcomes):
            self._telling.outcomes([hold.service_name for hold in admission.holds], admission.role, outcomes)
            return ()
        calm = admission.edition is not None and not self._telling.listeners and _all_well(outcomes)
        if calm and admission.edition == self.repository.edition():
            return ()
        names = [hold.service_name for hold in admission.holds]
        if not names or not (outcomes or unused):
            return ()
        try:
            made = (
                ()
                if self._all_is_well(names, admission, outcomes)
                else self._record(names, admission, outcomes, unused)
            )
        except StoreUnavailable as error:
            _log.warning("breaker_outcomes_not_counted", breakers=names, error=error.error)
            made = ()
            self._free(names, admission, len(outcomes) + unused)
        self._telling.outcomes(names, admission.role, outcomes)
        self._telling.transitions(made)
        return made

    def _free(self, names: Sequence[str], admission: Admission, ended: int) -> None:
        """What trials came to could not be counted; others may take their place all the same."""
        if any(hold.slots for hold in admission.holds):
            with suppress(StoreUnavailable):
                self._record(names, admission, (), ended)

    def _all_is_well(self, names: Sequence[str], admission: Admission, outcomes: Sequence[Outcome]) -> bool:
        """Whether nothing has to be written, as nearly always."""
        if any(hold.slots for hold in admission.holds) or not _all_well(outcomes):
            return False
        return all(map(_calm, self._load(names)))

    def _record(
        self, names: Sequence[str], admission: Admission, outcomes: Sequence[Outcome], unused: int
    ) -> tuple[Transition, ...]:
        policies = self._policies_of(names, admission.role)

        def recorded(rows: Rows) -> Change[tuple[Sequence[CircuitBreakerStateData], tuple[Transition, ...]]]:
            now, chance = self.repository.now(), self._chance()
            after, made = [], list[Transition]()
            for hold, policy in zip(admission.holds, policies, strict=True):
                row = rows[hold.service_name]
                new, moves = rules.record(row, policy, hold, outcomes, now, unused=unused, chance=chance)
                after.append(stamp(row, new, now) if new != row else row)
                made += moves
            return Change(after, (after, tuple(made)), made)

        if not any(hold.slots for hold in admission.holds):
            before = {row.service_name: row for row in self._load(names)}
            if all(row == before[row.service_name] for row in recorded(before).rows):
                return ()  # it comes too late, or under a pin
        after, made = self.repository.change(names, recorded)
        self._note(after)
        return made

    def _start_trials(self, names: Sequence[str], role: BreakerRole, most: int) -> Verdict:
        policies = self._policies_of(names, role)

        def started(rows: Rows) -> Change[Verdict]:
            now = self.repository.now()
            verdict = rules.admit([rows[name] for name in names], policies, role, now, most)
            after = [stamp(rows[row.service_name], row, now) for row in verdict.rows]
            return Change(after, verdict, verdict.transitions)

        verdict = self.repository.change(names, started)
        self._note(verdict.rows)
        return verdict


def _all_well(outcomes: Sequence[Outcome]) -> bool:
    if outcomes is _ONE_SUCCESS:
        return True
    return all(outcome.kind is not OutcomeKind.FAILURE for outcome in outcomes)


def _quiet(row: CircuitBreakerStateData) -> bool:
    return row.state is BreakerState.CLOSED and row.pinned is None and row.cooldown_until is None


def _calm(row: CircuitBreakerStateData) -> bool:
    return row.state is BreakerState.CLOSED and row.failure_count == 0 and not row.slots
