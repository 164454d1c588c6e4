"""Order between a person's requests: what was overtaken is never carried out late (SEMANTICS 12)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Event
from uuid import UUID

import pytest
from correction_cast import ERASED, LEASE, MAP, Bureau
from quick_database import open_quickly
from saga_cast import NOON
from sqlalchemy import select, text
from waiting import eventually

from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.crypto import Keyring, new_key
from effaced.core.db import Database
from effaced.core.errors import Conflict, ResolverError
from effaced.model import (
    DeadLetterStatus,
    OutboxOperation,
    OutboxStatus,
    RequestKind,
    RequestStatus,
    StepOutcome,
)
from effaced.outbox.entry import COLUMNS, Entry, as_entry
from effaced.outbox.tables import outbox
from effaced.requests.complete import complete_operations
from effaced.requests.tables import Request
from effaced.resolvers.protocols import AwaitsPerson, Erased, Rectified
from effaced.retries.policy import RetryPolicy
from effaced.saga.answers import cancelled_call, read_error
from effaced.saga.decide import decide
from effaced.saga.result import Result, Rules
from effaced.saga.settle import settle
from effaced.triage.attest import attest

_WELL = {OutboxOperation.ERASE: Erased(), OutboxOperation.RECTIFY: Rectified()}
RULES = Rules()
ROTATED = Keyring.parse(",".join([new_key("k2"), "k1:" + "A" * 43 + "="]))
OLD = Keyring.parse("k1:" + "A" * 43 + "=")


@pytest.fixture
def bureau(db: Database, tmp_path: Path) -> Bureau:
    return Bureau(db, tmp_path)


def settle_late(bureau: Bureau, entries: list[Entry]) -> int:
    """The calls come back at last, and went well."""
    decisions = [decide(Result(each, _WELL[each.operation]), RULES, clock.now()) for each in entries]
    with bureau.db.begin() as session:
        return len(settle(session, decisions, complete_operations))


def run(bureau: Bureau) -> None:
    asyncio.run(bureau.runner().run_once())


class TestAnErasure:
    @pytest.mark.parametrize("standing", ["pending", "failed", "scheduled", "in_flight", "lost"])
    def test_overtakes_corrections_wherever_they_stand(
        self, bureau: Bureau, noon: ManualClock, standing: str
    ) -> None:
        correction = bureau.correct(name="Berta")
        if standing == "failed":
            bureau.crm.reply = lambda _: ConnectionError()
            bureau.drain()
        if standing == "scheduled":
            bureau.crm.reply = lambda _: AwaitsPerson(NOON + timedelta(days=7))
            bureau.drain()
        if standing in ("in_flight", "lost"):
            bureau.take()
        if standing == "lost":
            noon.advance(LEASE * 2)
        assert bureau.of(correction).status == ("in_flight" if standing == "lost" else standing)
        told = len(bureau.crm.told)

        erasure = bureau.erase()
        entry = bureau.of(correction)
        assert (entry.status, entry.last_error) == (OutboxStatus.ABANDONED, "Superseded")
        assert bureau.letters() == []
        assert bureau.status(correction) is RequestStatus.COMPLETED
        failed = bureau.events("RECTIFICATION_STEP_FAILED")
        assert {(each.payload["code"], each.payload["superseded_by"]) for each in failed} == {
            ("superseded", str(erasure))
        }
        (completed,) = bureau.events("RECTIFICATION_COMPLETED")
        assert completed.payload["superseded"] == 2

        noon.advance(timedelta(days=30))
        run(bureau)
        assert len(bureau.crm.told) == told, "a late retry has brought somebody back"
        assert bureau.status(erasure) is RequestStatus.COMPLETED
        assert bureau.person() == ERASED

    def test_refuses_the_late_word_of_a_call_that_was_on_its_way(
        self, bureau: Bureau, noon: ManualClock
    ) -> None:
        correction = bureau.correct(name="Berta")
        late = bureau.take()
        bureau.erase()
        before = bureau.types()
        assert settle_late(bureau, late) == 0
        assert bureau.types() == before
        assert bureau.of(correction).status is OutboxStatus.ABANDONED

    def test_waits_for_the_lease_of_a_call_that_is_on_its_way_and_others_do_not(
        self, bureau: Bureau, noon: ManualClock
    ) -> None:
        """Else the correction could arrive after the erasure, and the person would be there again."""
        bureau.correct(name="Berta")
        bureau.take("crm")
        erasure = bureau.erase()
        assert bureau.of(erasure, "crm").gate == NOON + LEASE
        run(bureau)
        assert [len(bureau.crm.calls), len(bureau.mail.calls)] == [0, 1]
        noon.advance(LEASE)
        run(bureau)
        assert len(bureau.crm.calls) == 1
        assert bureau.status(erasure) is RequestStatus.COMPLETED

    def test_waits_for_what_a_call_that_timed_out_may_still_do_in_the_system(
        self, bureau: Bureau, noon: ManualClock
    ) -> None:
        bureau.crm.reply = lambda _: TimeoutError()
        bureau.correct(name="Berta")
        bureau.drain()
        noon.advance(timedelta(minutes=1))
        erasure = bureau.erase()
        bureau.crm.reply = lambda _: Erased()
        assert bureau.of(erasure, "crm").gate == NOON + timedelta(minutes=5)
        run(bureau)
        assert bureau.status(erasure) is RequestStatus.RUNNING
        noon.advance(timedelta(minutes=4))
        run(bureau)
        assert bureau.status(erasure) is RequestStatus.COMPLETED

    @pytest.mark.parametrize("most", [1, 8], ids=["given up", "to be tried again"])
    def test_counts_from_the_end_of_a_call_that_took_long(
        self, bureau: Bureau, noon: ManualClock, most: int
    ) -> None:
        bureau.correct(name="Berta")
        (flying,) = bureau.take("crm")
        noon.advance(timedelta(minutes=10))
        failed = Result(flying, failure=read_error(TimeoutError()))
        with bureau.db.begin() as session:
            rules = Rules(RetryPolicy(max_attempts=most))
            assert settle(session, [decide(failed, rules, clock.now())], complete_operations)
        assert bureau.of(bureau.erase(), "crm").gate == NOON + timedelta(minutes=15)

    def test_waits_also_for_a_call_whose_attempt_was_given_back(
        self, bureau: Bureau, noon: ManualClock
    ) -> None:
        """A breaker's trial costs no attempt, and was made all the same."""
        bureau.correct(name="Berta")
        (flying,) = bureau.take("crm")
        with bureau.db.begin() as session:
            cancelled = Result(flying, failure=cancelled_call())
            assert settle(session, [decide(cancelled, RULES, clock.now())], complete_operations)
        noon.advance(timedelta(minutes=1))
        assert bureau.of(bureau.erase(), "crm").gate == NOON + timedelta(minutes=5)

    def test_waits_no_longer_for_a_call_that_failed_long_ago(self, bureau: Bureau, noon: ManualClock) -> None:
        bureau.crm.reply = lambda _: ResolverError("no", code="http_400")
        bureau.correct(name="Berta")
        bureau.drain()
        noon.advance(timedelta(minutes=5))
        assert bureau.of(bureau.erase(), "crm").gate is None

    def test_waits_also_for_a_call_that_was_overtaken_before(self, bureau: Bureau, noon: ManualClock) -> None:
        """The first correction is on its way, the second waits for it, and the erasure overtakes both."""
        bureau.correct(name="Berta")
        bureau.take("crm")
        noon.advance(timedelta(minutes=1))
        bureau.correct(name="Carla")
        noon.advance(timedelta(minutes=1))
        erasure = bureau.erase()
        run(bureau)
        assert bureau.crm.calls == [], "the first correction may still arrive"
        assert bureau.of(erasure, "crm").gate == NOON + LEASE

    def test_cancels_a_correction_that_was_not_carried_out_yet(self, bureau: Bureau) -> None:
        correction = bureau.received(RequestKind.RECTIFICATION, name="Berta")
        erasure = bureau.erase()
        row = bureau.row(correction)
        assert (row.status, row.corrections_sealed, row.subject_sealed) == (
            RequestStatus.CANCELLED,
            None,
            None,
        )
        (event,) = bureau.events("REQUEST_SUPERSEDED")
        assert (event.request_id, event.payload["by"]) == (correction, str(erasure))
        assert bureau.executor().execute_now(correction) is False
        assert bureau.person() == ERASED

    def test_completes_a_correction_that_was_half_through(self, bureau: Bureau) -> None:
        correction = bureau.correct(name="Berta")
        bureau.drain("mail")
        bureau.erase()
        assert bureau.status(correction) is RequestStatus.COMPLETED
        (completed,) = bureau.events("RECTIFICATION_COMPLETED")
        assert completed.payload["superseded"] == 1

    def test_leaves_nothing_to_attest_or_to_requeue(self, bureau: Bureau) -> None:
        correction = bureau.correct(name="Berta")
        bureau.erase()
        with pytest.raises(Conflict), bureau.db.begin() as session:
            attest(
                session,
                bureau.keyring,
                bureau.of(correction).entry_id,
                actor="officer:1",
                reason="by hand",
            )
        assert bureau.remaining(correction) == 0

    def test_leaves_the_corrections_of_others_alone(self, db: Database, tmp_path: Path) -> None:
        bureau = Bureau(db, tmp_path, people=2)
        mine, theirs = bureau.correct(1, name="Berta"), bureau.correct(2, name="Carla")
        bureau.erase(1)
        run(bureau)
        assert [bureau.status(each) for each in (mine, theirs)] == [RequestStatus.COMPLETED] * 2
        assert bureau.crm.records == {"c-2": {"name": "Carla"}}

    def test_overtakes_across_a_key_rotation(self, bureau: Bureau) -> None:
        bureau.keyring = OLD
        correction = bureau.correct(name="Berta")
        bureau.keyring = ROTATED
        bureau.erase()
        assert bureau.of(correction).last_error == "Superseded"


