"""What people do: systems without an interface, and calls that are done by hand after all."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from correction_cast import Bureau
from saga_cast import KEYRING, NOON, House, Vendor
from sqlalchemy import select

from effaced.audit.tables import Note
from effaced.core.clock import ManualClock
from effaced.core.db import Database
from effaced.core.errors import Conflict, NotFound, Refused, ResolverError
from effaced.model import (
    Correction,
    DeadLetterDomain,
    DeadLetterStatus,
    OutboxStatus,
    RequestStatus,
    StepOutcome,
    new_id,
)
from effaced.outbox.claim import claim
from effaced.outbox.entry import Entry
from effaced.requests.complete import complete_operations
from effaced.resolvers.manual import ManualConfig, ManualResolver
from effaced.resolvers.protocols import Erased
from effaced.resolvers.registry import Registered
from effaced.saga.decide import decide
from effaced.saga.result import Result, Rules
from effaced.saga.settle import settle
from effaced.triage.attest import attest, reveal
from effaced.triage.retry import redrive

DUE = timedelta(days=14)
RULES = Rules()


def with_archive(house: House) -> House:
    """The archive is made of paper."""
    house.vendor("archive", ManualResolver(ManualConfig(due_days=14)))
    return house


def attested(house: House, entry_id: UUID, reason: str = "took it out of the folder") -> Entry:
    with house.db.begin() as session:
        return attest(session, KEYRING, entry_id, actor="officer:7", reason=reason)


class TestManual:
    def test_is_parked_until_its_due_date(self, house: House, noon: ManualClock) -> None:
        request_id = with_archive(house).request(("archive", "shelf 3"))
        house.drain("archive")
        entry = house.entry()
        assert (entry.status, entry.attempts, entry.gate) == (OutboxStatus.SCHEDULED, 0, NOON + DUE)
        assert house.types() == ["ATTESTATION_AWAITED"]
        assert house.status(request_id) is RequestStatus.RUNNING
        noon.advance(DUE - timedelta(seconds=1))
        assert house.drain("archive") == 0

    def test_is_done_when_an_officer_says_so(self, house: House, noon: ManualClock) -> None:
        request_id = with_archive(house).request(("archive", "shelf 3"))
        house.drain("archive")
        attested(house, house.entry().entry_id)
        entry = house.entry()
        assert (entry.status, entry.outcome, entry.gate, entry.ref_sealed) == (
            OutboxStatus.SUCCEEDED,
            StepOutcome.ATTESTED,
            None,
            None,
        )
        assert house.status(request_id) is RequestStatus.COMPLETED
        assert house.types() == ["ATTESTATION_AWAITED", "STEP_ATTESTED", "ERASURE_COMPLETED"]
        (event,) = house.events("STEP_ATTESTED")
        assert (event.actor, event.payload["prior_status"]) == ("officer:7", "scheduled")
        with house.db.read() as session:
            (note,) = session.scalars(select(Note))
        assert str(note.id) == event.payload["note_id"]
        noon.advance(DUE)
        assert house.drain("archive") == 0

    def test_overdue_opens_a_dead_letter_for_the_attestation(self, house: House, noon: ManualClock) -> None:
        with_archive(house).request(("archive", "shelf 3"))
        house.drain("archive")
        noon.advance(DUE)
        house.drain("archive")
        assert house.entry().status is OutboxStatus.ABANDONED
        (letter,) = house.letters()
        assert (letter.domain, letter.error_code, letter.recommended_action) == (
            DeadLetterDomain.ATTESTATION,
            "attestation_overdue",
            "do_by_hand_and_attest",
        )

    def test_attested_when_overdue_resolves_that_letter(self, house: House, noon: ManualClock) -> None:
        request_id = with_archive(house).request(("archive", "shelf 3"))
        house.drain("archive")
        noon.advance(DUE)
        house.drain("archive")
        attested(house, house.entry().entry_id)
        (letter,) = house.letters()
        assert (letter.status, letter.resolution) == (DeadLetterStatus.RESOLVED, "attested")
        assert house.status(request_id) is RequestStatus.COMPLETED

    def test_requeued_is_parked_anew(self, db: Database, tmp_path: Path, noon: ManualClock) -> None:
        """By way of its dead letter, which is replayed, and open again when nobody does it once more."""
        bureau = Bureau(db, tmp_path)
        bureau.registry.register(Registered("crm", "crm", ManualResolver(ManualConfig(due_days=14))))
        erasure = bureau.erase()
        for _ in range(2):
            bureau.drain()
            assert bureau.of(erasure).gate == noon() + DUE
            noon.advance(DUE)
            bureau.drain()
            (letter,) = bureau.letters()
            assert letter.status is DeadLetterStatus.PENDING
            with bureau.db.begin() as session:
                (result,) = redrive(
                    session, bureau.keyring, [letter.id], actor="officer:7", reason="once more"
                )
            assert result.requeued
            assert [each.status for each in bureau.letters()] == [DeadLetterStatus.REPLAYING]
        assert len(bureau.events("ATTESTATION_AWAITED")) == 2

    def test_that_fails_in_another_way_after_a_requeue_is_the_same_dead_letter(
        self, db: Database, tmp_path: Path, noon: ManualClock
    ) -> None:
        """Else the first one would be `replaying` for ever, beside one that is open."""
        bureau = Bureau(db, tmp_path)
        bureau.registry.register(Registered("crm", "crm", ManualResolver(ManualConfig(due_days=14))))
        bureau.erase()
        bureau.drain()
        noon.advance(DUE)
        bureau.drain()
        (overdue,) = bureau.letters()
        with bureau.db.begin() as session:
            redrive(session, bureau.keyring, [overdue.id], actor="officer:7", reason="they have an API now")
        bureau.vendor("crm", Vendor(lambda _: ResolverError("no", code="http_400")))
        bureau.drain()
        (letter,) = bureau.letters()
        assert (letter.id, letter.status) == (overdue.id, DeadLetterStatus.PENDING)
        assert (letter.domain, letter.error_code) == (DeadLetterDomain.EXTERNAL_CALL, "http_400")

    def test_shows_a_correction_to_who_has_to_make_it(self, house: House, noon: ManualClock) -> None:
        request_id = with_archive(house).request(
            ("archive", "shelf 3"), corrections=[Correction("name", "Berta")]
        )
        house.drain("archive")
        with house.db.begin() as session:
            shown = reveal(session, KEYRING, house.entry().entry_id, actor="officer:7", reason="to type it")
        assert (shown.ref.value, shown.corrections) == ("shelf 3", (Correction("name", "Berta"),))
        assert "Berta" not in repr(shown)
        (event,) = house.events("REFERENCE_REVEALED")
        assert event.actor == "officer:7"
        attested(house, house.entry().entry_id)
        assert house.entry().corrections_sealed is None
        assert house.status(request_id) is RequestStatus.COMPLETED
        with pytest.raises(Conflict), house.db.begin() as session:
            reveal(session, KEYRING, house.entry().entry_id, actor="officer:7", reason="again")


class TestAttest:
    def abandoned(self, house: House) -> UUID:
        house.vendor("crm", Vendor(lambda _: ResolverError("no")))
        request_id = house.request(("crm", "c-1"))
        house.drain()
        return request_id

    def test_completes_a_request_whose_call_was_abandoned(self, house: House) -> None:
        request_id = self.abandoned(house)
        attested(house, house.entry().entry_id)
        assert house.status(request_id) is RequestStatus.COMPLETED
        assert house.remaining(request_id) == 0
        (letter,) = house.letters()
        assert (letter.status, letter.resolution) == (DeadLetterStatus.RESOLVED, "attested")
        assert house.types().count("ERASURE_COMPLETED") == 1

    def test_completes_a_correction_that_was_abandoned(self, house: House) -> None:
        """It can't be tried again, since its values are gone; without this it would never end."""
        house.vendor("crm", Vendor())
        request_id = house.request(("crm", "c-1"), corrections=[Correction("name", "Berta")])
        house.drain()
        attested(house, house.entry().entry_id)
        assert house.status(request_id) is RequestStatus.COMPLETED
        assert house.types()[-1] == "RECTIFICATION_COMPLETED"

    def test_waits_for_the_siblings(self, house: House) -> None:
        house.vendor("crm", Vendor(lambda ref: ResolverError("no")))
        request_id = house.request(("crm", "c-1"), ("crm", "c-2"))
        house.drain()
        first, second = house.entries()
        attested(house, first.entry_id)
        assert (house.remaining(request_id), house.status(request_id)) == (1, RequestStatus.RUNNING)
        attested(house, second.entry_id)
        assert house.status(request_id) is RequestStatus.COMPLETED

    def test_is_refused_twice(self, house: House) -> None:
        request_id = self.abandoned(house)
        attested(house, house.entry().entry_id)
        with pytest.raises(Conflict):
            attested(house, house.entry().entry_id)
        assert house.remaining(request_id) == 0

    @pytest.mark.parametrize("standing", ["pending", "in_flight", "failed", "succeeded"])
    def test_is_refused_while_the_call_goes_its_way(
        self, house: House, noon: ManualClock, standing: str
    ) -> None:
        house.vendor("crm", Vendor(lambda _: ConnectionError() if standing == "failed" else Erased()))
        house.request(("crm", "c-1"))
        if standing == "in_flight":
            house.outbox().claim_batch()
        if standing in ("failed", "succeeded"):
            house.drain()
        before = house.types()
        with pytest.raises(Conflict, match=standing):
            attested(house, house.entry().entry_id)
        assert (house.entry().status, house.types()) == (standing, before)

    def test_is_refused_without_a_reason_or_an_entry(self, house: House) -> None:
        self.abandoned(house)
        with pytest.raises(Refused):
            attested(house, house.entry().entry_id, reason="  ")
        with pytest.raises(NotFound):
            attested(house, new_id())
        assert house.entry().status is OutboxStatus.ABANDONED

    def test_refuses_the_late_word_of_whoever_looked_meanwhile(self, house: House, noon: ManualClock) -> None:
        """Claimed at its due date and lost; claimed again, given up and attested; then the first is back."""
        with_archive(house).request(("archive", "shelf 3"))
        house.drain("archive")
        noon.advance(DUE)
        with house.db.begin() as session:
            late = claim(session, "archive", limit=1, lease=timedelta(minutes=5))
        noon.advance(timedelta(minutes=5))
        asyncio.run(house.runner().run_once())
        attested(house, house.entry().entry_id)
        before = house.types()
        with house.db.begin() as session:
            decisions = [decide(Result(each, Erased()), RULES, noon()) for each in late]
            assert settle(session, decisions, complete_operations) == []
        assert house.types() == before
