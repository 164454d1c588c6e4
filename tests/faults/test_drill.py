"""Workers are killed at random while entries drain; a server and the database write down all that happens."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fleet import fleet, recording
from quick_database import open_quickly
from saga_cast import House, add_request
from sqlalchemy import select, text
from waiting import eventually

from effaced.model import AttemptOutcome, OutboxStatus, RequestStatus
from effaced.outbox.tables import Operation
from effaced.requests.tables import Request
from effaced.retries.tables import Attempt

NAMES = ("crm", "mail", "files", "payment")
WORKERS = 4
LEASE = 6.0
# Of every change of an entry the database itself keeps what was before and after, and when.
WATCH = """
CREATE TABLE moves (
    number bigint GENERATED ALWAYS AS IDENTITY, at timestamptz DEFAULT clock_timestamp(), entry_id uuid,
    was text, is_now text, token_was int, token_now int, alone_was boolean, alone_now boolean,
    attempts_was int, attempts_now int, overdue double precision
);
CREATE FUNCTION note_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO moves (entry_id, was, is_now, token_was, token_now, alone_was, alone_now, attempts_was,
                       attempts_now, overdue)
    VALUES (OLD.entry_id, OLD.status, NEW.status, OLD.token, NEW.token, OLD.claimed_alone,
            NEW.claimed_alone, OLD.attempts, NEW.attempts,
            EXTRACT(epoch FROM clock_timestamp() - OLD.gate));
    RETURN NULL;