class TestANewerCorrection:
    def test_overtakes_the_same_field_and_leaves_the_others(self, bureau: Bureau, noon: ManualClock) -> None:
        bureau.crm.reply = lambda _: ConnectionError()
        older = bureau.correct(name="Berta", email="berta@people.example")
        bureau.drain()
        noon.advance(timedelta(seconds=1))
        newer = bureau.correct(name="Carla")
        assert bureau.of(older).fields == ["email"]
        bureau.crm.reply = lambda _: Rectified()
        bureau.crm.told.clear()
        noon.advance(timedelta(minutes=5))
        run(bureau)
        assert sorted(bureau.crm.told, key=str) == [{"email": "berta@people.example"}, {"name": "Carla"}]
        assert [bureau.status(each) for each in (older, newer)] == [RequestStatus.COMPLETED] * 2
        assert bureau.letters() == []

    def test_completes_a_request_of_which_nothing_is_left(self, bureau: Bureau, noon: ManualClock) -> None:
        older = bureau.correct(name="Berta")
        bureau.correct(name="Carla", email="carla@people.example")
        assert bureau.status(older) is RequestStatus.COMPLETED
        assert len(bureau.events("RECTIFICATION_COMPLETED")) == 1
        run(bureau)
        assert bureau.crm.told == [{"name": "Carla", "email": "carla@people.example"}]

    def test_waits_for_an_older_one_on_its_way_and_what_that_had_left_is_sent_again(
        self, bureau: Bureau, noon: ManualClock
    ) -> None:
        older = bureau.correct(name="Berta", email="berta@people.example")
        lost = bureau.take()
        newer = bureau.correct(name="Carla")
        assert bureau.of(newer).gate == NOON + LEASE
        run(bureau)
        assert bureau.crm.told == []
        noon.advance(LEASE)
        run(bureau)
        assert settle_late(bureau, lost) == 0
        assert {"name": "Berta"} not in [dict(each) for each in bureau.crm.told]
        assert bureau.crm.records == {"c-1": {"email": "berta@people.example", "name": "Carla"}}
        assert bureau.status(older) is RequestStatus.COMPLETED

    def test_lets_the_older_one_s_success_count(self, bureau: Bureau, noon: ManualClock) -> None:
        """It was on its way with both fields; the newer value comes after it."""
        older = bureau.correct(name="Berta", email="berta@people.example")
        flying = bureau.take()
        bureau.correct(name="Carla")
        assert settle_late(bureau, flying) == 1
        bureau.drain("mail")
        noon.advance(LEASE)
        run(bureau)
        assert bureau.status(older) is RequestStatus.COMPLETED
        assert bureau.crm.told == [{"name": "Carla"}]


