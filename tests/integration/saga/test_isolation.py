"""Resolvers do not pay for each other, and a runner outlives whatever a resolver does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import crash_cast
import httpx
import pytest
from saga_cast import KEYRING, KEYS, House, Vendor
from sqlalchemy import event, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from waiting import PATIENCE

from effaced.audit.append import Record
from effaced.audit.sink import DatabaseAuditSink
from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.core.errors import ResolverError, Unavailable
from effaced.model import OutboxStatus, SubjectRef, Verification
from effaced.resolvers.protocols import Answer, Erased, Limits
from effaced.retries.policy import BackoffPolicy
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner
from effaced.testing import VerifyingRecordingResolver as CheckingVendor

LEASE = timedelta(minutes=5)


def statuses(house: House) -> dict[str, OutboxStatus]:
    return {each.resolver: each.status for each in house.entries()}


class Slow(Vendor):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        await asyncio.sleep(0.6)
        return Erased()


def run_in_a_process(house: House, **resolvers: str) -> int | None:
    return crash_cast.run_in_a_process(
        house.db.engine.url.render_as_string(hide_password=False), KEYS, resolvers
    )


class TestCrashes:
    def test_of_one_resolver_cost_another_nothing(self, house: House, noon: ManualClock) -> None:
        house.request(("p", "poison"), ("s", "innocent"))
        codes = []
        while statuses(house) != {"p": OutboxStatus.ABANDONED, "s": OutboxStatus.SUCCEEDED}:
            assert len(codes) < 8
            codes.append(run_in_a_process(house, p="Killer", s="Slow"))
            noon.advance(LEASE)
        assert [letter.error_code for letter in house.letters()] == ["crash_loop"]
        assert codes[:4] == [9, 9, 9, 9]  # with others, and three times alone

    def test_while_a_resolver_is_opened_count_against_its_entries(
        self, house: House, noon: ManualClock
    ) -> None:
        house.request(("p", "poison"), ("s", "innocent"))
        runs = 0
        while statuses(house) != {"p": OutboxStatus.ABANDONED, "s": OutboxStatus.SUCCEEDED}:
            assert runs < 8
            runs += 1
            run_in_a_process(house, p="KillerAtOpening", s="Slow")
            noon.advance(LEASE)
        assert [letter.error_code for letter in house.letters()] == ["crash_loop"]

    def test_cost_no_other_resolver_its_read_back(self, house: House, noon: ManualClock) -> None:
        house.vendor("s", CheckingVendor(absent=lambda _: ConnectionError()))
        house.request(("s", "innocent"))
        house.drain("s")
        assert [each.verification for each in house.entries()] == [Verification.DUE]
        house.request(("p", "poison"))
        noon.advance(timedelta(seconds=30))
        for _ in range(6):
            run_in_a_process(house, p="Killer", s="SlowReadBack")
            noon.advance(LEASE)
        by_name = {each.resolver: each for each in house.entries()}
        assert by_name["p"].status is OutboxStatus.ABANDONED
        assert by_name["s"].verification is Verification.CONFIRMED


class FailingSink(DatabaseAuditSink):
    """An audit sink that is down."""

    def __init__(self, failures: int = 10**9, error: type[BaseException] = ConnectionError) -> None:
        self.failures = failures
        self.error = error

    def append(self, session: Session, records: Sequence[Record]) -> None:
        if self.failures > 0:
            self.failures -= 1
            raise self.error("the sink is down")
        super().append(session, records)


def runner_with(house: House, sink: DatabaseAuditSink) -> SagaRunner:
    outbox = Outbox(house.db.sessions, keyring=KEYRING, audit_sink=sink)
    return SagaRunner(house.registry, outbox, backoff=BackoffPolicy(lease=LEASE))


class TestResultsThatCanNotBeWritten:
    def test_are_no_crashes_however_long_the_sink_is_down(self, house: House, noon: ManualClock) -> None:
        vendor, sink = house.vendor("crm", Vendor()), FailingSink()
        house.request(("crm", "1"), ("crm", "2"), ("crm", "3"))
        runner = runner_with(house, sink)
        for _ in range(5):
            with pytest.raises(Unavailable, match=r"What \d of the calls returned .* \(ConnectionError\)"):
                asyncio.run(runner.run_once())
            noon.advance(LEASE * 2)
        assert {each.status for each in house.entries()} == {OutboxStatus.IN_FLIGHT}
        sink.failures = 0
        asyncio.run(runner.run_once())
        assert {each.status for each in house.entries()} == {OutboxStatus.SUCCEEDED}
        assert {each.attempts for each in house.entries()} == {1}
        assert len(vendor.calls) >= 5

    @pytest.mark.parametrize("error", [ConnectionError, asyncio.CancelledError, SystemExit, StopIteration])
    def test_are_written_without_another_call_when_the_sink_is_back_soon(
        self, house: House, error: type[BaseException]
    ) -> None:
        vendor = house.vendor("crm", Vendor())
        house.request(("crm", "1"), ("crm", "2"))
        assert asyncio.run(runner_with(house, FailingSink(5, error)).run_once()) == 2
        assert len(vendor.calls) == 2

    def test_of_a_later_read_back_are_written_when_the_database_is_back(
        self, house: House, noon: ManualClock
    ) -> None:
        refused = list[str]()

        class LooksTwice(Vendor):
            looks = 0

            async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
                self.looks += 1
                if self.looks == 1:
                    raise ConnectionError
                return True

        def refuse(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
            if vendor.looks == 2 and len(refused) < 2 and statement.startswith("UPDATE effaced_outbox"):
                refused.append(statement)
                raise OperationalError(statement, {}, Exception("away"))

        vendor = house.vendor("crm", LooksTwice())
        house.request(("crm", "1"))
        house.drain()
        noon.advance(timedelta(hours=2))
        event.listen(house.db.engine, "before_cursor_execute", refuse)
        assert house.drain() == 1
        assert len(refused) == 2
        assert (vendor.looks, house.entry().verification) == (2, Verification.CONFIRMED)
        assert house.entry().crashes == 0

    def test_keep_others_from_being_called_meanwhile(self, house: House) -> None:
        """Calls that nobody could record are not made."""
        vendor = house.vendor("crm", Vendor(), concurrency=1)
        house.request(*(("crm", str(number)) for number in range(5)))
        sink = FailingSink(failures=4)
        calls = list[int]()

        @event.listens_for(house.db.sessions, "after_rollback")
        def count(_: Session) -> None:
            calls.append(len(vendor.calls))

        assert asyncio.run(runner_with(house, sink).run_once()) == 5
        assert calls
        assert max(calls) <= 2


class TestARunner:
    def test_works_again_after_an_error(self, house: House) -> None:
        house.vendor("crm", Vendor())
        house.request(("crm", "1"))
        runner = house.runner()
        with house.db.begin() as session:
            session.execute(text("ALTER TABLE effaced_outbox RENAME TO elsewhere"))
        with pytest.raises(Exception, match="effaced_outbox"):
            asyncio.run(runner.run_once())
        with house.db.begin() as session:
            session.execute(text("ALTER TABLE elsewhere RENAME TO effaced_outbox"))
        assert asyncio.run(runner.run_once()) == 1

    def test_settles_what_a_failing_policy_look_up_does_not_concern(self, house: House) -> None:
        """Successes and failures return together, and the failures' policy can't be read."""

        def answer(ref: str) -> Answer | BaseException:
            return Erased() if ref == "good" else ConnectionError()

        house.vendor("crm", Vendor(answer))
        house.request(("crm", "good"), ("crm", "bad"))
        unavailable = pytest.raises(Unavailable, match="What 1 of the calls returned")
        with policies_that_can_not_be_read(house.db), unavailable:
            house.drain()
        assert sorted(each.status for each in house.entries()) == [
            OutboxStatus.IN_FLIGHT,
            OutboxStatus.SUCCEEDED,
        ]


@contextmanager
def policies_that_can_not_be_read(db: Database) -> Iterator[None]:
    """Every look at the retry policies fails, as when somebody has locked their table for too long."""

    def refuse(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if "effaced_policies" in statement and "'rate'" not in statement:  # the claim asks for the rate
            raise OperationalError(statement, {}, Exception("locked"))

    event.listen(db.engine, "before_cursor_execute", refuse)
    try:
        yield
    finally:
        event.remove(db.engine, "before_cursor_execute", refuse)


class BrokenContext(Vendor):
    async def __aenter__(self) -> BrokenContext:
        raise RuntimeError("no connection")

    async def __aexit__(self, *_: object) -> None:
        raise RuntimeError("no connection")


class BrokenExit(Vendor):
    async def __aenter__(self) -> BrokenExit:
        return self

    async def __aexit__(self, *_: object) -> None:
        raise RuntimeError("can't be closed")


async def swallow_cancellations() -> None:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


class NeverEnters(Vendor):
    async def __aenter__(self) -> NeverEnters:
        await swallow_cancellations()
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class NeverExits(Vendor):
    async def __aenter__(self) -> NeverExits:
        return self

    async def __aexit__(self, *_: object) -> None:
        await swallow_cancellations()


class TestAResolverThatCanNotBeOpened:
    def test_stops_no_other(self, house: House) -> None:
        house.vendor("broken", BrokenContext())
        house.vendor("crm", Vendor())
        house.request(("broken", "1"), ("crm", "1"))
        asyncio.run(house.runner().run_once())
        assert statuses(house) == {"broken": OutboxStatus.FAILED, "crm": OutboxStatus.SUCCEEDED}

    def test_ends_with_a_dead_letter(self, house: House, noon: ManualClock) -> None:
        vendor = house.vendor("broken", BrokenContext())
        house.request(("broken", "1"))
        for _ in range(8):
            asyncio.run(house.runner().run_once())
            noon.advance(timedelta(hours=1))
        assert (house.entry().status, vendor.calls) == (OutboxStatus.ABANDONED, [])
        assert [letter.error_code for letter in house.letters()] == ["attempts_exhausted"]

    def test_or_closed_because_it_swallows_its_cancellation_is_left_behind(self, house: House) -> None:
        house.vendor("enter", NeverEnters(), timeout=timedelta(milliseconds=50))
        house.vendor("exit", NeverExits(), timeout=timedelta(milliseconds=50))
        house.request(("enter", "1"), ("exit", "1"))
        asyncio.run(house.runner().run_once())
        assert statuses(house) == {"enter": OutboxStatus.FAILED, "exit": OutboxStatus.SUCCEEDED}

    def test_at_its_close_changes_nothing(self, house: House) -> None:
        house.vendor("crm", BrokenExit())
        house.request(("crm", "1"))
        assert house.drain() == 1


class CancelsItself(Vendor):
    """Cancels the task that it is called in, and answers or raises all the same."""

    def __init__(self, then: Answer | BaseException) -> None:
        super().__init__(lambda _: then)

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return await super().erase_subject(ref, key=key)


class CancelsItsReadBack(Vendor):
    looks = 0

    async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
        self.looks += 1
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return True


class ExitsAtOpening(Vendor):
    async def __aenter__(self) -> ExitsAtOpening:
        raise SystemExit(3)

    async def __aexit__(self, *_: object) -> None:
        pass


class Blocks(Vendor):
    """Blocks its thread, and so its event loop, until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.is_called, self.released = threading.Event(), threading.Event()

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        self.is_called.set()
        self.released.wait(PATIENCE)
        return Erased()


