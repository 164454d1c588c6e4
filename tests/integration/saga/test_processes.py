"""Several processes on one PostgreSQL database, against a server that remembers every call."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from fleet import Received, busiest, fleet, recording
from quick_database import open_quickly
from saga_cast import House, add_request
from sqlalchemy import select
from waiting import eventually

from effaced.model import AttemptOutcome, OutboxStatus, RequestStatus
from effaced.retries.tables import Attempt


@pytest.fixture
def shared(migrated_postgres_url: str) -> Iterator[House]:
    database = open_quickly(migrated_postgres_url)
    yield House(database)
    database.dispose()


def open_entries(house: House) -> int:
    counts = house.outbox().status_counts()
    return sum(number for status, number in counts.items() if status is not OutboxStatus.SUCCEEDED)


def successes(house: House) -> Counter[UUID]:
    with house.db.read() as session:
        return Counter(
            session.scalars(select(Attempt.entry_id).where(Attempt.outcome == AttemptOutcome.SUCCESS))
        )


def overlapping(calls: list[Received]) -> set[str]:
    """The keys under which a call was made while another one was on its way."""
    by_key: dict[str, list[Received]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: call.began):
        by_key[call.key].append(call)
    return {
        key
        for key, made in by_key.items()
        if any(later.began < earlier.ended for earlier, later in itertools.pairwise(made))
    }


def test_each_entry_is_called_under_one_lease_and_each_request_completes_once(
    shared: House, migrated_postgres_url: str, tmp_path: Path
) -> None:
    """O4: the two calls of each request are made by whoever comes first, and one of them completes it."""
    with (
        recording(0.005) as server,
        fleet(
            migrated_postgres_url, tmp_path, server, ["crm", "mail"], lease=60, timeout=20, concurrency=2
        ) as workers,
    ):
        workers.spawn(4)
        with shared.db.begin() as session:
            requests = [add_request(session, [("crm", "1"), ("mail", "1")]) for _ in range(80)]
        eventually(lambda: open_entries(shared) == 0, "everything to be called")
    entries = {each.entry_id for each in shared.entries()}
    assert Counter(server.keys()) == Counter(str(each) for each in entries)
    assert overlapping(server.calls) == set()
    assert len({call.process for call in server.calls}) > 1, "one process has done it all"
    assert successes(shared) == Counter(entries)
    completed = Counter(each.request_id for each in shared.events("ERASURE_COMPLETED"))
    assert completed == Counter(requests)
    assert {shared.status(each) for each in requests} == {RequestStatus.COMPLETED}
    assert {(each.token, each.attempts) for each in shared.entries()} == {(1, 1)}


def test_the_rate_limit_is_one_for_all_of_them(
    shared: House, migrated_postgres_url: str, tmp_path: Path
) -> None:
    """Twenty a second, and a second's worth at once. Four processes with a limit each would make eighty."""
    rate, calls = 20, 90
    with (
        recording() as server,
        fleet(
            migrated_postgres_url, tmp_path, server, ["crm"], lease=60, timeout=20, concurrency=10, rate=rate
        ) as workers,
    ):
        workers.spawn(4)
        with shared.db.begin() as session:
            add_request(session, [("crm", str(number)) for number in range(calls)])
        eventually(lambda: open_entries(shared) == 0, "everything to be called")
    assert len(server.calls) == calls
    assert len({call.process for call in server.calls}) > 1
    # By the moments of the claims, which is when calls are booked: on a busy machine a call is made later.
    # Twice the rate within a second: what it allows, and what may be booked ahead; and one claim's worth, as
    # a process may be held up between the booking and the claim.
    claimed = [each.last_attempt_at.timestamp() for each in shared.entries() if each.last_attempt_at]
    assert len(claimed) == calls
    assert busiest(claimed) <= 2 * rate + 10
    assert max(claimed) - min(claimed) >= (calls - 2 * rate) / rate