@pytest.fixture
def crowd(migrated_postgres_url: str, tmp_path: Path) -> Iterator[Bureau]:
    database = open_quickly(migrated_postgres_url, pool_size=8)
    yield Bureau(database, tmp_path, people=400)
    database.dispose()


def at_once(bureau: Bureau, *request_ids: UUID) -> None:
    """Execute these requests in as many threads, all at the same moment."""
    start = Barrier(len(request_ids))

    def execute(request_id: UUID) -> None:
        start.wait()
        bureau.executor().execute_now(request_id)

    with ThreadPoolExecutor(len(request_ids)) as threads:
        list(threads.map(execute, request_ids))


ROUNDS = pytest.mark.parametrize("rounds", [15, pytest.param(400, marks=pytest.mark.drill)])


class TestAtTheSameTime:
    @ROUNDS
    def test_an_erased_row_never_holds_corrected_values(self, crowd: Bureau, rounds: int) -> None:
        ended = set()
        for person in range(1, rounds + 1):
            correction = crowd.received(RequestKind.RECTIFICATION, person, name="Berta", email="b@x.example")
            erasure = crowd.received(RequestKind.ERASURE, person)
            at_once(crowd, *((correction, erasure) if person % 2 else (erasure, correction)))
            assert crowd.person(person) == ERASED
            assert crowd.status(erasure) is RequestStatus.RUNNING
            ended.add(crowd.status(correction))
        assert ended <= {RequestStatus.COMPLETED, RequestStatus.CANCELLED}
        assert crowd.open_corrections() == []
        run(crowd)
        assert crowd.crm.told == []
        assert crowd.letters() == []
        assert {each.status for each in crowd.entries() if each.operation is OutboxOperation.ERASE} == {
            OutboxStatus.SUCCEEDED
        }

    @ROUNDS
    def test_of_two_corrections_all_systems_have_the_same_one(self, crowd: Bureau, rounds: int) -> None:
        for person in range(1, rounds + 1):
            pair = [
                crowd.received(RequestKind.RECTIFICATION, person, name=name) for name in ("Berta", "Carla")
            ]
            at_once(crowd, *pair)
            assert len([each for each in crowd.open_corrections() if each.resolver == "crm"]) == person
        run(crowd)
        for person in range(1, rounds + 1):
            name, _ = crowd.person(person)
            assert (crowd.crm.records[f"c-{person}"], crowd.mail.records[f"m-{person}"]) == (
                {"name": name},
                {"name": name},
            )

    def test_a_person_is_the_same_one_under_another_key(self, crowd: Bureau) -> None:
        """Requests that came in before and after a key rotation are executed one after the other, too."""
        crowd.keyring = OLD
        correction = crowd.received(RequestKind.RECTIFICATION, name="Berta")
        crowd.keyring = ROTATED
        erasure = crowd.received(RequestKind.ERASURE)

        def correct() -> None:
            with crowd.db.begin() as session:
                request = session.get_one(Request, correction, with_for_update=True)
                begun.set()
                assert erased.wait(30)
                crowd.executor().carry_out(session, request)

        begun, erased = Event(), Event()
        with ThreadPoolExecutor(1) as thread:
            with crowd.db.begin() as session:
                late = thread.submit(correct)
                assert begun.wait(30)
                crowd.executor().carry_out(session, session.get_one(Request, erasure))
                erased.set()
                eventually(lambda: waits_for_a_lock(crowd.db), "the correction to wait for the erasure")
            late.result()
        assert crowd.person() == ERASED
        assert crowd.status(correction) is RequestStatus.CANCELLED


