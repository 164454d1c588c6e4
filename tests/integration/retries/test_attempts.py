"""R3: what is written down of every try, with the settle, and for how long it is kept."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from attempts_cast import Try, ended_entry, write
from saga_cast import NOON, House, Vendor
from sqlalchemy import func, select

from effaced.core.clock import ManualClock
from effaced.deadletters.tables import DeadLetter
from effaced.model import AttemptOutcome, DeadLetterDomain, DeadLetterStatus, OutboxStatus, SubjectRef, new_id
from effaced.outbox.requeue import requeue
from effaced.resolvers.protocols import Answer, Scheduled, TransientFailure
from effaced.retries.metrics import RetryMetrics
from effaced.retries.tables import Attempt
from effaced.triage.housekeeping import delete_old_attempts

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def tries(house: House) -> list[Attempt]:
    with house.db.read() as session:
        return list(session.scalars(select(Attempt).order_by(Attempt.id)))


def only(house: House) -> Attempt:
    (found,) = tries(house)
    return found


class TestOneTry:
    def test_says_which_entry_where_when_and_how_it_went(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor())
        request = house.request(("crm", "1"))
        noon.advance(3 * SECOND)
        house.drain()
        found, entry = only(house), house.entry()
        assert (found.entry_id, found.request_id, found.resolver) == (entry.entry_id, request, "crm")
        assert (found.number, found.at, found.outcome) == (1, NOON + 3 * SECOND, AttemptOutcome.SUCCESS)
        assert (found.status_code, found.error, found.retry_after_s) == (None, None, None)
        assert (found.first, found.trial) == (True, False)
        assert found.delay_before_ms == 3_000
        assert found.latency_ms >= 0

    def test_that_failed_keeps_status_class_and_what_the_vendor_asked_for(self, house: House) -> None:
        busy = TransientFailure("busy", status_code=429, retry_after=timedelta(seconds=6.2))
        house.vendor("crm", Vendor(lambda _: busy))
        house.request(("crm", "1"))
        house.drain()
        found = only(house)
        assert (found.outcome, found.status_code) == (AttemptOutcome.FAILURE, 429)
        assert (found.error, found.retry_after_s) == ("TransientFailure", 7)

    def test_that_took_too_long_is_a_timeout(self, house: House) -> None:
        house.vendor("crm", Vendor(lambda _: TimeoutError()))
        house.request(("crm", "1"))
        house.drain()
        assert only(house).outcome is AttemptOutcome.TIMEOUT

    def test_that_was_answered_with_a_date_is_scheduled(self, house: House, noon: ManualClock) -> None:
        class Later(Vendor):
            async def schedule_erasure(self, ref: SubjectRef, *, key: object) -> Answer:
                return Scheduled(NOON + HOUR)

        house.vendor("crm", Later())
        house.request(("crm", "1"))
        house.drain()
        assert only(house).outcome is AttemptOutcome.SCHEDULED


class TestDelayBefore:
    def test_is_since_the_last_try_ended(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "1"))
        house.drain()
        noon.advance(45 * SECOND)
        house.drain()
        assert [(each.first, each.delay_before_ms) for each in tries(house)] == [(True, 0), (False, 45_000)]

    def test_starts_anew_with_a_requeue(self, house: House, noon: ManualClock) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError()))
        house.request(("crm", "1"))
        house.drain(max_attempts=1)
        noon.advance(HOUR)
        with house.db.begin() as session:
            requeue(session, [house.entry().entry_id], actor="cli")
        noon.advance(2 * SECOND)
        house.drain()
        assert [(each.first, each.delay_before_ms) for each in tries(house)] == [(True, 0), (True, 2_000)]

    def test_starts_anew_at_a_vendors_horizon(self, house: House, noon: ManualClock) -> None:
        answers = iter([Scheduled(NOON + 60 * 24 * HOUR), ConnectionError()])

        class Parks(Vendor):
            async def erase_subject(self, ref: SubjectRef, *, key: object) -> Answer:
                answer = next(answers)
                if isinstance(answer, BaseException):
                    raise answer
                return answer

        house.vendor("crm", Parks())
        house.request(("crm", "1"))
        house.drain()
        noon.advance(60 * 24 * HOUR + SECOND)
        house.drain()
        assert [(each.first, each.delay_before_ms) for each in tries(house)] == [(True, 0), (True, 1_000)]


class TestKept:
    """Entries that ended at noon, with a try at the same moment."""

    def delete(self, house: House, *, limit: int = 100) -> int:
        with house.db.begin() as session:
            return delete_old_attempts(session, limit=limit)

    def left(self, house: House) -> int:
        with house.db.read() as session:
            return session.scalar(select(func.count()).select_from(Attempt)) or 0

    @pytest.mark.parametrize("status", [OutboxStatus.SUCCEEDED, OutboxStatus.ABANDONED])
    def test_until_a_day_after_the_entry_has_ended(
        self, house: House, noon: ManualClock, status: OutboxStatus
    ) -> None:
        write(house.db, [Try(NOON, entry_id=ended_entry(house.db, NOON, status))])
        noon.advance(24 * HOUR - SECOND)
        RetryMetrics(house.db).aggregate_hourly()
        assert (self.delete(house), self.left(house)) == (0, 1)
        noon.advance(SECOND)
        RetryMetrics(house.db).aggregate_hourly()
        assert (self.delete(house), self.left(house)) == (1, 0)

    def test_as_long_as_the_entry_is_open(self, house: House, noon: ManualClock) -> None:
        write(house.db, [Try(NOON, entry_id=ended_entry(house.db, NOON, OutboxStatus.SCHEDULED))])
        noon.advance(60 * 24 * HOUR)
        RetryMetrics(house.db).aggregate_hourly()
        assert self.delete(house) == 0

    @pytest.mark.parametrize("status", [DeadLetterStatus.PENDING, DeadLetterStatus.REPLAYING])
    def test_as_long_as_a_person_has_to_decide(
        self, house: House, noon: ManualClock, status: DeadLetterStatus
    ) -> None:
        """Also while a read-back is made again: it may well fail again."""
        entry_id = ended_entry(house.db, NOON, OutboxStatus.ABANDONED)
        write(house.db, [Try(NOON, entry_id=entry_id)])
        with house.db.begin() as session:
            letter = self.letter(entry_id, NOON)
            letter.status = status
            session.add(letter)
        noon.advance(48 * HOUR)
        RetryMetrics(house.db).aggregate_hourly()
        assert self.delete(house) == 0

    def test_as_long_as_its_hour_is_not_counted_for_good(self, house: House, noon: ManualClock) -> None:
        write(house.db, [Try(NOON, entry_id=ended_entry(house.db, NOON))])
        noon.advance(48 * HOUR)
        assert self.delete(house) == 0
        RetryMetrics(house.db).aggregate_hourly()
        assert self.delete(house) == 1

    def test_and_go_in_batches(self, house: House, noon: ManualClock) -> None:
        entry_id = ended_entry(house.db, NOON)
        write(house.db, [Try(NOON, entry_id=entry_id, number=n) for n in range(1, 6)])
        noon.advance(48 * HOUR)
        RetryMetrics(house.db).aggregate_hourly()
        assert [self.delete(house, limit=3) for _ in range(3)] == [3, 2, 0]

    @staticmethod
    def letter(entry_id: object, at: datetime) -> DeadLetter:
        return DeadLetter(
            id=new_id(),
            domain=DeadLetterDomain.EXTERNAL_CALL,
            failure_type="TransientFailure",
            entry_id=entry_id,
            status=DeadLetterStatus.PENDING,
            context={},
            created_at=at,
            updated_at=at,
        )
