"""Resolvers with one fault each, and the tests of the suite that must find it, and no others.

Not collected by our own run: tests/contract/test_the_suite.py runs this file and reads what failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from card_conformance import (
    CardConformance,
    ExpiringCardConformance,
    RectifyingCardConformance,
    VerifyingCardConformance,
    served,
)
from card_index import CardResolver, ExpiringCardResolver, RectifyingCardResolver, VerifyingCardResolver

from effaced.core.errors import ResolverError
from effaced.model import Correction, SubjectRef
from effaced.resolvers.noop import NoopResolver
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    Answer,
    Erased,
    Rectified,
    Retained,
    Scheduled,
    TransientFailure,
    Unreachable,
)

__all__ = ["served"]

R = TypeVar("R", bound=type)
FAILS: dict[str, set[str]] = {}
EVERYBODY = SubjectRef("card", "*")


def fails(*tests: str) -> Callable[[R], R]:
    """The suite for a resolver, as a class that pytest collects, and what must fail in it."""

    def decorate(resolver: R) -> R:
        name = f"Test{resolver.__name__}"
        suite = next(suite for base, suite in SUITES.items() if issubclass(resolver, base))
        make = staticmethod(lambda url: resolver(url))
        globals()[name] = type(name, (suite,), {"resolver": make, "__module__": __name__})
        FAILS[name] = set(tests)
        return resolver

    return decorate


SUITES: dict[type, type] = {
    VerifyingCardResolver: VerifyingCardConformance,
    RectifyingCardResolver: RectifyingCardConformance,
    ExpiringCardResolver: ExpiringCardConformance,
    object: CardConformance,
}


@fails()
class Sound(CardResolver):
    pass


@fails()
class SoundVerifying(VerifyingCardResolver):
    pass


@fails()
class SoundRectifying(RectifyingCardResolver):
    pass


@fails()
class SoundExpiring(ExpiringCardResolver):
    pass


# --- erasing ---


@fails(
    "test_erasing_removes_the_person",
    "test_erasing_again_under_the_same_key_is_a_success",
    "test_erasing_again_under_another_key_is_a_success",
    "test_erasing_one_person_many_times_at_once_is_a_success",
    "test_the_key_reaches_the_system",
    "test_works_in_one_event_loop_after_another",
    "test_trouble_that_may_pass_is_raised_and_is_no_resolver_error[unreachable]",
    "test_trouble_that_may_pass_is_raised_and_is_no_resolver_error[failing]",
    "test_a_refusal_is_a_resolver_error",
    "test_the_same_call_erases_once_the_system_is_back",
    "test_somebody_who_must_be_kept_is_retained_on_a_basis_that_is_a_code",
)
class CallsNobody(NoopResolver):
    """The kind `noop`: it says that it erased."""

    def __init__(self, _: str) -> None: ...


@fails("test_its_tests_cover_what_it_can_do")
class CanMoreThanIsTested(CardResolver):
    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        return await self.call("GET", ref, None) == 404


@fails("test_erasing_one_person_leaves_the_others")
class ErasesEverybody(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        answer = await super().erase_subject(ref, key=key)
        await self.call("DELETE", EVERYBODY, key)
        return answer


@fails("test_somebody_who_is_there_is_not_already_absent")
class FindsEverybodyAbsent(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        answer = await super().erase_subject(ref, key=key)
        return AlreadyAbsent() if answer == Erased() else answer


@fails(
    "test_erasing_again_under_the_same_key_is_a_success",
    "test_erasing_one_person_many_times_at_once_is_a_success",
)
class RefusesAKeyItKnows(CardResolver):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.used: set[UUID] = set()

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        answer = await super().erase_subject(ref, key=key)
        if key in self.used:
            raise ResolverError("This key was used.", code="used")
        self.used.add(key)
        return answer


@fails(
    "test_erasing_again_under_the_same_key_is_a_success",
    "test_erasing_again_under_another_key_is_a_success",
    "test_erasing_somebody_unknown_is_a_success",
    "test_erasing_one_person_many_times_at_once_is_a_success",
)
class FailsForWhoeverIsNotThere(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        answer = await super().erase_subject(ref, key=key)
        if answer == AlreadyAbsent():
            raise ResolverError("There is no such card.", code="no_such_card")
        return answer


@fails("test_erasing_one_person_many_times_at_once_is_a_success")
class DoesOneThingAtATime(CardResolver):
    busy = False

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        try:
            return await super().erase_subject(ref, key=key)
        finally:
            self.busy = False


@fails("test_answers_are_of_the_known_types")
class AnswersNothing(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Any:
        answer = await super().erase_subject(ref, key=key)
        return None if answer == Erased() else answer


@fails("test_the_key_reaches_the_system")
class ForgetsTheKey(CardResolver):
    async def call(self, method: str, ref: SubjectRef, key: UUID | None, *values: Any) -> int:
        return await super().call(method, ref, None, *values)


# --- being driven by workers ---


@fails("test_works_in_one_event_loop_after_another")
class BelongsToItsFirstLoop(CardResolver):
    loop: asyncio.AbstractEventLoop | None = None

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        self.loop = self.loop or asyncio.get_running_loop()
        self.loop.call_soon(str)
        return await super().erase_subject(ref, key=key)


@fails("test_opens_while_the_system_is_unreachable")
class ConnectsWhenOpened(CardResolver):
    async def __aenter__(self) -> CardResolver:
        await self.call("GET", EVERYBODY, None)
        return await super().__aenter__()


# --- trouble ---


@fails("test_trouble_that_may_pass_is_raised_and_is_no_resolver_error[unreachable]")
class GivesUpWhenUnreachable(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        try:
            return await super().erase_subject(ref, key=key)
        except Unreachable:
            raise ResolverError("No answer.", code="down") from None


@fails("test_trouble_that_may_pass_is_raised_and_is_no_resolver_error[failing]")
class TakesAnErrorForAnAnswer(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        try:
            return await super().erase_subject(ref, key=key)
        except Unreachable:
            raise
        except TransientFailure:
            return AlreadyAbsent()


@fails("test_a_refusal_is_a_resolver_error")
class TriesForEver(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        try:
            return await super().erase_subject(ref, key=key)
        except ResolverError:
            raise TransientFailure("No.") from None


@fails("test_the_same_call_erases_once_the_system_is_back")
class ThinksACallMadeIsACallDone(CardResolver):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.made: set[UUID] = set()

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        if key in self.made:
            return AlreadyAbsent()
        self.made.add(key)
        return await super().erase_subject(ref, key=key)


# --- what must not be told ---


@fails("test_exceptions_do_not_tell_the_person[unreachable]")
class TellsInAMessage(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        try:
            return await super().erase_subject(ref, key=key)
        except Unreachable:
            raise Unreachable(f"No answer for {ref.value}.") from None


@fails("test_exceptions_do_not_tell_the_person[failing]")
class TellsInANote(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        try:
            return await super().erase_subject(ref, key=key)
        except Unreachable:
            raise
        except TransientFailure as error:
            error.add_note(f"while erasing {ref.value}")
            raise


@fails("test_exceptions_do_not_tell_the_person[refusing]")
class TellsInACode(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        try:
            return await super().erase_subject(ref, key=key)
        except ResolverError:
            raise ResolverError("No.", code=f"refused_{ref.value}") from None


@fails("test_exceptions_do_not_tell_the_person[unreachable]")
class TellsInACause(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        try:
            return await super().erase_subject(ref, key=key)
        except Unreachable:
            raise Unreachable("No answer.") from OSError(f"GET {self.url}?id={ref.value}")


@fails("test_exceptions_do_not_tell_the_person[unreachable]")
class TellsInAContext(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        try:
            return await super().erase_subject(ref, key=key)
        except Unreachable:
            try:
                raise KeyError(ref.value)
            except KeyError:
                raise Unreachable("No answer.")  # noqa: B904


@fails("test_exceptions_do_not_tell_the_person[unreachable]")
class TellsInAGroup(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        try:
            return await super().erase_subject(ref, key=key)
        except Unreachable:
            raise ExceptionGroup("No answer.", [KeyError(ref)]) from OSError(ref.value.replace("@", "%40"))


@fails("test_logs_do_not_tell_the_person")
class LogsWhomItErased(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        answer = await super().erase_subject(ref, key=key)
        logging.getLogger("acme").debug("erased %s", ref.value)
        return answer


@fails("test_logs_do_not_tell_the_person")
class PrintsWhomItErased(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        answer = await super().erase_subject(ref, key=key)
        print(f"erased {ref.value}")  # noqa: T201
        return answer


@fails(
    "test_logs_of_trouble_do_not_tell_the_person[unreachable]",
    "test_logs_of_trouble_do_not_tell_the_person[failing]",
    "test_logs_of_trouble_do_not_tell_the_person[refusing]",
)
class LogsTrouble(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        try:
            return await super().erase_subject(ref, key=key)
        except Exception:
            logging.getLogger("acme").exception("trouble", extra={"person": ref.value})
            raise


@fails("test_neither_answer_nor_resolver_shows_the_person")
class ShowsWhomItErased(CardResolver):
    last = ""

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        self.last = ref.value
        return await super().erase_subject(ref, key=key)

    def __repr__(self) -> str:
        return f"ShowsWhomItErased(last={self.last!r})"


# --- the read-back ---


@fails("test_the_read_back_is_false_while_the_person_is_there")
class SaysAbsent(VerifyingCardResolver):
    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        await self.call("GET", ref, None)
        return True


@fails(
    "test_the_read_back_is_true_after_erasing",
    "test_the_read_back_is_true_for_somebody_unknown",
)
class SaysPresent(VerifyingCardResolver):
    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        await self.call("GET", ref, None)
        return False


@fails("test_the_read_back_removes_nobody")
class ErasesToLook(VerifyingCardResolver):
    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        return await self.erase_subject(ref, key=key) == AlreadyAbsent()


@fails(
    "test_the_read_back_does_not_guess_in_trouble[unreachable]",
    "test_the_read_back_does_not_guess_in_trouble[failing]",
)
class GuessesAbsent(VerifyingCardResolver):
    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        try:
            return await super().verify_absent(ref, key=key)
        except TransientFailure:
            return True


@fails(
    "test_exceptions_of_the_read_back_do_not_tell_the_person[unreachable]",
    "test_exceptions_of_the_read_back_do_not_tell_the_person[failing]",
)
class TellsWhomItLookedFor(VerifyingCardResolver):
    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        try:
            return await super().verify_absent(ref, key=key)
        except TransientFailure:
            raise TransientFailure(ref.value) from None


@fails("test_logs_of_the_read_back_do_not_tell_the_person")
class LogsWhomItLookedFor(VerifyingCardResolver):
    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        logging.getLogger("acme").info("looking for %r", ref.value)
        return await super().verify_absent(ref, key=key)


# --- later, or not at all ---


@fails("test_the_horizon_has_a_time_zone")
class NamesNoTimeZone(ExpiringCardResolver):
    async def schedule_erasure(self, ref: SubjectRef, *, key: UUID) -> Scheduled | AlreadyAbsent:
        answer = await super().schedule_erasure(ref, key=key)
        return Scheduled(datetime(2026, 4, 1)) if isinstance(answer, Scheduled) else answer  # noqa: DTZ001


@fails(
    "test_answers_scheduled_as_long_as_the_person_is_there",
    "test_erasing_one_person_many_times_at_once_is_a_success",
)
class TakesAskedForGone(ExpiringCardResolver):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked: set[str] = set()

    async def schedule_erasure(self, ref: SubjectRef, *, key: UUID) -> Scheduled | AlreadyAbsent:
        answer = await super().schedule_erasure(ref, key=key)
        before, self.asked = self.asked, {*self.asked, ref.value}
        return AlreadyAbsent() if ref.value in before else answer


@fails(
    "test_answers_already_absent_after_the_horizon",
    "test_answers_are_of_the_known_types",
)
class SaysErasedAfterTheHorizon(ExpiringCardResolver):
    async def schedule_erasure(self, ref: SubjectRef, *, key: UUID) -> Any:
        answer = await super().schedule_erasure(ref, key=key)
        return Erased() if answer == AlreadyAbsent() else answer


@fails("test_somebody_who_must_be_kept_is_retained_on_a_basis_that_is_a_code")
class ExplainsAtLength(CardResolver):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        answer = await super().erase_subject(ref, key=key)
        return Retained("We have to keep her card.") if isinstance(answer, Retained) else answer


# --- corrections ---


class Corrects(RectifyingCardResolver):
    """Leaves corrections to `correct`."""

    async def rectify_subject(
        self, ref: SubjectRef, corrections: Sequence[Correction], *, key: UUID
    ) -> Rectified:
        answer = await super().rectify_subject(ref, corrections, key=key)
        await self.correct(ref, {each.column: each.value for each in corrections}, key)
        return answer

    async def correct(self, ref: SubjectRef, values: dict[str, str | None], key: UUID) -> None: ...


@fails("test_correcting_applies_exactly_the_corrections")
class CorrectsAnotherFieldToo(Corrects):
    async def correct(self, ref: SubjectRef, values: dict[str, str | None], key: UUID) -> None:
        await self.call("PATCH", ref, key, {"town": None})


@fails("test_correcting_one_person_leaves_the_others")
class CorrectsEverybody(Corrects):
    async def correct(self, ref: SubjectRef, values: dict[str, str | None], key: UUID) -> None:
        await self.call("PATCH", EVERYBODY, key, values)


@fails("test_correcting_again_changes_nothing_more")
class CountsCorrections(Corrects):
    count = 0

    async def correct(self, ref: SubjectRef, values: dict[str, str | None], key: UUID) -> None:
        self.count += 1
        if self.count > 1:
            await self.call("PATCH", ref, key, {"town": f"{self.count}"})


@fails("test_correcting_is_answered_with_rectified", "test_correcting_again_changes_nothing_more")
class AnswersCorrectionsWithErased(RectifyingCardResolver):
    async def rectify_subject(self, *arguments: Any, **options: Any) -> Any:
        await super().rectify_subject(*arguments, **options)
        return Erased()


@fails("test_correcting_somebody_who_is_gone_brings_nobody_back")
class WritesANewCard(RectifyingCardResolver):
    async def rectify_subject(
        self, ref: SubjectRef, corrections: Sequence[Correction], *, key: UUID
    ) -> Rectified:
        await self.call("PUT", ref, key, {each.column: each.value for each in corrections})
        return Rectified()


@fails("test_the_key_of_a_correction_reaches_the_system")
class ForgetsTheKeyOfACorrection(RectifyingCardResolver):
    async def rectify_subject(
        self, ref: SubjectRef, corrections: Sequence[Correction], *, key: UUID
    ) -> Rectified:
        values = {each.column: each.value for each in corrections}
        if await self.call("PATCH", ref, None, values) == 404:
            raise ResolverError("There is no such card.", code="no_such_card")
        return Rectified()


class InTrouble(RectifyingCardResolver):
    """Leaves the trouble with a correction to `turn`."""

    async def rectify_subject(
        self, ref: SubjectRef, corrections: Sequence[Correction], *, key: UUID
    ) -> Rectified:
        try:
            return await super().rectify_subject(ref, corrections, key=key)
        except Exception as error:
            raise self.turn(error, corrections) from None

    def turn(self, error: Exception, corrections: Sequence[Correction]) -> Exception:
        return error


@fails(
    "test_trouble_with_a_correction_that_may_pass_is_raised_and_is_no_resolver_error[unreachable]",
    "test_trouble_with_a_correction_that_may_pass_is_raised_and_is_no_resolver_error[failing]",
)
class GivesCorrectionsUp(InTrouble):
    def turn(self, error: Exception, corrections: Sequence[Correction]) -> Exception:
        return ResolverError("No.")


@fails("test_a_refused_correction_is_a_resolver_error")
class CorrectsForEver(InTrouble):
    def turn(self, error: Exception, corrections: Sequence[Correction]) -> Exception:
        return TransientFailure("No.")


@fails(
    "test_exceptions_tell_neither_person_nor_correction[unreachable]",
    "test_exceptions_tell_neither_person_nor_correction[failing]",
    "test_exceptions_tell_neither_person_nor_correction[refusing]",
)
class TellsTheCorrection(InTrouble):
    def turn(self, error: Exception, corrections: Sequence[Correction]) -> Exception:
        error.args = (*error.args, [each.value for each in corrections])
        return error


@fails(
    "test_logs_of_trouble_tell_neither_person_nor_correction[unreachable]",
    "test_logs_of_trouble_tell_neither_person_nor_correction[failing]",
    "test_logs_of_trouble_tell_neither_person_nor_correction[refusing]",
)
class LogsTheCorrectionInTrouble(InTrouble):
    def turn(self, error: Exception, corrections: Sequence[Correction]) -> Exception:
        logging.getLogger("acme").warning("could not write %s", corrections[0].value)
        return error


@fails("test_logs_tell_neither_person_nor_correction")
class LogsTheCorrection(Corrects):
    async def correct(self, ref: SubjectRef, values: dict[str, str | None], key: UUID) -> None:
        logging.getLogger("acme").debug("wrote %s", values)


@fails("test_neither_answer_nor_resolver_shows_a_correction")
class ShowsTheCorrection(Corrects):
    last: object = None

    async def correct(self, ref: SubjectRef, values: dict[str, str | None], key: UUID) -> None:
        self.last = values

    def __repr__(self) -> str:
        return f"ShowsTheCorrection({self.last!r})"