class TestAReferenceThatIsCorrected:
    """crm knows people by their address, and the address is what is corrected."""

    @pytest.fixture
    def bureau(self, db: Database, tmp_path: Path) -> Bureau:
        by_address = MAP.replace('crm: {template: "c-{id}"}', "crm: {column: email}")
        bureau = Bureau(db, tmp_path, data_map=by_address)
        bureau.crm.records = {"anna@people.example": {"name": "Anna"}}
        return bureau

    def refs(self, bureau: Bureau, request_id: UUID, resolver: str = "crm") -> list[str]:
        with bureau.db.read() as session:
            rows = session.execute(
                select(*COLUMNS).where(outbox.c.request_id == request_id, outbox.c.resolver == resolver)
            )
            return sorted(as_entry(row).open_ref(bureau.keyring).value for row in rows)

    @pytest.mark.parametrize("trouble", [ResolverError("no", code="http_400"), ConnectionError()])
    def test_nobody_is_certified_gone_who_is_still_known_by_the_old_one(
        self, bureau: Bureau, noon: ManualClock, trouble: Exception
    ) -> None:
        bureau.crm.reply = lambda _: trouble
        bureau.correct(email="new@people.example")
        run(bureau)
        erasure = bureau.erase()
        assert self.refs(bureau, erasure) == ["anna@people.example", "new@people.example"]
        noon.advance(timedelta(minutes=5))
        run(bureau)
        assert bureau.status(erasure) is RequestStatus.COMPLETED
        assert bureau.crm.records == {}

    def test_an_erasure_before_the_correction_was_tried_asks_for_both(self, bureau: Bureau) -> None:
        bureau.correct(email="new@people.example")
        assert self.refs(bureau, bureau.erase()) == ["anna@people.example", "new@people.example"]

    def test_an_erasure_after_it_got_there_asks_for_the_new_one_alone(self, bureau: Bureau) -> None:
        bureau.correct(email="new@people.example")
        run(bureau)
        assert self.refs(bureau, bureau.erase()) == ["new@people.example"]

    def test_an_erasure_that_waited_meanwhile_asks_for_the_new_one_alone(self, bureau: Bureau) -> None:
        """What was corrected may have been somebody else's."""
        erasure = bureau.received(RequestKind.ERASURE, 1)
        bureau.correct(email="new@people.example")
        run(bureau)
        bureau.executor().execute_now(erasure)
        assert self.refs(bureau, erasure) == ["new@people.example"]

    def test_whoever_comes_after_waits_until_both_are_through(self, bureau: Bureau) -> None:
        bureau.vendor("mail", bureau.mail, after=("crm",))
        bureau.correct(email="new@people.example")
        erasure = bureau.erase()
        (first, second) = bureau.take("crm")
        assert settle_late(bureau, [first]) == 1
        assert bureau.of(erasure, "mail").waits_for == ["crm"]
        assert settle_late(bureau, [second]) == 1
        assert bureau.of(erasure, "mail").waits_for is None

    def test_a_correction_that_follows_one_never_sent_goes_by_what_the_system_knows(
        self, bureau: Bureau
    ) -> None:
        bureau.correct(email="b@people.example")
        second = bureau.correct(email="c@people.example")
        assert self.refs(bureau, second) == ["anna@people.example"]

    def test_a_correction_that_follows_one_in_doubt_goes_by_either(self, bureau: Bureau) -> None:
        bureau.crm.reply = lambda _: ConnectionError()
        bureau.correct(email="b@people.example")
        run(bureau)
        second = bureau.correct(email="c@people.example")
        assert self.refs(bureau, second) == ["anna@people.example", "b@people.example"]

    def test_what_the_older_one_had_left_goes_with_the_newer(self, bureau: Bureau) -> None:
        """Made by itself it would come too late: the system knows nobody by the old address then."""
        first = bureau.correct(email="b@people.example", name="Berta")
        second = bureau.correct(email="c@people.example")
        assert bureau.of(first).outcome is StepOutcome.SUPERSEDED
        assert bureau.of(second).fields == ["name", "email"]
        run(bureau)
        assert bureau.crm.told == [{"name": "Berta", "email": "c@people.example"}]
        assert bureau.status(first) is RequestStatus.COMPLETED

    def test_a_system_is_told_what_it_knows_people_by_whatever_it_holds(self, bureau: Bureau) -> None:
        bureau.registry.register(replace(bureau.registry.get("crm"), fields=frozenset({"name"})))
        request_id = bureau.correct(email="new@people.example")
        assert bureau.of(request_id).fields == ["email"]


