"""What a resolver with a read-back must do besides."""

from __future__ import annotations

from typing import ClassVar

from effaced.core.errors import ResolverError
from effaced.resolvers.protocols import VerifyingResolver
from effaced.testing.calls import Calls
from effaced.testing.conformance import ResolverConformance, Trouble, may_pass, raised_by
from effaced.testing.leaks import Listener, places_in


class VerifyingConformance(ResolverConformance):
    """For resolvers with `verify_absent`."""

    covers: ClassVar[type | None] = VerifyingResolver

    def test_the_read_back_is_false_while_the_person_is_there(self, calls: Calls) -> None:
        assert calls.verify(self.add_person()) is False

    def test_the_read_back_is_true_after_erasing(self, calls: Calls) -> None:
        ref = self.add_person()
        self.erase_to_the_end(calls, ref)
        assert calls.verify(ref) is True

    def test_the_read_back_is_true_for_somebody_unknown(self, calls: Calls) -> None:
        assert calls.verify(self.unknown_person()) is True

    def test_the_read_back_removes_nobody(self, calls: Calls) -> None:
        ref = self.add_person()
        raised_by(calls.verify, ref)
        assert self.is_present(ref)

    @may_pass
    def test_the_read_back_does_not_guess_in_trouble(self, calls: Calls, trouble: Trouble) -> None:
        with self.trouble(trouble) as ref:
            error = raised_by(calls.verify, ref)
        assert error is not None, "nobody could look, and the resolver says whether the person is there"
        assert not isinstance(error, ResolverError), "ResolverError is permanent, and this may pass"

    @may_pass
    def test_exceptions_of_the_read_back_do_not_tell_the_person(self, calls: Calls, trouble: Trouble) -> None:
        with self.trouble(trouble) as ref:
            error = raised_by(calls.verify, ref)
        assert (places_in(error, ref.value) if error else []) == [], "the reference is in the exception"

    def test_logs_of_the_read_back_do_not_tell_the_person(self, calls: Calls, listener: Listener) -> None:
        ref = self.add_person()
        listener.forget()
        calls.verify(ref)
        said = listener.heard(ref.value, ignore=self.loggers_of_the_system)
        assert said == [], "the reference is logged"
