"""What officers do to breakers is in the trail, and every move is a row, in the transaction of the move."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from breaker_cast import API, CRM, FAILURE, NOON, Heard, registry, seconds
from saga_cast import KEYRING
from sqlalchemy import select

from effaced.audit.notes import write_note
from effaced.audit.tables import AuditEvent
from effaced.breakers import transitions
from effaced.breakers.model import BreakerState, Transition
from effaced.breakers.registry import BreakerRegistry
from effaced.breakers.stores.sql import SqlBreakerStore
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.core.errors import Refused


@pytest.fixture(autouse=True)
def now() -> Iterator[ManualClock]:
    with clock.pretend(NOON) as pretended:
        yield pretended


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def calls(db: Database, heard: Heard) -> BreakerRegistry:
    return registry(SqlBreakerStore(db), heard, fail_max=1)


def moves(db: Database, **about: object) -> list[Transition]:
    with db.read() as session:
        return transitions.read(session, **about)  # type: ignore[arg-type]


def events(db: Database) -> list[tuple[str, str, dict[str, object]]]:
    with db.read() as session:
        rows = session.scalars(select(AuditEvent).order_by(AuditEvent.id))
        return [(row.type, row.actor, row.payload) for row in rows]


class TestMoves:
    def test_each_leaves_one_row_with_all_there_is_to_tell(
        self, calls: BreakerRegistry, db: Database
    ) -> None:
        """P8, the transitions."""
        calls.settle(calls.admit("crm", "api.example"), [FAILURE])
        crm, host = moves(db)
        assert host.service_name == API
        assert (
            crm.at,
            crm.scope,
            crm.key,
            crm.old,
            crm.new,
            crm.reason,
            crm.reset_timeout_s,
        ) == (NOON, "resolver", "crm", "closed", "open", "consecutive_failures", 60.0)
        assert (NOON + seconds(60), None, "system", 1) == (
            crm.retry_at,
            crm.pinned_until,
            crm.actor,
            crm.generation,
        )

    def test_they_are_read_newest_first_by_service_time_and_number(
        self, calls: BreakerRegistry, db: Database, now: ManualClock
    ) -> None:
        calls.settle(calls.admit("crm"), [FAILURE])
        now.advance(seconds(60))
        calls.on_success(calls.allow(None, "crm"))
        states = [each.new.value for each in moves(db, service_name=CRM)]
        assert states == ["closed", "half_open", "open"]
        assert len(moves(db, since=NOON + seconds(1))) == 2
        assert len(moves(db, limit=1)) == 1
        assert moves(db, service_name=API) == []

    def test_old_ones_are_forgotten_but_each_breaker_s_latest(
        self, calls: BreakerRegistry, db: Database, now: ManualClock
    ) -> None:
        calls.settle(calls.admit("crm"), [FAILURE])
        now.advance(timedelta(days=40))
        calls.allow(None, "crm")
        now.advance(timedelta(days=40))
        with db.begin() as session:
            assert transitions.delete_old(session, timedelta(days=30)) == 1
        assert [each.new for each in moves(db)] == [BreakerState.HALF_OPEN]

    def test_what_is_remembered_is_the_latest_made_whoever_wrote_it_down_later(self, db: Database) -> None:
        first = Transition(CRM, BreakerState.OPEN, BreakerState.HALF_OPEN, "trial_started", NOON, 60)
        later = Transition(
            CRM, BreakerState.HALF_OPEN, BreakerState.CLOSED, "trials_succeeded", NOON + seconds(1)
        )
        with db.begin() as session:
            transitions.write(session, [later])
            transitions.write(session, [first])
            found = transitions.last_known(session, [CRM])[CRM]
        assert found.state is BreakerState.CLOSED

    def test_half_open_is_remembered_as_open_for_another_wait(self, db: Database) -> None:
        """Nobody knows any more which trials are under way."""
        with db.begin() as session:
            transitions.write(
                session,
                [Transition(CRM, BreakerState.OPEN, BreakerState.HALF_OPEN, "trial_started", NOON, 90)],
            )
            found = transitions.last_known(session)[CRM]
        assert (BreakerState.OPEN, NOON + seconds(90)) == (found.state, found.retry_at)


def test_a_trial_that_starts_in_a_transaction_is_undone_with_it(calls: BreakerRegistry, db: Database) -> None:
    calls.repository.update_state(CRM, "open", opened_at=NOON - seconds(60))
    with db.sessions() as session:
        assert calls.within(session).admit("crm").granted == 1
        session.rollback()
    assert calls.current_state(resolver="crm") is BreakerState.OPEN
    with db.begin() as session:
        assert calls.within(session).admit("crm").granted == 1
    assert calls.admit("crm").granted == 0


def test_a_cooldown_ended_early_is_not_known_as_running(calls: BreakerRegistry, db: Database) -> None:
    calls.cooldowns.set_until(CRM, clock.monotonic() + 300, "retry_after")
    calls.cooldowns.clear(CRM)
    assert [each.reason for each in moves(db)] == ["cooldown_ended", "retry_after"]
    with db.read() as session:
        assert transitions.last_known(session)[CRM].cooldown_until is None


class TestPeople:
    def test_a_pin_to_open_is_a_row_and_an_event_with_its_note(
        self, calls: BreakerRegistry, db: Database, heard: Heard
    ) -> None:
        with db.begin() as session:
            note = write_note(session, KEYRING, "maintenance on Friday", author="officer:1")
            made = calls.force_open(CRM, seconds=600, actor="officer:1", note=note, session=session)
            assert heard.transitions == [], "told before the commit"
        until = NOON + seconds(600)
        assert heard.transitions == [made]
        assert [("forced_open", "officer:1", until)] == [
            (each.reason, each.actor, each.pinned_until) for each in moves(db)
        ]
        ((type_, actor, payload),) = events(db)
        assert (type_, actor) == ("BREAKER_FORCED_OPEN", "officer:1")
        assert payload == {
            "breaker": CRM,
            "previous": "closed",
            "until": until.isoformat().replace("+00:00", "Z"),
            "note_id": str(note.note_id),
            "note_hmac": note.note_hmac,
        }
        row = calls.repository.get_by_service_name(CRM)
        assert row is not None
        assert row.control_reason == str(note.note_id)

    def test_all_of_it_is_undone_together(self, calls: BreakerRegistry, db: Database, heard: Heard) -> None:
        def force_and_fail() -> None:
            with db.begin() as session:
                calls.force_open(CRM, actor="officer:1", session=session)
                raise LookupError

        with pytest.raises(LookupError):
            force_and_fail()
        assert (moves(db), events(db), calls.store.load_all(), heard.transitions) == ([], [], [], [])

    def test_closing_and_resetting_are_rows_and_events_too(
        self, calls: BreakerRegistry, db: Database
    ) -> None:
        calls.settle(calls.admit("crm"), [FAILURE])
        calls.force_close(CRM, until=NOON + seconds(60), actor="cli")
        calls.reset(CRM, actor="officer:1")
        assert [type_ for type_, _, _ in events(db)] == ["BREAKER_FORCED_CLOSED", "BREAKER_RESET"]
        assert [payload["previous"] for _, _, payload in events(db)] == ["open", "closed"]
        told = [(each.reason, each.actor) for each in reversed(moves(db))]
        assert told[1:] == [("forced_closed", "cli"), ("reset", "officer:1")]

    def test_the_verbs_of_the_repository_leave_the_same_events(
        self, calls: BreakerRegistry, db: Database, heard: Heard
    ) -> None:
        repository = calls.repository
        repository.atomic_force_open(CRM, "maintenance", 7)
        repository.clear_manual_control(CRM)
        repository.set_manual_control(CRM, "closed", "officer:8")
        repository.atomic_reset(CRM, controlled_by_id="cli")
        repository.delete_state(CRM)
        assert [(type_, actor) for type_, actor, _ in events(db)] == [
            ("BREAKER_FORCED_OPEN", "officer:7"),
            ("BREAKER_UNPINNED", "system"),
            ("BREAKER_FORCED_CLOSED", "officer:8"),
            ("BREAKER_RESET", "cli"),
            ("BREAKER_DELETED", "system"),
        ]
        told = ["forced_open", "unpinned", "forced_closed", "reset", "deleted"]
        assert [each.reason for each in heard.transitions] == told

    @pytest.mark.parametrize(
        ("about", "field"),
        [
            ({"seconds": 0}, "seconds"),
            ({"seconds": 31 * 86_400}, "seconds"),
            ({"until": NOON}, "until"),
            ({"until": NOON + timedelta(days=31)}, "until"),
            ({"seconds": 5, "until": NOON + seconds(5)}, "until"),
        ],
    )
    def test_an_end_that_can_not_be_is_refused_by_its_field(
        self, calls: BreakerRegistry, about: dict[str, object], field: str
    ) -> None:
        with pytest.raises(Refused) as caught:
            calls.force_open(CRM, actor="cli", **about)  # type: ignore[arg-type]
        assert [problem.where for problem in caught.value.problems] == [field]

    @pytest.mark.parametrize("name", ["crm", "resolver:", "vendor:crm"])
    def test_a_name_without_its_kind_is_refused(self, calls: BreakerRegistry, name: str) -> None:
        with pytest.raises(Refused, match="resolver:NAME"):
            calls.reset(name, actor="cli")