END $$;
CREATE TRIGGER watch AFTER UPDATE ON effaced_outbox FOR EACH ROW EXECUTE FUNCTION note_move();
"""


@dataclass(frozen=True)
class Move:
    entry_id: str
    was: str
    is_now: str
    token_was: int
    token_now: int
    alone_was: bool
    alone_now: bool
    attempts_was: int
    attempts_now: int
    overdue: float | None

    @property
    def kind(self) -> str:
        """claimed, lost and claimed again, settled, or given back."""
        if self.is_now == "in_flight":
            return "again" if self.was == "in_flight" else "claimed"
        return "released" if (self.was, self.is_now) == ("in_flight", "pending") else "settled"


@contextmanager
def watched(database_url: str) -> Iterator[House]:
    house = House(open_quickly(database_url))
    with house.db.begin() as session:
        session.execute(text(WATCH))
    try:
        yield house
    finally:
        house.db.dispose()


def moves(house: House) -> list[Move]:
    columns = ", ".join(Move.__dataclass_fields__)
    with house.db.read() as session:
        return [Move(*row) for row in session.execute(text(f"SELECT {columns} FROM moves ORDER BY number"))]


def left(house: House) -> int:
    counts = house.outbox().status_counts()
    return sum(counts.values()) - counts[OutboxStatus.SUCCEEDED]


def fill(house: House, entries: int) -> None:
    """A quarter as many requests, each of which calls all four systems."""
    with house.db.begin() as session:
        for number in range(entries // len(NAMES)):
            add_request(session, [(name, str(number)) for name in NAMES])


@pytest.mark.parametrize(
    ("entries", "kills"),
    [
        pytest.param(200, 5, id="200-entries-5-kills"),
        pytest.param(10_000, 200, id="10000-entries-200-kills", marks=pytest.mark.drill),
    ],
)
def test_workers_killed_at_random_lose_nothing_and_repeat_no_success(
    migrated_postgres_url: str, tmp_path: Path, entries: int, kills: int
) -> None:
    chance, began = random.Random(entries), time.monotonic()
    with (
        watched(migrated_postgres_url) as house,
        recording(0.01) as server,
        # An entry that flies alone when its worker is killed looks guilty. Two hundred murders are no sign
        # of poison, so more of them are forgiven than usual.
        fleet(
            migrated_postgres_url,
            tmp_path,
            server,
            NAMES,
            lease=LEASE,
            timeout=2,
            concurrency=5,
            crash_limit=20,
        ) as workers,
    ):
        fill(house, entries)
        workers.spawn(WORKERS)
        for number in range(kills):
            # Spread over the run by calls, not by time: somebody is always at work when a worker dies.
            goal = min(entries - 1, int(entries * 0.9 * (number + chance.random()) / kills))
            eventually(lambda goal=goal: len(server.calls) > goal, "the next calls")  # type: ignore[misc]
            workers.kill(chance.choice(workers.workers))
            workers.spawn()
        eventually(lambda: left(house) == 0, "every entry to end well")
        seconds = time.monotonic() - began
        happened = moves(house)
        check_ends(house, server.keys())
    check_tokens(happened)
    check_neighbours(happened)
    overdue = check_only_ended_leases_are_taken(happened)

    repeated = sum(number - 1 for number in Counter(server.keys()).values())
    kinds = Counter(move.kind for move in happened)
    sys.stdout.write(  # pytest shows it with -rP
        f"{entries} entries, {kills} kills, {seconds:.1f} s: {len(server.calls)} calls, {repeated} of them"
        f" repeated; {kinds['again']} entries taken up again after a crash, the latest {overdue:.2f} s after"
        f" its lease; {kinds['released']} given back\n"
    )
    assert kinds["again"] > 0, "no kill has hit anything"


def test_a_worker_that_slept_through_its_lease_settles_nothing(
    migrated_postgres_url: str, tmp_path: Path
) -> None:
    """Suspended while its calls are being answered, woken when others have done all of it again."""
    with (
        watched(migrated_postgres_url) as house,
        recording(0.2) as server,
        fleet(migrated_postgres_url, tmp_path, server, NAMES, lease=4, timeout=1.5, concurrency=5) as workers,
    ):
        fill(house, 60)
        workers.spawn()
        (sleeper,) = workers.workers
        eventually(lambda: server.answering[sleeper] >= 5, "several calls to be on their way")
        workers.suspend(sleeper)
        asleep_over = {each.entry_id for each in house.entries() if each.status is OutboxStatus.IN_FLIGHT}
        workers.spawn(2)
        eventually(lambda: left(house) == 0, "the others to do all of it")
        before = [(each.entry_id, each.token, each.ended_at) for each in house.entries()]
        workers.wake(sleeper)
        eventually(lambda: "late_settles_refused" in workers.log.read_text(), "the sleeper to come late")
        assert asleep_over
        assert before == [(each.entry_id, each.token, each.ended_at) for each in house.entries()]
        check_ends(house, server.keys())
        check_tokens(moves(house))


def check_ends(house: House, called: list[str]) -> None:
    """Every entry has ended well, once; every request is complete, once; nobody was given up."""
    with house.db.read() as session:
        entries = {row.entry_id for row in house.entries()}
        successes = Counter(
            session.scalars(select(Attempt.entry_id).where(Attempt.outcome == AttemptOutcome.SUCCESS))
        )
        requests = {row.id: row.status for row in session.execute(select(Request.id, Request.status))}
        assert set(session.scalars(select(Operation.remaining))) == {0}
    assert successes == Counter(entries), "one success under a live token each"
    assert {str(each) for each in entries} == set(called), "no success without a call"
    events = house.events()
    steps = Counter(each.entry_id for each in events if each.type == "ERASURE_STEP_SUCCEEDED")
    completed = Counter(each.request_id for each in events if each.type == "ERASURE_COMPLETED")
    assert steps == Counter(entries)
    assert completed == Counter(requests.keys())
    assert set(requests.values()) == {RequestStatus.COMPLETED}
    assert house.letters() == []
    assert {each.type for each in events} == {"ERASURE_STEP_SUCCEEDED", "ERASURE_COMPLETED"}


def check_tokens(happened: list[Move]) -> None:
    """Claims take the next token; a settle finds the entry in flight and leaves the token alone."""
    latest: dict[str, int] = {}
    for move in happened:
        assert move.token_was == latest.get(move.entry_id, 0)
        latest[move.entry_id] = move.token_now
        assert move.was != "succeeded", "an entry that had ended was touched"
        claimed = move.kind in ("claimed", "again")
        assert move.token_now == move.token_was + (1 if claimed else 0)
        assert claimed or move.was == "in_flight", "settled without a live token"


def check_neighbours(happened: list[Move]) -> None:
    """Who was lost beside others got the attempt back, and was then called alone."""
    again = [move for move in happened if move.kind == "again"]
    assert {move.alone_now for move in again} <= {True}
    assert {move.attempts_now - move.attempts_was for move in again if not move.alone_was} <= {0}


def check_only_ended_leases_are_taken(happened: list[Move]) -> float:
    """No entry is taken from a worker whose lease is alive. Returns how late the latest was taken up."""
    overdue = [move.overdue for move in happened if move.kind == "again" and move.overdue is not None]
    assert min(overdue, default=0) >= -0.5
    return max(overdue, default=0.0)
