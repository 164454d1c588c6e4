"""What every resolver must do, whatever else it can: the contract of effaced.resolvers.protocols as tests.

Hooks are called while no event loop runs, so they may use one. Fixtures reach them through an autouse
fixture of the author's class that puts what they need on `self`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, ClassVar, Literal, NoReturn
from uuid import UUID

import pytest

from effaced.core.errors import ResolverError
from effaced.model import SubjectRef, new_id
from effaced.resolvers.check import invent_reference
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    Erased,
    RectifyingResolver,
    Resolver,
    Retained,
    RetentionOnlyResolver,
    Scheduled,
    VerifyingResolver,
)
from effaced.testing.calls import Calls
from effaced.testing.leaks import Listener, places_in, shows

Trouble = Literal["unreachable", "failing", "refusing"]
may_pass = pytest.mark.parametrize("trouble", ["unreachable", "failing"])
any_trouble = pytest.mark.parametrize("trouble", ["unreachable", "failing", "refusing"])

_ABILITIES = (RectifyingResolver, RetentionOnlyResolver, VerifyingResolver)
_AT_ONCE = 5


class Hooks:
    """What the suite has to be told about a resolver and its system."""

    # How long one call may take; a worker goes by the `timeout` of resolvers.yaml.
    timeout: ClassVar[timedelta] = timedelta(seconds=30)
    # Loggers of the system in the test (its fake's access log, say): their lines are not the resolver's.
    loggers_of_the_system: ClassVar[Collection[str]] = ()

    def make_resolver(self) -> Resolver | RetentionOnlyResolver:
        """A resolver for the system, as its `from_config` would make it."""
        raise NotImplementedError("make_resolver: return the resolver that is to be tested")

    def add_person(self) -> SubjectRef:
        """Put somebody new into the system, another person each time, and say how it knows them."""
        raise NotImplementedError("add_person: put a new person into the system, return their SubjectRef")

    def is_present(self, ref: SubjectRef) -> bool:
        """Whether the system holds anything about the person. Look there, not through the resolver."""
        raise NotImplementedError("is_present: say whether the system holds anything about the person")

    def unknown_person(self) -> SubjectRef:
        """Somebody the system does not know, by a reference it could have."""
        known = self.add_person()
        return SubjectRef(known.kind, invent_reference(known.value))

    def unreachable(self) -> AbstractContextManager[SubjectRef]:
        """Within the block no call gets through. Gives a person who is there, to be called for."""
        self._not_applicable("unreachable")

    def failing(self) -> AbstractContextManager[SubjectRef]:
        """Within the block the system answers with trouble of its own, e.g. 500. Gives a person."""
        self._not_applicable("failing")

    def refusing(self) -> AbstractContextManager[SubjectRef]:
        """Within the block the call for the person that it gives is refused, whenever it is made."""
        self._not_applicable("refusing")

    def keys_received(self) -> Collection[str | UUID]:
        """The idempotency keys that the system has been sent so far."""
        self._not_applicable("keys_received")

    def pass_horizon(self, ref: SubjectRef, until: datetime) -> None:
        """Let the moment come at which the system lets the person's data go."""
        pytest.fail("The resolver answered Scheduled: derive its tests from SchedulingConformance.")

    def _not_applicable(self, hook: str) -> NoReturn:
        pytest.skip(f"not applicable: {type(self).__name__} has no {hook}()")


