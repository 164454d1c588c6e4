"""Breakers between the runner and the systems: who may be called, and what came of it.

Asked once per claim and told once per flush, never inside the settle's transaction. Without breakers
everybody may be called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from effaced.breakers.model import BreakerOpenError, BreakerRole, resolver_name
from effaced.breakers.outcomes import Outcome, classify
from effaced.breakers.registry import Admission, BreakerRegistry
from effaced.model import OutboxOperation
from effaced.resolvers.registry import ResolverRegistry
from effaced.saga.call import LookedBack
from effaced.saga.result import Result

_ROLES = {OutboxOperation.ERASE: BreakerRole.ERASE, OutboxOperation.RECTIFY: BreakerRole.RECTIFY}


class Gate:
    """The breakers of all resolvers, as one runner asks them."""

    def __init__(self, breakers: BreakerRegistry | None, registry: ResolverRegistry) -> None:
        self._breakers = breakers
        self._registry = registry

    def open_for(self, resolvers: Collection[str]) -> set[str]:
        """Those of the resolvers that no breaker blocks: one look for all."""
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
        """The same with one look in the claim's own transaction; None if it is not that simple."""
        if self._breakers is None:
            return Admission(most, BreakerRole.ERASE)
        return self._breakers.glance(resolver, self._host(resolver), BreakerRole.ERASE, most, session)

    def give_back(self, admission: Admission, unused: int) -> None:
        """So many of the admitted calls are not made."""
        if self._breakers is not None and admission.trial and unused:
            self._breakers.settle(admission, (), unused)

    def denial(self, admission: Admission) -> BreakerOpenError | None:
        """A last look before calls that were admitted a while ago, without asking anybody."""
        if self._breakers is None or not admission.holds:
            return None
        look = self._breakers.last_look(admission)
        if look.blocked_until is None:
            return None
        return BreakerOpenError(
            admission.holds[-1].service_name,
            reason=look.reason,
            retry_at=look.blocked_until,
            remaining=look.blocked_until - self._breakers.repository.now(),
        )

    def tell(self, results: Sequence[Result]) -> None:
        """What calls came to. Those that were denied at the last moment were not made."""
        if self._breakers is None:
            return
        together = defaultdict[tuple[Admission, BreakerRole], list[Result]](list)
        for each in results:
            if each.admission is not None:
                together[each.admission, _ROLES[each.entry.operation]].append(each)
        for (admission, role), alike in together.items():
            outcomes = [self._outcome(each, role) for each in alike]
            made = [each for each in outcomes if each is not None]
            told = admission if admission.role is role else admission._replace(role=role)
            self._breakers.settle(told, made, len(outcomes) - len(made), trusting=True)

    def tell_read_back(self, resolver: str, admission: Admission, looked: LookedBack | None) -> None:
        """What a later read-back came to; None if it was not made."""
        if self._breakers is None:
            return
        if looked is None:
            self.give_back(admission, 1)
            return
        policy = self._breakers.policy(resolver_name(resolver), BreakerRole.VERIFY)
        status = getattr(looked.error, "status_code", None)
        self._breakers.settle(admission, [classify(status, looked.error, policy)])

    def retry_at(self, resolver: str) -> datetime | None:
        """When a resolver whose trial has failed may be tried again; None if that is not known."""
        if self._breakers is None:
            return None
        return self._breakers.last_known(resolver, self._host(resolver)).blocked_until

    def _outcome(self, result: Result, role: BreakerRole) -> Outcome | None:
        assert self._breakers is not None
        if isinstance(result.error, BreakerOpenError):
            return None
        policy = self._breakers.policy(resolver_name(result.entry.resolver), role)
        cached = bool(getattr(result.answer, "cached", False))
        return classify(result.status_code, result.error, policy, cached)

    def _host(self, resolver: str) -> str | None:
        return self._registry.get(resolver).host if resolver in self._registry else None
