"""Machines whose clocks differ by minutes, on one PostgreSQL database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from company_house import eventually
from fleet import fleet, recording
from quick_database import open_quickly
from saga_breakers import Block
from saga_cast import CheckingVendor, House, Vendor, add_request
from sqlalchemy import func, select, text

from effaced.core import clock
from effaced.core.db import dbtime
from effaced.core.db.pipeline import Pipeline
from effaced.model import DeliveryStatus, NoticeType, OutboxStatus, Verification, new_id
from effaced.notify.claim import claim as claim_delivery
from effaced.notify.tables import Delivery, Message
from effaced.outbox.due import due_resolvers
from effaced.outbox.flow import Booking, flow_state, pause

FIVE_MINUTES = 300.0
CALLS = 30


@pytest.fixture
def shared(migrated_postgres_url: str) -> Iterator[House]:
    database = open_quickly(migrated_postgres_url)
    yield House(database)
    database.dispose()


def all_ended(house: House) -> bool:
    counts = house.outbox().status_counts()
    return counts[OutboxStatus.SUCCEEDED] + counts[OutboxStatus.ABANDONED] == CALLS


@pytest.mark.parametrize("idempotent", [True, False])
def test_two_machines_five_minutes_apart_call_everybody_once_and_abandon_nobody(
    shared: House, migrated_postgres_url: str, tmp_path: Path, idempotent: bool
) -> None:
    with (
        recording(0.1) as server,
        fleet(
            migrated_postgres_url,
            tmp_path,
            server,
            ["crm"],
            lease=60,
            timeout=20,
            concurrency=3,
            idempotent=idempotent,
        ) as workers,
    ):
        workers.spawn()
        workers.spawn(clock_off=FIVE_MINUTES)
        with shared.db.begin() as session:
            add_request(session, [("crm", str(number)) for number in range(CALLS)])
        eventually(lambda: all_ended(shared), "every entry to come to its end")
    entries = shared.entries()
    assert {each.status for each in entries} == {OutboxStatus.SUCCEEDED}
    assert Counter(server.keys()) == Counter(str(each.entry_id) for each in entries)
    assert len({call.process for call in server.calls}) == 2, "one machine has made all the calls"
    assert {(each.token, each.attempts, each.crashes) for each in entries} == {(1, 1, 0)}
    assert "lease_too_short" not in workers.log.read_text()


class TestAMachineThatIsFiveMinutesAhead:
    """Against a database that shares its time with everybody else."""

    @pytest.fixture(autouse=True)
    def ahead(self) -> Iterator[None]:
        with clock.shift(timedelta(seconds=FIVE_MINUTES)):
            yield

    @staticmethod
    def database_now(house: House) -> datetime:
        with house.db.read() as session:
            return session.execute(select(func.clock_timestamp())).scalar_one()

    def test_knows_the_time_of_the_database(self, shared: House) -> None:
        before = self.database_now(shared)
        with shared.db.read() as session:
            told = dbtime.now(session)
            again = dbtime.now(session)
        assert told - before < timedelta(minutes=1)
        assert told <= again <= self.database_now(shared)

    def test_knows_it_while_statements_travel_together(self, shared: House) -> None:
        with shared.db.begin() as session, Pipeline(session):
            told = dbtime.now(session)
        assert abs(self.database_now(shared) - told) < timedelta(minutes=1)

    def test_does_not_take_a_live_lease_for_an_expired_one(self, shared: House) -> None:
        shared.request(("crm", "1"))
        (claimed,) = shared.outbox().claim_batch(lease=timedelta(minutes=2))
        assert claimed.next_attempt_at is not None
        assert claimed.next_attempt_at - self.database_now(shared) <= timedelta(minutes=2)
        with shared.db.read() as session:
            assert due_resolvers(session) == set()
        assert shared.outbox().claim_batch() == []

    def test_writes_gates_that_others_understand(self, shared: House) -> None:
        shared.vendor("crm", Vendor(lambda _: TimeoutError()))
        shared.request(("crm", "1"))
        shared.drain()
        entry = shared.entry()
        assert entry.gate is not None
        assert timedelta(0) < entry.gate - self.database_now(shared) <= timedelta(seconds=30)
        assert entry.waiting_since is not None
        assert entry.gate - entry.waiting_since <= timedelta(seconds=30)

    def test_writes_the_wait_of_a_read_back_so_too(self, shared: House) -> None:
        shared.vendor("crm", CheckingVendor(absent=lambda _: TimeoutError()))
        shared.request(("crm", "1"))
        shared.drain()
        entry = shared.entry()
        assert entry.verification is Verification.DUE
        assert entry.verify_due_at is not None
        assert timedelta(0) < entry.verify_due_at - self.database_now(shared) <= timedelta(seconds=30)

    def test_keeps_to_a_pause_that_is_not_over(self, shared: House) -> None:
        until = self.database_now(shared) + timedelta(minutes=2)
        with shared.db.begin() as session:
            pause(session, "crm", actor="officer:1", until=until)
        with shared.db.read() as session:
            assert flow_state(session, "crm").paused

    def test_keeps_to_the_rate_that_others_have_booked(self, shared: House) -> None:
        with shared.db.begin() as session:
            Booking(session, "crm", 0.01).take(1)
        with clock.shift(timedelta(0)), shared.db.begin() as session:
            assert Booking(session, "crm", 0.01).room == 0
        with shared.db.begin() as session:
            assert Booking(session, "crm", 0.01).room == 0

    def test_starts_no_trial_before_its_time(self, shared: House) -> None:
        block = Block(shared.db)
        block.vendor("crm", Vendor(lambda _: TimeoutError()))
        with clock.shift(timedelta(0)):
            for number in range(5):
                block.request(("crm", str(number)))
            block.run()
        assert block.another().admit("crm").granted == 0

    def test_does_not_deliver_what_somebody_else_is_delivering(self, shared: House) -> None:
        message, delivery = new_id(), new_id()
        now = self.database_now(shared)
        with shared.db.begin() as session:
            session.add(Message(id=message, type=NoticeType.ENTRY_ABANDONED, payload={}, created_at=now))
            session.flush()
            session.add(
                Delivery(
                    id=delivery,
                    message_id=message,
                    target="oncall",
                    status=DeliveryStatus.PENDING,
                    gate=now,
                    aging_since=now,
                )
            )
        lease = timedelta(minutes=2)
        with clock.shift(timedelta(0)), shared.db.begin() as session:
            assert claim_delivery(session, "oncall", lease=lease) is not None
        with shared.db.begin() as session:
            assert claim_delivery(session, "oncall", lease=lease) is None


def test_a_look_at_the_database_s_clock_keeps_what_its_connection_has_prepared(
    migrated_postgres_url: str,
) -> None:
    database = open_quickly(migrated_postgres_url, pool_size=1)
    try:
        with database.begin() as session:
            for _ in range(10):
                flow_state(session, "crm")
        dbtime._readings.clear()
        dbtime.now_for(database.sessions)
        with database.begin() as session:
            assert session.scalar(text("SELECT count(*) FROM pg_prepared_statements"))
    finally:
        database.dispose()
