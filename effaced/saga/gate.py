"""Circuit breakers between the runner and the systems: who may be called, and reporting the results.

They are asked once per claim and get results once per flush, never inside the settle's transaction. Without
breakers every system may be called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from effaced.breakers.admitted import Admission
from effaced.breakers.model import BreakerOpenError, BreakerRole
from effaced.breakers.outcomes import NEUTRAL, Outcome, combined
from effaced.breakers.registry import BreakerRegistry
from effaced.core.log import get_logger
from effaced.model import FailureKind, OutboxOperation
from effaced.resolvers.registry import ResolverRegistry
from effaced.saga.answers import CallFailure
from effaced.saga.result import ReadBack, Result

_log = get_logger(__name__)
_ROLES = {OutboxOperation.ERASE: BreakerRole.ERASE, OutboxOperation.RECTIFY: BreakerRole.RECTIFY}


class Gate:
    """The breakers of all resolvers, as one runner asks them."""

    def __init__(self, breakers: BreakerRegistry | None, registry: ResolverRegistry) -> None:
        self._breakers = breakers
        self._registry = registry

    def open_for(self, resolvers: Collection[str]) -> set[str]:
        """Those of the resolvers that no breaker blocks: one query for all."""
        if self._breakers is None or not resolvers:
            return set(resolvers)
        held = self._breakers.blocked([(name, self._host(name)) for name in sorted(resolvers)])
        return set(resolvers) - held.keys()

    def admit(self, resolver: str, most: int, role: BreakerRole = BreakerRole.ERASE) -> Admission:
        """How many calls may be made now. On trial they are of that role; else of any."""
        if self._breakers is None:
            return Admission(most, role)
        return self._breakers.admit(resolver, self._host(resolver), role, most)

    def glance(self, session: Session, resolver: str, most: int) -> Admission | None:
        """The same with one query in the claim's own transaction; None if it is not that simple."""
        if self._breakers is None:
            return Admission(most, BreakerRole.ERASE)
        return self._breakers.glance(resolver, self._host(resolver), BreakerRole.ERASE, most, session)

    def give_back(self, admission: Admission, unused: int) -> None:
        """Return the admissions of calls that are not made."""
        if self._breakers is not None and admission.trial and unused:
            self._breakers.settle(admission, (), unused)

    def denial(self, admission: Admission) -> CallFailure | None:
        """Why a call that was admitted a while ago must not be made now, as far as this process knows."""
        if self._breakers is None or not admission.holds:
            return None
        known = self._breakers.recheck(admission)
        if known.blocked_until is None:
            return None
        name = BreakerOpenError.__name__
        return CallFailure(FailureKind.BREAKER_OPEN, name, code=known.reason, retry_at=known.blocked_until)

    def report(self, results: Sequence[Result]) -> None:
        """Report the results of calls and their read-backs. Calls denied at the last moment were not made.

        Never raises: results have to be written down whether or not the breakers could be told.
        """
        if self._breakers is None:
            return
        # In this order: a read-back is newer than the call before it.
        outcomes = defaultdict[tuple[Admission, BreakerRole], list[Outcome | None]](list)
        for each in results:
            if each.admission is None:
                continue
            role, read_back = _ROLES[each.entry.operation], self._outcome_of_read_back(each)
            call = self._outcome(each, role)
            if each.trial:  # call and read-back are one trial
                outcomes[each.admission, role].append(combined(call, read_back))
                continue
            outcomes[each.admission, role].append(call)
            if read_back is not None:
                outcomes[each.admission, BreakerRole.VERIFY].append(read_back)
        for (admission, role), alike in outcomes.items():
            made = [each for each in alike if each is not None]
            reported = admission if admission.role is role else admission._replace(role=role)
            self._settle(reported, made, len(alike) - len(made))

    def report_read_back(self, resolver: str, admission: Admission, read_back: ReadBack | None) -> None:
        """Report a later read-back; None if it was not made. Never raises."""
        if self._breakers is None or not admission.granted:
            return
        try:
            made = (
                [] if read_back is None else [self._classify(resolver, BreakerRole.VERIFY, read_back.failure)]
            )
        except Exception as error:
            _log.error("breakers_not_told", outcomes=1, error=type(error).__name__)
            made = []
        if made or admission.trial:
            self._settle(admission, made, 1 - len(made))

    def _settle(self, admission: Admission, outcomes: Sequence[Outcome], unused: int) -> None:
        assert self._breakers is not None
        try:
            self._breakers.settle(admission, outcomes, unused, trusting=True)
        except Exception as error:
            _log.error("breakers_not_told", outcomes=len(outcomes), error=type(error).__name__)

    def retry_at(self, resolver: str) -> datetime | None:
        """When a resolver whose trial has failed may be tried again; None if that is not known."""
        if self._breakers is None:
            return None
        return self._breakers.last_known(resolver, self._host(resolver)).blocked_until

    def _outcome(self, result: Result, role: BreakerRole) -> Outcome | None:
        """None for a call that was not made."""
        if result.failure is not None and result.failure.kind is FailureKind.BREAKER_OPEN:
            return None
        if result.cached:
            return NEUTRAL
        return self._classify(result.entry.resolver, role, result.failure, result.status_code)

    def _outcome_of_read_back(self, result: Result) -> Outcome | None:
        read_back = result.read_back
        if read_back is None or not read_back.was_made:
            return None
        return self._classify(result.entry.resolver, BreakerRole.VERIFY, read_back.failure)

    def _classify(
        self, resolver: str, role: BreakerRole, failure: CallFailure | None, status: int | None = None
    ) -> Outcome:
        assert self._breakers is not None
        host = self._host(resolver)
        if failure is None:
            return self._breakers.classify(resolver, host, role, status, None)
        status = failure.status_code
        return self._breakers.classify(resolver, host, role, status, failure.kind, failure.retry_after)

    def _host(self, resolver: str) -> str | None:
        return self._registry.get(resolver).host if resolver in self._registry else None