def test_an_error_that_happens_to_be_called_superseded_is_an_error(bureau: Bureau) -> None:
    class Superseded(ResolverError):
        pass

    bureau.crm.reply = lambda _: Superseded("no", code="http_400")
    correction = bureau.correct(name="Berta")
    run(bureau)
    with bureau.db.begin() as session:
        attest(session, bureau.keyring, bureau.of(correction).entry_id, actor="cli", reason="done by hand")
    assert bureau.status(correction) is RequestStatus.COMPLETED


def test_the_letter_of_a_failed_correction_is_resolved_with_it(bureau: Bureau) -> None:
    with bureau.db.begin() as session:
        name = "ck_people_name"
        if bureau.db.engine.dialect.name == "postgresql":
            session.execute(text(f"ALTER TABLE people ADD CONSTRAINT {name} CHECK (name <> 'Berta')"))
        else:
            session.execute(
                text(
                    f"CREATE TRIGGER {name} BEFORE UPDATE OF name ON people WHEN NEW.name = 'Berta'"
                    " BEGIN SELECT RAISE(ABORT, 'kept'); END"
                )
            )
    correction = bureau.received(RequestKind.RECTIFICATION, name="Berta")
    assert bureau.executor().execute_now(correction) is False
    assert [letter.status for letter in bureau.letters()] == [DeadLetterStatus.PENDING]
    bureau.erase()
    assert bureau.status(correction) is RequestStatus.CANCELLED
    assert [(each.status, each.resolution) for each in bureau.letters()] == [
        (DeadLetterStatus.RESOLVED, "superseded")
    ]


def waits_for_a_lock(database: Database) -> bool:
    with database.read() as session:
        return bool(
            session.scalar(
                text(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
                )
            )
        )