def test_a_resolver_that_blocks_its_thread_does_not_stop_the_others_for_good(
    house: House, noon: ManualClock
) -> None:
    blocks = house.vendor("p", Blocks())
    house.vendor("s", Vendor())
    house.request(("p", "1"), ("s", "2"))
    house.outbox().claim_batch(1)  # by a process that dies: the next claim wants this process to itself
    noon.advance(LEASE * 2)
    blocked = threading.Thread(target=house.drain, args=("p",))
    blocked.start()
    try:
        assert blocks.is_called.wait(PATIENCE)
        assert house.drain("s") == 1
    finally:
        blocks.released.set()
        blocked.join(PATIENCE)


class TestAResolverThatCancelsItsOwnTask:
    def test_is_believed_what_it_answers(self, house: House) -> None:
        vendor = house.vendor("crm", CancelsItself(Erased()))
        house.request(("crm", "1"))
        assert house.drain() == 1
        assert (house.entry().status, len(vendor.calls)) == (OutboxStatus.SUCCEEDED, 1)

    def test_is_believed_what_it_raises(self, house: House) -> None:
        vendor = house.vendor("crm", CancelsItself(ResolverError("no")))
        house.request(("crm", "1"))
        assert house.drain() == 1
        assert (house.entry().status, len(vendor.calls)) == (OutboxStatus.ABANDONED, 1)

    def test_in_later_read_backs_is_given_up_in_the_end(self, house: House, noon: ManualClock) -> None:
        vendor = house.vendor("crm", CancelsItsReadBack())
        house.request(("crm", "1"))
        for _ in range(30):
            house.drain()
            noon.advance(timedelta(days=1))
        assert vendor.looks > 5
        assert house.entry().verification is Verification.UNVERIFIABLE
        assert [letter.error_code for letter in house.letters()] == ["unverifiable"]


