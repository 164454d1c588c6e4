"""What a resolver that corrects values must do besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from effaced.core.errors import ResolverError
from effaced.model import Correction, CorrectionValue, SubjectRef, new_id
from effaced.resolvers.protocols import Rectified, RectifyingResolver
from effaced.testing.calls import Calls
from effaced.testing.conformance import ResolverConformance, Trouble, any_trouble, may_pass, raised_by
from effaced.testing.leaks import Listener, places_in, shows


class RectifyingConformance(ResolverConformance):
    """For resolvers with `rectify_subject`."""

    covers: ClassVar[type | None] = RectifyingResolver

    def corrections(self) -> Sequence[Correction]:
        """Corrections to make: values that nobody has whom add_person() puts there."""
        raise NotImplementedError("corrections: return Corrections for some of the fields the system has")

    def values_of(self, ref: SubjectRef) -> Mapping[str, CorrectionValue]:
        """What the system holds about the person, by column; more columns than are corrected."""
        raise NotImplementedError("values_of: return what the system holds about the person, by column")

    def personal(self, ref: SubjectRef) -> list[str]:
        """What no exception and no log may show of a correction."""
        return [ref.value, *(str(each.value) for each in self.corrections() if each.value)]

    def test_correcting_applies_exactly_the_corrections(self, calls: Calls) -> None:
        ref = self.add_person()
        before, corrected = (
            dict(self.values_of(ref)),
            {each.column: each.value for each in self.corrections()},
        )
        assert before.keys() > corrected.keys(), "values_of() must have what is corrected, and more"
        assert before != before | corrected, "corrections() must change something"
        calls.rectify(ref, self.corrections())
        assert dict(self.values_of(ref)) == before | corrected

    def test_correcting_one_person_leaves_the_others(self, calls: Calls) -> None:
        ref, other = self.add_person(), self.add_person()
        before = dict(self.values_of(other))
        calls.rectify(ref, self.corrections())
        assert dict(self.values_of(other)) == before

    def test_correcting_is_answered_with_rectified(self, calls: Calls) -> None:
        assert isinstance(calls.rectify(self.add_person(), self.corrections()), Rectified)

    def test_correcting_again_changes_nothing_more(self, calls: Calls) -> None:
        ref, key = self.add_person(), new_id()
        calls.rectify(ref, self.corrections(), key)
        once = dict(self.values_of(ref))
        again = [calls.rectify(ref, self.corrections(), key), calls.rectify(ref, self.corrections())]
        assert dict(self.values_of(ref)) == once
        assert [type(each) for each in again] == [Rectified, Rectified]

    def test_correcting_somebody_who_is_gone_brings_nobody_back(self, calls: Calls) -> None:
        ref = self.add_person()
        self.erase_to_the_end(calls, ref)
        raised_by(calls.rectify, ref, self.corrections())
        assert not self.is_present(ref)

    def test_the_key_of_a_correction_reaches_the_system(self, calls: Calls) -> None:
        key = new_id()
        calls.rectify(self.add_person(), self.corrections(), key)
        assert str(key) in {str(each) for each in self.keys_received()}

    @may_pass
    def test_trouble_with_a_correction_that_may_pass_is_raised_and_is_no_resolver_error(
        self, calls: Calls, trouble: Trouble
    ) -> None:
        with self.trouble(trouble) as ref:
            error = raised_by(calls.rectify, ref, self.corrections())
        assert error is not None, "the call could not be made, and the resolver gave an answer"
        assert not isinstance(error, ResolverError), "ResolverError is permanent: the entry is abandoned"

    def test_a_refused_correction_is_a_resolver_error(self, calls: Calls) -> None:
        with self.refusing() as ref:
            error = raised_by(calls.rectify, ref, self.corrections())
        assert isinstance(error, ResolverError), "trying again can't help, and it would be tried again"

    @any_trouble
    def test_exceptions_tell_neither_person_nor_correction(self, calls: Calls, trouble: Trouble) -> None:
        with self.trouble(trouble) as ref:
            error = raised_by(calls.rectify, ref, self.corrections())
        told = [place for value in self.personal(ref) if error for place in places_in(error, value)]
        assert told == [], "the reference or a corrected value is in the exception"

    def test_logs_tell_neither_person_nor_correction(self, calls: Calls, listener: Listener) -> None:
        ref = self.add_person()
        listener.forget()
        calls.rectify(ref, self.corrections())
        said = listener.heard(*self.personal(ref), ignore=self.loggers_of_the_system)
        assert said == [], "the reference or a corrected value is logged"

    @any_trouble
    def test_logs_of_trouble_tell_neither_person_nor_correction(
        self, calls: Calls, listener: Listener, trouble: Trouble
    ) -> None:
        with self.trouble(trouble) as ref:
            listener.forget()
            raised_by(calls.rectify, ref, self.corrections())
            said = listener.heard(*self.personal(ref), ignore=self.loggers_of_the_system)
        assert said == [], "the reference or a corrected value is logged"

    def test_neither_answer_nor_resolver_shows_a_correction(self) -> None:
        resolver, ref = self.make_resolver(), self.add_person()
        with self.open(resolver) as calls:
            answer = calls.rectify(ref, self.corrections())
        told = f"{resolver!r} {resolver!s} {answer!r} {answer!s}"
        assert not any(shows(told, value) for value in self.personal(ref))
