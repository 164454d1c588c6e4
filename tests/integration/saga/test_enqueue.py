"""What an application may enqueue: every field counts, and what could never end is refused at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from saga_cast import KEYRING, NOON, House, Vendor
from sqlalchemy import Column, MetaData, String, Table

from effaced.core.clock import ManualClock
from effaced.core.errors import ConfigurationError, ResolverError
from effaced.model import OutboxStatus, SubjectRef
from effaced.outbox.tables import outbox as outbox_table
from effaced.saga.facade import Outbox, OutboxEntry, SqlStatusCountsSource

HOUR = timedelta(hours=1)


def entry(resolver: str = "crm", **more: Any) -> OutboxEntry:
    return OutboxEntry(resolver, SubjectRef("crm", "c-1"), "anna", **more)


def enqueue(house: House, *entries: OutboxEntry) -> Outbox:
    outbox = house.outbox()
    with house.db.begin() as session:
        outbox.enqueue(session, entries)
    return outbox


class TestEveryFieldCounts:
    def test_what_was_enqueued_elsewhere_keeps_its_moment_and_its_turn(
        self, house: House, noon: ManualClock
    ) -> None:
        outbox = enqueue(house, entry(), entry(enqueued_at=NOON - HOUR))
        assert [each.enqueued_at for each in outbox.claim_batch()] == [NOON - HOUR, NOON]

    def test_nothing_is_claimed_before_its_next_attempt(self, house: House, noon: ManualClock) -> None:
        outbox = enqueue(house, entry(next_attempt_at=NOON + HOUR))
        assert outbox.claim_batch() == []
        noon.advance(HOUR)
        assert len(outbox.claim_batch()) == 1

    def test_attempts_that_were_made_elsewhere_are_used_up(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()))
        enqueue(house, entry(attempts=7, last_attempt_at=NOON - HOUR, last_error="ConnectionError"))
        stored = house.entry()
        assert (stored.attempts, stored.last_attempt_at, stored.last_error) == (
            7, NOON - HOUR, "ConnectionError",
        )  # fmt: skip
        house.drain(max_attempts=8)
        assert (house.entry().status, house.entry().attempts) == (OutboxStatus.ABANDONED, 8)

    def test_its_time_to_end_begins_when_it_is_enqueued_here(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()))
        enqueue(house, entry(enqueued_at=NOON - timedelta(days=100)))
        house.drain()
        assert house.entry().status is OutboxStatus.FAILED

    @pytest.mark.parametrize("status", [each for each in OutboxStatus if each is not OutboxStatus.PENDING])
    def test_only_what_is_pending_can_be_enqueued(self, house: House, status: OutboxStatus) -> None:
        with pytest.raises(ConfigurationError, match=status.value):
            enqueue(house, entry(status=status))
        assert house.entries() == []

    @pytest.mark.parametrize("field", ["enqueued_at", "next_attempt_at", "last_attempt_at"])
    def test_a_moment_needs_a_zone(self, house: House, field: str) -> None:
        with pytest.raises(ConfigurationError, match=field):
            enqueue(house, entry(**{field: NOON.replace(tzinfo=None)}))

    @pytest.mark.parametrize("year", [1, 1969, 9999])
    @pytest.mark.parametrize("field", ["enqueued_at", "next_attempt_at", "last_attempt_at"])
    def test_a_moment_that_no_clock_shows_is_refused(self, house: House, field: str, year: int) -> None:
        """Arithmetic with it would overflow, and stop every call to the system."""
        with pytest.raises(ConfigurationError, match=f"{field} must be between the years 1970 and 9000"):
            enqueue(house, entry(**{field: NOON.replace(year=year)}))
        assert house.entries() == []

    @pytest.mark.parametrize("attempts", [-1, 10**12])
    def test_attempts_are_a_number_that_can_be(self, house: House, attempts: int) -> None:
        with pytest.raises(ConfigurationError, match="attempts must be between 0 and 1000000"):
            enqueue(house, entry(attempts=attempts))

    def test_the_last_error_is_a_class_name(self, house: House) -> None:
        """A message would quote what people typed, and be kept."""
        with pytest.raises(ConfigurationError, match="last_error must be a class name"):
            enqueue(house, entry(last_error="no anna@people.example here"))


class TestTable:
    def test_another_table_is_refused_by_name(self, house: House) -> None:
        other = Table("my_outbox", MetaData(), Column("status", String))
        with pytest.raises(ConfigurationError, match="must be effaced_outbox, not my_outbox"):
            Outbox(house.db.sessions, other, keyring=KEYRING)

    def test_a_table_of_another_schema_is_refused(self, house: House) -> None:
        """Rows would be written to effaced's own table all the same, and counted in the other one."""
        other = outbox_table.to_metadata(MetaData(), schema="elsewhere")
        with pytest.raises(ConfigurationError, match=r"not elsewhere\.effaced_outbox"):
            Outbox(house.db.sessions, other, keyring=KEYRING)

    def test_the_same_table_of_another_metadata_is_taken(self, house: House) -> None:
        enqueue(house, entry())
        mine = outbox_table.to_metadata(MetaData())
        counts = Outbox(house.db.sessions, mine, keyring=KEYRING).status_counts()
        assert counts[OutboxStatus.PENDING] == 1

    def test_a_count_is_taken_from_the_table_that_was_given(self, house: House) -> None:
        enqueue(house, entry())
        other = Table("other_outbox", MetaData(), Column("status", outbox_table.c.status.type))
        with house.db.begin() as session:
            other.create(session.connection())
            session.execute(other.insert(), [{"status": OutboxStatus.FAILED}] * 3)
        counts = SqlStatusCountsSource().status_counts(other, house.db.sessions)
        assert counts == dict.fromkeys(OutboxStatus, 0) | {OutboxStatus.FAILED: 3}


def test_what_was_abandoned_is_requeued_as_it_was_listed(house: House) -> None:
    crm = house.vendor("crm", Vendor(lambda _: ResolverError("no")))
    enqueue(house, entry())
    house.drain()
    outbox = house.outbox()
    assert [each.status for each in outbox.requeue(outbox.list_abandoned())] == [OutboxStatus.PENDING]
    crm.answer = Vendor().answer
    house.drain()
    assert house.entry().status is OutboxStatus.SUCCEEDED