class HangsInThreads(Vendor):
    """Calls a client library that never comes back, each time in one of the loop's threads."""

    def __init__(self, released: threading.Event) -> None:
        super().__init__()
        self.released = released

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        await asyncio.to_thread(self.released.wait, PATIENCE)
        return Erased()


def test_a_resolver_that_fills_the_loop_s_threads_stops_no_other(house: House) -> None:
    released = threading.Event()
    house.vendor("p", HangsInThreads(released), concurrency=40, timeout=timedelta(milliseconds=200))
    house.vendor("s", Vendor())
    house.request(*(("p", str(number)) for number in range(40)), ("s", "1"))

    async def run() -> None:
        await house.runner().run_once()
        statuses_then.update(statuses(house))
        released.set()

    statuses_then = dict[str, OutboxStatus]()
    asyncio.run(run())
    assert statuses_then == {"p": OutboxStatus.FAILED, "s": OutboxStatus.SUCCEEDED}


class ShutsThreadsDown(Vendor):
    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
        await asyncio.get_running_loop().shutdown_default_executor()
        return Erased()


def test_a_resolver_that_shuts_the_loop_s_threads_down_stops_no_other(house: House) -> None:
    house.vendor("p", ShutsThreadsDown())
    house.vendor("s", Vendor())
    house.request(("p", "1"), ("s", "1"))
    asyncio.run(house.runner().run_once())
    assert set(statuses(house).values()) == {OutboxStatus.SUCCEEDED}


