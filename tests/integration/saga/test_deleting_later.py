"""Systems that accept a deletion now and carry it out later: the first call is always made."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from later_vendor import LaterVendor, later_vendor
from saga_cast import NOON, House

from effaced.core.clock import ManualClock
from effaced.model import OutboxStatus, StepOutcome, Verification
from effaced.outbox.tables import OutboxRow
from effaced.resolvers.http import from_config
from effaced.resolvers.protocols import Limits
from effaced.resolvers.registry import Registered

HOUR = timedelta(hours=1)
TRASH = {"path": "/trash/{ref}", "absent": [404], "present": [200]}
PEOPLE = {"path": "/people/{ref}", "absent": [404], "present": [200]}
HOURLY = {"status": [202], "every": 3600}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def vendor() -> Iterator[LaterVendor]:
    with later_vendor() as running:
        yield running


def connect(house: House, vendor: LaterVendor, *, idempotent: bool = True, **config: Any) -> None:
    """A request that erases Anna there is waiting; DELETE /people/{ref} unless said otherwise."""
    erase = {} if "expires" in config else {"erase": {"method": "DELETE", "path": "/people/{ref}"}}
    limits = Limits(idempotent=idempotent)
    block = {"base_url": vendor.url, **erase, **config}
    house.registry.register(Registered("crm", "crm", from_config("crm", block, limits), limits, kind="http"))
    house.request(("crm", "anna"))


def drained(house: House) -> OutboxRow:
    house.drain()
    return house.entry()


class TestTheFirstCall:
    def test_is_made_although_the_read_back_sees_nobody_before_it(
        self, house: House, noon: ManualClock, vendor: LaterVendor
    ) -> None:
        connect(house, vendor, scheduled=HOURLY, verify=TRASH)
        entry = drained(house)
        assert vendor.deletions == 1
        assert (entry.status, entry.outcome, entry.verification) == (OutboxStatus.SCHEDULED, None, None)

    def test_is_not_taken_for_done_before_the_date_that_the_vendor_names(
        self, house: House, noon: ManualClock, vendor: LaterVendor
    ) -> None:
        """A record that can't be retrieved any more may still be in the vendor's trash."""
        vendor.hides, vendor.until = True, (NOON + 30 * 24 * HOUR).isoformat()
        connect(house, vendor, scheduled={"status": [202], "until": "until"}, verify=PEOPLE)
        entry = drained(house)
        assert (entry.status, entry.gate) == (OutboxStatus.SCHEDULED, NOON + 30 * 24 * HOUR)

    def test_is_made_where_nobody_is_there_and_ends_as_already_absent(
        self, house: House, noon: ManualClock, vendor: LaterVendor
    ) -> None:
        vendor.people.clear()
        connect(house, vendor, gone=[404], scheduled=HOURLY, verify=PEOPLE)
        entry = drained(house)
        assert (vendor.deletions, entry.outcome) == (1, StepOutcome.ALREADY_ABSENT)


class TestALaterTry:
    def test_ends_when_the_read_back_sees_the_person_gone(
        self, house: House, noon: ManualClock, vendor: LaterVendor
    ) -> None:
        connect(house, vendor, scheduled=HOURLY, verify=TRASH)
        drained(house)
        vendor.purge()
        noon.advance(HOUR)
        entry = drained(house)
        assert (entry.status, entry.outcome) == (OutboxStatus.SUCCEEDED, StepOutcome.VERIFIED_EXPIRY)
        assert entry.verification is Verification.CONFIRMED

    def test_ends_at_a_vendor_that_accepts_every_call_for_ever(
        self, house: House, noon: ManualClock, vendor: LaterVendor
    ) -> None:
        """Told again before the look, it would have something to delete again and again."""
        vendor.accepts_all = True
        connect(house, vendor, scheduled=HOURLY, verify=TRASH)
        drained(house)
        vendor.purge()
        noon.advance(HOUR)
        assert (drained(house).status, vendor.deletions) == (OutboxStatus.SUCCEEDED, 1)

    def test_repeats_the_call_while_the_person_is_there(
        self, house: House, noon: ManualClock, vendor: LaterVendor
    ) -> None:
        connect(house, vendor, scheduled=HOURLY, verify=PEOPLE)
        drained(house)
        noon.advance(HOUR)
        entry = drained(house)
        assert (vendor.deletions, entry.status, entry.gate) == (2, OutboxStatus.SCHEDULED, NOON + 2 * HOUR)

    @pytest.mark.parametrize(
        ("scheduled", "wait"),
        [(HOURLY, HOUR), ({"status": [202], "until": "until"}, 24 * HOUR)],
    )
    def test_only_looks_where_a_second_call_would_start_the_period_again(
        self, house: House, noon: ManualClock, vendor: LaterVendor, scheduled: dict[str, Any], wait: timedelta
    ) -> None:
        vendor.until = (NOON + HOUR).isoformat()
        connect(house, vendor, scheduled=scheduled | {"repeat": False}, verify=PEOPLE)
        drained(house)
        noon.advance(HOUR)
        entry = drained(house)
        assert (vendor.deletions, entry.status, entry.gate) == (1, OutboxStatus.SCHEDULED, NOON + HOUR + wait)
        vendor.purge()
        noon.advance(wait)
        assert (drained(house).outcome, vendor.deletions) == (StepOutcome.VERIFIED_EXPIRY, 1)

    def test_only_looks_where_a_second_call_does_harm(
        self, house: House, noon: ManualClock, vendor: LaterVendor
    ) -> None:
        connect(house, vendor, idempotent=False, scheduled=HOURLY, verify=PEOPLE)
        drained(house)
        noon.advance(HOUR)
        assert (drained(house).status, vendor.deletions) == (OutboxStatus.SCHEDULED, 1)

    def test_after_a_requeue_is_a_first_call_again(
        self, house: House, noon: ManualClock, vendor: LaterVendor
    ) -> None:
        connect(house, vendor, scheduled=HOURLY | {"repeat": False}, verify=TRASH)
        drained(house)
        noon.advance(HOUR)
        vendor.trash.clear()  # somebody restored the record
        (entry,) = house.outbox().claim_batch(1)
        house.outbox().mark_abandoned(entry, error="ValueError")
        house.outbox().requeue([entry.entry_id], actor="cli")
        assert (drained(house).status, vendor.deletions) == (OutboxStatus.SCHEDULED, 2)


def test_a_system_that_only_expires_says_at_the_first_look_that_nobody_is_there_and_nothing_was_erased(
    house: House, noon: ManualClock, vendor: LaterVendor
) -> None:
    vendor.people.clear()
    connect(house, vendor, expires={"within_days": 30}, verify=PEOPLE)
    entry = drained(house)
    assert (entry.outcome, vendor.deletions) == (StepOutcome.ALREADY_ABSENT, 0)
