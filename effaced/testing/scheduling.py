"""What resolvers must do whose systems let people go later, or not at all."""

from __future__ import annotations

import re
from datetime import datetime
from typing import ClassVar

from effaced.model import SubjectRef, new_id
from effaced.resolvers.protocols import AlreadyAbsent, Retained, RetentionOnlyResolver, Scheduled
from effaced.testing.calls import Calls
from effaced.testing.conformance import ResolverConformance


class SchedulingConformance(ResolverConformance):
    """For resolvers that answer `Scheduled`."""

    def pass_horizon(self, ref: SubjectRef, until: datetime) -> None:
        raise NotImplementedError("pass_horizon: let the moment come at which the system lets the person go")

    def test_answers_scheduled_as_long_as_the_person_is_there(self, calls: Calls) -> None:
        ref, key = self.add_person(), new_id()
        answers = [calls.erase(ref, key), calls.erase(ref, key), calls.erase(ref)]
        assert self.is_present(ref), "the system let the person go before the horizon"
        assert [type(each) for each in answers] == [Scheduled] * 3

    def test_answers_already_absent_after_the_horizon(self, calls: Calls) -> None:
        ref = self.add_person()
        answer = self.erase_to_the_end(calls, ref)
        assert not self.is_present(ref), "pass_horizon() did not let the system's moment come"
        assert isinstance(answer, AlreadyAbsent)

    def test_the_horizon_has_a_time_zone(self, calls: Calls) -> None:
        answer = calls.erase(self.add_person())
        assert isinstance(answer, Scheduled)
        assert answer.until.utcoffset() is not None, "a moment without a time zone is no moment"


class RetentionOnlyConformance(SchedulingConformance):
    """For resolvers with `schedule_erasure`, whose systems can't delete on demand."""

    covers: ClassVar[type | None] = RetentionOnlyResolver
    answers: ClassVar[tuple[type, ...]] = (Scheduled, AlreadyAbsent)


class RetainingConformance(ResolverConformance):
    """For resolvers that answer `Retained` for some people."""

    def add_retained_person(self) -> SubjectRef:
        """Put somebody into the system whom it must keep."""
        raise NotImplementedError("add_retained_person: put somebody there whom the system must keep")

    def test_somebody_who_must_be_kept_is_retained_on_a_basis_that_is_a_code(self, calls: Calls) -> None:
        answer = calls.erase(self.add_retained_person())
        assert isinstance(answer, Retained)
        assert re.fullmatch(r"[A-Za-z0-9_.:\-]{1,64}", answer.basis), "a short code, never free text"