def test_a_resolver_that_ends_the_process_at_its_opening_ends_with_a_dead_letter(
    house: House, noon: ManualClock
) -> None:
    house.vendor("crm", ExitsAtOpening())
    house.request(("crm", "1"))
    for _ in range(8):
        with pytest.raises(SystemExit):
            asyncio.run(house.runner().run_once())
        noon.advance(timedelta(hours=1))
    assert house.entry().status is OutboxStatus.ABANDONED
    assert [letter.error_code for letter in house.letters()] == ["attempts_exhausted"]


@pytest.mark.parametrize(
    "limits", [{"concurrency": 0}, {"rate_per_second": -1.0}, {"batch_size": 0}, {"timeout": timedelta(0)}]
)
def test_limits_that_let_nothing_through_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        Limits(**limits)


class TestCancelled:
    def test_nothing_more_is_claimed_and_what_has_returned_is_settled(self, house: House) -> None:
        first = asyncio.Event()

        class OneReturns(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                self.calls.append((ref.value, key))
                if len(self.calls) > 1:  # the first one returns
                    first.set()
                    await asyncio.Event().wait()
                return Erased()

        vendor = house.vendor("crm", OneReturns(), concurrency=2)
        house.request(*(("crm", str(number)) for number in range(6)))

        async def cancel() -> None:
            running = asyncio.create_task(house.runner().run_once())
            await first.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        asyncio.run(cancel())
        calls = len(vendor.calls)
        assert OutboxStatus.SUCCEEDED in {each.status for each in house.entries()}
        assert OutboxStatus.IN_FLIGHT not in {each.status for each in house.entries()}
        assert max(each.attempts for each in house.entries()) == 1
        assert calls <= 4

    def test_a_resolver_that_swallows_it_is_left_behind(self, house: House) -> None:
        started, forever = asyncio.Event(), True

        class Stubborn(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                started.set()
                while forever:
                    try:
                        await asyncio.sleep(3600)
                    except asyncio.CancelledError:
                        continue
                return Erased()

        house.vendor("crm", Stubborn())
        house.request(("crm", "1"))

        async def cancel() -> None:
            nonlocal forever
            running = asyncio.create_task(house.runner().run_once())
            await started.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            forever = False

        asyncio.run(cancel())
        assert house.entry().status is OutboxStatus.PENDING

    def test_by_its_own_timeout_a_resolver_that_swallows_it_is_left_behind(self, house: House) -> None:
        forever = True

        class Stubborn(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                while forever:
                    try:
                        await asyncio.sleep(3600)
                    except asyncio.CancelledError:
                        continue
                return Erased()

        house.vendor("crm", Stubborn(), timeout=timedelta(milliseconds=50))
        house.request(("crm", "1"))

        async def run() -> None:
            nonlocal forever
            await house.runner().run_once()
            forever = False

        asyncio.run(run())
        assert (house.entry().status, house.entry().last_error) == (OutboxStatus.FAILED, "TimeoutError")

    def test_in_a_read_back_a_resolver_that_swallows_it_does_not_cost_the_erasure_its_success(
        self, house: House
    ) -> None:
        forever = True

        class LooksForever(Vendor):
            async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
                while forever:
                    try:
                        await asyncio.sleep(3600)
                    except asyncio.CancelledError:
                        continue
                return True

        vendor = house.vendor("crm", LooksForever(), timeout=timedelta(milliseconds=50))
        house.request(("crm", "1"))

        async def run() -> None:
            nonlocal forever
            await house.runner().run_once()
            forever = False

        asyncio.run(run())
        assert len(vendor.calls) == 1
        assert house.entry().status is OutboxStatus.SUCCEEDED
        assert house.entry().verification is Verification.DUE

    def test_twice_it_still_settles_what_it_has_called(self, house: House) -> None:
        """A timeout of the host's, and then its shutdown, while the call is cleaning up."""
        started, cleaning = asyncio.Event(), asyncio.Event()

        class CleansUp(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                started.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    cleaning.set()
                    await asyncio.sleep(0.2)
                return Erased()

        house.vendor("crm", CleansUp())
        house.request(("crm", "1"))

        async def cancel_twice() -> None:
            running = asyncio.create_task(house.runner().run_once())
            await started.wait()
            running.cancel()
            await cleaning.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        asyncio.run(cancel_twice())
        assert (house.entry().status, house.entry().attempts) == (OutboxStatus.PENDING, 0)

    def test_in_a_later_read_back_it_is_no_crash(self, house: House, noon: ManualClock) -> None:
        looking: asyncio.Event

        class Hangs(CheckingVendor):
            async def verify_absent(self, ref: SubjectRef, *, key: UUID) -> bool:
                looking.set()
                await asyncio.Event().wait()
                return True

        house.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()))
        house.request(("crm", "1"))
        house.drain()
        house.vendor("crm", Hangs())

        async def cancel() -> None:
            nonlocal looking
            looking = asyncio.Event()
            running = asyncio.create_task(house.runner().run_once())
            await looking.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        for _ in range(5):
            noon.advance(timedelta(minutes=6))
            asyncio.run(cancel())
        assert (house.entry().verification, house.entry().crashes) == (Verification.DUE, 0)

    def test_by_the_resolver_itself_it_is_a_failed_call(self, house: House) -> None:
        class CancelsItself(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.sleep(0)
                return Erased()

        house.vendor("crm", CancelsItself())
        house.request(("crm", "1"))
        house.drain()
        assert (house.entry().status, house.entry().attempts) == (OutboxStatus.FAILED, 1)


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt()], ids=["exit", "interrupt"])
def test_what_is_meant_for_the_process_is_raised_when_all_is_settled(
    house: House, raised: BaseException
) -> None:
    class Ends(Vendor):
        async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Answer:
            if ref.value == "ends":
                raise raised
            await asyncio.sleep(0.1)
            return Erased()

    house.vendor("crm", Ends())
    house.vendor("mail", Slow())
    house.request(("crm", "ends"), ("crm", "good"), ("mail", "good"))
    with pytest.raises(type(raised)):
        asyncio.run(house.runner().run_once())
    ended = sorted((each.resolver, each.status) for each in house.entries())
    assert ended == [
        ("crm", OutboxStatus.FAILED),
        ("crm", OutboxStatus.SUCCEEDED),
        ("mail", OutboxStatus.SUCCEEDED),
    ]


def test_another_base_exception_ends_its_own_call_only(house: House) -> None:
    class Odd(BaseException):
        pass

    house.vendor("crm", Vendor(lambda ref: Odd() if ref == "odd" else Erased()))
    house.request(("crm", "odd"), ("crm", "good"))
    assert asyncio.run(house.runner().run_once()) == 2
    assert sorted(each.status for each in house.entries()) == [OutboxStatus.FAILED, OutboxStatus.SUCCEEDED]


def test_an_error_with_a_status_that_is_no_number_breaks_nothing(house: House) -> None:
    class Sdk(Exception):
        status_code = "503"

    house.vendor("crm", Vendor(lambda ref: Sdk() if ref == "odd" else Erased()))
    house.vendor("mail", Vendor())
    house.request(("crm", "odd"), ("crm", "good"), ("mail", "good"))
    assert asyncio.run(house.runner().run_once()) == 3
    assert sorted(each.status for each in house.entries()) == [
        OutboxStatus.FAILED,
        OutboxStatus.SUCCEEDED,
        OutboxStatus.SUCCEEDED,
    ]


def test_a_foreign_503_is_the_system_s_trouble(house: House) -> None:
    request = httpx.Request("DELETE", "http://vendor.example/1")
    failure = httpx.HTTPStatusError("no", request=request, response=httpx.Response(503, request=request))
    house.vendor("crm", Vendor(lambda _: failure))
    house.request(("crm", "1"))
    house.drain()
    with house.db.read() as session:
        assert session.scalars(text("SELECT status_code FROM effaced_attempts")).all() == [503]
