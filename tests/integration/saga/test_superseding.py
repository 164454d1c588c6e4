"""Order between a person's requests: what was overtaken is never carried out late (SEMANTICS 12)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Event
from uuid import UUID

import pytest
from company_house import eventually
from correction_cast import ERASED, LEASE, Bureau
from saga_cast import NOON
from sqlalchemy import text

from effaced import clock
from effaced.clock import ManualClock
from effaced.crypto import Keyring, new_key
from effaced.db import Database
from effaced.errors import Conflict
from effaced.model import OutboxOperation, OutboxStatus, RequestKind, RequestStatus
from effaced.outbox.entry import Entry
from effaced.requests.attest import attest
from effaced.requests.complete import complete_operations
from effaced.requests.tables import Request
from effaced.resolvers.protocols import AwaitsPerson, Rectified
from effaced.saga.decide import Result, Rules, decide
from effaced.saga.settle import settle

RULES = Rules()
ROTATED = Keyring.parse(",".join([new_key("k2"), "k1:" + "A" * 43 + "="]))
OLD = Keyring.parse("k1:" + "A" * 43 + "=")


@pytest.fixture
def bureau(db: Database, tmp_path: Path) -> Bureau:
    return Bureau(db, tmp_path)


def settle_late(bureau: Bureau, entries: list[Entry]) -> int:
    """The calls come back at last, and went well."""
    decisions = [decide(Result(each, Rectified()), RULES, clock.now()) for each in entries]
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
        noon.advance(timedelta(minutes=1))
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
    database = Database(migrated_postgres_url, pool_size=8)
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

        def correct() -> bool:
            with crowd.db.begin() as session:
                request = session.get_one(Request, correction, with_for_update=True)
                begun.set()
                assert erased.wait(30)
                return crowd.executor().attempt(session, request)

        begun, erased = Event(), Event()
        with ThreadPoolExecutor(1) as thread:
            with crowd.db.begin() as session:
                late = thread.submit(correct)
                assert begun.wait(30)
                assert crowd.executor().attempt(session, session.get_one(Request, erasure))
                erased.set()
                eventually(lambda: waits_for_a_lock(crowd.db), "the correction to wait for the erasure")
            assert late.result()
        assert crowd.person() == ERASED
        assert crowd.status(correction) is RequestStatus.CANCELLED


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