class ResolverConformance(Hooks):
    """The tests of every resolver. Each ability beyond erasing has a class of its own to derive from."""

    # The protocol whose presence a class of tests goes with.
    covers: ClassVar[type | None] = None
    answers: ClassVar[tuple[type, ...]] = (Erased, AlreadyAbsent, Scheduled, Retained)

    @pytest.fixture
    def calls(self) -> Iterator[Calls]:
        """The resolver, opened."""
        with self.open() as calls:
            yield calls

    @pytest.fixture
    def listener(self, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> Listener:
        return Listener(caplog, capsys)

    def open(self, resolver: Resolver | RetentionOnlyResolver | None = None) -> Calls:
        return Calls(self.make_resolver() if resolver is None else resolver, self.timeout)

    def trouble(self, kind: Trouble) -> AbstractContextManager[SubjectRef]:
        hooks = {"unreachable": self.unreachable, "failing": self.failing, "refusing": self.refusing}
        return hooks[kind]()

    def erase_to_the_end(self, calls: Calls, ref: SubjectRef, key: UUID | None = None) -> Any:
        """Erase as a worker would: an answer of "later" is asked again, under the same key, later."""
        key = key or new_id()
        answer = calls.erase(ref, key)
        if isinstance(answer, Scheduled):
            self.pass_horizon(ref, answer.until)
            answer = calls.resume(ref, key)
        return answer

    # --- what it can do ---

    def test_its_tests_cover_what_it_can_do(self) -> None:
        resolver = self.make_resolver()
        can = {each.__name__ for each in _ABILITIES if isinstance(resolver, each)}
        classes = [each for each in type(self).__mro__ if issubclass(each, ResolverConformance)]
        covered = {each.covers.__name__ for each in classes if each.covers is not None}
        assert isinstance(resolver, Resolver | RetentionOnlyResolver), "it can neither erase nor schedule"
        assert can == covered, "derive from the Conformance class of each protocol it has, and no other"

    # --- erasing ---

    def test_erasing_removes_the_person(self, calls: Calls) -> None:
        ref = self.add_person()
        assert self.is_present(ref), "is_present() does not see whom add_person() has put there"
        self.erase_to_the_end(calls, ref)
        assert not self.is_present(ref), "the resolver answered, and the person is still there"

    def test_erasing_one_person_leaves_the_others(self, calls: Calls) -> None:
        before, ref, after = self.add_person(), self.add_person(), self.add_person()
        assert len({before.value, ref.value, after.value}) == 3, "add_person() must give another each time"
        self.erase_to_the_end(calls, ref)
        assert self.is_present(before), "somebody else, who was there before, is gone"
        assert self.is_present(after), "somebody else, who came later, is gone"

    def test_somebody_who_is_there_is_not_already_absent(self, calls: Calls) -> None:
        answer = calls.erase(self.add_person())
        assert not isinstance(answer, AlreadyAbsent)

    def test_erasing_again_under_the_same_key_is_a_success(self, calls: Calls) -> None:
        ref, key = self.add_person(), new_id()
        self.erase_to_the_end(calls, ref, key)
        again = calls.erase(ref, key)
        assert isinstance(again, Erased | AlreadyAbsent)
        assert not self.is_present(ref)

    def test_erasing_again_under_another_key_is_a_success(self, calls: Calls) -> None:
        ref = self.add_person()
        self.erase_to_the_end(calls, ref)
        again = calls.erase(ref)
        assert isinstance(again, Erased | AlreadyAbsent)
        assert not self.is_present(ref)

    def test_erasing_somebody_unknown_is_a_success(self, calls: Calls) -> None:
        answer = calls.erase(self.unknown_person())
        assert isinstance(answer, Erased | AlreadyAbsent)

    def test_erasing_one_person_many_times_at_once_is_a_success(self, calls: Calls) -> None:
        ref, key = self.add_person(), new_id()
        # A late runner may still be calling under the key while another request calls under its own.
        keys = [key] * _AT_ONCE + [new_id() for _ in range(_AT_ONCE)]
        answers = calls.erase_at_once(ref, keys)
        assert [each for each in answers if isinstance(each, BaseException)] == []
        self.erase_to_the_end(calls, ref, key)
        assert not self.is_present(ref)

    def test_answers_are_of_the_known_types(self, calls: Calls) -> None:
        ref = self.add_person()
        came = [outcome_of(calls.erase, each) for each in (ref, ref, self.unknown_person())]
        assert [each for each in came if not isinstance(each, (*self.answers, Exception))] == []

    def test_the_key_reaches_the_system(self, calls: Calls) -> None:
        key = new_id()
        calls.erase(self.add_person(), key)
        assert str(key) in {str(each) for each in self.keys_received()}

    # --- being driven by workers ---

    def test_works_in_one_event_loop_after_another(self) -> None:
        resolver, refs = self.make_resolver(), [self.add_person(), self.add_person()]
        for ref in refs:
            with self.open(resolver) as calls:
                self.erase_to_the_end(calls, ref)
        assert [self.is_present(ref) for ref in refs] == [False, False]

    def test_opens_while_the_system_is_unreachable(self) -> None:
        """All resolvers are opened together: one that can't be would hold up every other system."""
        resolver = self.make_resolver()
        with self.unreachable(), self.open(resolver):
            pass

    # --- trouble ---

    @may_pass
    def test_trouble_that_may_pass_is_raised_and_is_no_resolver_error(
        self, calls: Calls, trouble: Trouble
    ) -> None:
        with self.trouble(trouble) as ref:
            error = raised_by(calls.erase, ref)
        assert error is not None, "the call could not be made, and the resolver gave an answer"
        assert not isinstance(error, ResolverError), "ResolverError is permanent: the entry is abandoned"

    def test_a_refusal_is_a_resolver_error(self, calls: Calls) -> None:
        with self.refusing() as ref:
            error = raised_by(calls.erase, ref)
        assert isinstance(error, ResolverError), "trying again can't help, and it would be tried again"

    def test_the_same_call_erases_once_the_system_is_back(self, calls: Calls) -> None:
        key = new_id()
        with self.unreachable() as ref:
            raised_by(calls.erase, ref, key)
        self.erase_to_the_end(calls, ref, key)
        assert not self.is_present(ref)

    # --- what must not be told ---

    @any_trouble
    def test_exceptions_do_not_tell_the_person(self, calls: Calls, trouble: Trouble) -> None:
        with self.trouble(trouble) as ref:
            error = raised_by(calls.erase, ref)
        assert (places_in(error, ref.value) if error else []) == [], "the reference is in the exception"

    def test_logs_do_not_tell_the_person(self, calls: Calls, listener: Listener) -> None:
        ref, unknown = self.add_person(), self.unknown_person()
        listener.forget()
        for each in (ref, ref, unknown):
            outcome_of(calls.erase, each)
        said = listener.heard(ref.value, unknown.value, ignore=self.loggers_of_the_system)
        assert said == [], "the reference is logged"

    @any_trouble
    def test_logs_of_trouble_do_not_tell_the_person(
        self, calls: Calls, listener: Listener, trouble: Trouble
    ) -> None:
        with self.trouble(trouble) as ref:
            listener.forget()
            raised_by(calls.erase, ref)
            said = listener.heard(ref.value, ignore=self.loggers_of_the_system)
        assert said == [], "the reference is logged"

    def test_neither_answer_nor_resolver_shows_the_person(self) -> None:
        resolver, ref = self.make_resolver(), self.add_person()
        with self.open(resolver) as calls:
            answer = calls.erase(ref)
        assert not any(shows(f"{each!r} {each!s}", ref.value) for each in (resolver, answer))


def outcome_of(call: Callable[..., Any], *arguments: Any) -> Any:
    """What the call answered, or the exception it raised."""
    try:
        return call(*arguments)
    except Exception as error:
        return error


def raised_by(call: Callable[..., Any], *arguments: Any) -> Exception | None:
    """What the call raised; None if it answered."""
    outcome = outcome_of(call, *arguments)
    return outcome if isinstance(outcome, Exception) else None
