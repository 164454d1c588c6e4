"""Whatever happens to the calls and read-backs of a request, its counters say what its entries say."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saga_cast import KEYRING, NOON, CheckingVendor, House
from sqlalchemy import func, select

from effaced.core import clock
from effaced.core.db import Database
from effaced.core.errors import Conflict
from effaced.model import OutboxStatus, RequestStatus, Verification
from effaced.notify.tables import Message
from effaced.outbox.claim import claim, claim_read_back
from effaced.outbox.read import UNCONFIRMED
from effaced.outbox.tables import Operation, OutboxRow
from effaced.requests.complete import complete_operations
from effaced.requests.tables import Request
from effaced.resolvers.protocols import Erased
from effaced.saga.decide import decide
from effaced.saga.result import ReadBack, Result, Rules
from effaced.saga.settle import settle
from effaced.saga.settle_read_back import request_read_back, settle_read_back
from effaced.triage.attest import attest

LEASE = timedelta(minutes=5)
EXAMPLES = int(os.environ.get("EFFACED_EXAMPLES", "150")) // 10
SEEN = st.sampled_from([Verification.CONFIRMED, Verification.STILL_PRESENT, Verification.DUE])
CALL = st.tuples(st.just("call"), st.one_of(st.none(), SEEN))
ACTS = st.one_of(
    CALL,
    CALL,
    st.tuples(st.just("read back"), SEEN),
    st.tuples(st.just("give up"), st.just(Verification.DUE)),
    st.tuples(st.just("look again"), st.none()),
    st.tuples(st.just("attest"), st.none()),
)


def act(house: House, what: str, seen: Verification | None, which: OutboxRow) -> None:
    with house.db.begin() as session:
        if what == "call":
            for entry in claim(session, "crm", limit=1, lease=LEASE):
                look = None if seen is None else ReadBack(clock.now(), seen)
                result = Result(entry, Erased(), read_back=look)
                settle(session, [decide(result, Rules(), clock.now())], complete_operations)
        elif what in ("read back", "give up"):
            read_back = claim_read_back(session, "crm", lease=LEASE)
            if read_back is not None:
                assert seen is not None
                again_at = clock.now() if what == "read back" else None
                look = ReadBack(clock.now(), seen)
                settle_read_back(session, read_back, look, again_at=again_at, on_complete=complete_operations)
        elif what == "look again":
            request_read_back(session, which.entry_id)
        else:
            attest(session, KEYRING, which.entry_id, actor="officer:7", reason="seen for myself")


@pytest.mark.property
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=st.lists(st.tuples(ACTS, st.integers(0, 2)), min_size=6, max_size=16))
def test_counters_and_status_follow_the_entries(
    db: Database, acts: list[tuple[tuple[str, Verification | None], int]]
) -> None:
    with clock.pretend(NOON) as time:
        house = House(db)
        house.vendor("crm", CheckingVendor())
        request_id = house.request(*(("crm", f"c-{n}") for n in range(3)))
        for (what, seen), which in acts:
            entries = [entry for entry in house.entries() if entry.request_id == request_id]
            # People look at what is not verified, where there is something.
            entries = [entry for entry in entries if entry.verification in UNCONFIRMED] or entries
            time.advance(timedelta(hours=2))
            with suppress(Conflict):  # attesting what is not at an end is refused, and changes nothing
                act(house, what, seen, entries[which % len(entries)])
            check(house, request_id)
        with db.begin() as session:  # the next example finds nothing due
            session.execute(
                OutboxRow.__table__.update().values(status=OutboxStatus.ABANDONED, verify_due_at=None)  # type: ignore[attr-defined]
            )


def check(house: House, request_id: object) -> None:
    with house.db.read() as session:
        mine = list(session.scalars(select(OutboxRow).where(OutboxRow.request_id == request_id)))
        counted = session.scalars(select(Operation).where(Operation.request_id == request_id)).one()
        request = session.get_one(Request, request_id)
        told = session.scalar(
            select(func.count())
            .where(Message.type == "request.completed")
            .where(Message.request_id == request_id)
        )
    assert counted.remaining == sum(entry.status is not OutboxStatus.SUCCEEDED for entry in mine)
    assert counted.unverified == sum(entry.verification in UNCONFIRMED for entry in mine)
    done = counted.remaining == counted.unverified == 0
    assert (request.status is RequestStatus.COMPLETED) == done
    assert (request.closed_at is not None) == done
    assert told == int(done)
    for entry in mine:
        needed = entry.status is not OutboxStatus.SUCCEEDED or entry.verification in UNCONFIRMED
        assert (entry.ref_sealed is not None) == needed
