"""A person who asked twice, and a row that may be somebody else's, as officers see them."""

from __future__ import annotations

from uuid import UUID

import pytest
from sqlalchemy import select, text

from effaced.deadletters.tables import DeadLetter
from effaced.model import RequestStatus
from tests.browser.seed import House
from tests.integration.console.conftest import HTMX, Visitor, count_events, ref_of, status_of
from tests.integration.console.test_request_page import show, words

REASON = "Compared with the contract."


class TestDuplicate:
    def test_its_page_names_the_original_and_offers_no_approval(self, house: House, ada: Visitor) -> None:
        first, second = house.ask(3), house.ask(3)
        page = show(ada, house, second)
        original = ref_of(house, first)
        assert f'href="/console/requests/{original}"' in page
        told = words(page)
        assert f"Duplicate of {original}" in told
        assert f"it is completed when {original} is" in told
        assert 'name="reason"' not in page
        assert "What will be erased" not in told

    def test_the_page_of_the_original_names_its_duplicates(self, house: House, ada: Visitor) -> None:
        first, second = house.ask(3), house.ask(3)
        assert f"Duplicates {ref_of(house, second)}" in words(show(ada, house, first))

    def test_the_list_shows_it_beside_the_original(self, house: House, ada: Visitor) -> None:
        first, second = house.ask(3), house.ask(3)
        listed = words(ada.get("/console/requests").text)
        assert f"{ref_of(house, second)} Duplicate of {ref_of(house, first)}" in listed

    def test_it_is_not_counted_as_waiting_for_approval(self, house: House, ada: Visitor) -> None:
        house.ask(3)
        house.ask(3)
        listed = words(ada.get("/console/requests?status=review").text)
        assert "1 request: waiting for approval." in listed
        assert "1 request: received." in words(ada.get("/console/requests?status=received").text)

    def test_it_can_not_be_approved(self, house: House, ada: Visitor) -> None:
        house.ask(3)
        second = house.ask(3)
        ada.post(f"/console/requests/{ref_of(house, second)}/approve", {"reason": REASON})
        assert status_of(house, second) is RequestStatus.RECEIVED

    def test_completed_with_the_original_it_says_so(self, house: House, ada: Visitor) -> None:
        first, second = house.ask(3), house.ask(3)
        house.approve(first)
        house.run()
        assert status_of(house, first) is RequestStatus.COMPLETED
        told = words(show(ada, house, second))
        assert f"it was completed together with {ref_of(house, first)}" in told
        assert "Completed together with the request that it is a duplicate of." in told


class TestChangedSubject:
    @pytest.fixture
    def letter_id(self, house: House) -> UUID:
        request_id = house.ask(3)
        with house.runtime.db.begin() as session:
            session.execute(text("UPDATE customers SET email = 'zoe@people.example' WHERE id = 3"))
        house.approve(request_id)
        with house.runtime.db.read() as session:
            return session.scalars(select(DeadLetter.id)).one()

    def test_the_letter_asks_whether_it_is_the_same_person(
        self, house: House, ada: Visitor, cleo: Visitor, letter_id: UUID
    ) -> None:
        told = words(ada.get(f"/console/abandoned/{letter_id}").text)
        assert "Is this still the same person?" in told
        assert "Confirm that it is the same person, or cancel." in told
        assert "Is this still the same person?" not in cleo.get(f"/console/abandoned/{letter_id}").text

    def test_continuing_executes_the_request(self, house: House, ada: Visitor, letter_id: UUID) -> None:
        form = {"subject": "same", "reason": REASON}
        answer = ada.post(f"/console/abandoned/{letter_id}/subject", form, headers=HTMX)
        assert answer.status_code == 200
        assert house.runtime.executor.execute_due() == 1
        assert count_events(house, "LOCAL_ERASURE_EXECUTED") == 1

    def test_cancelling_closes_the_request(self, house: House, ada: Visitor, letter_id: UUID) -> None:
        ada.post(f"/console/abandoned/{letter_id}/subject", {"subject": "other", "reason": REASON})
        assert count_events(house, "REQUEST_CANCELLED") == 1
        assert house.runtime.executor.execute_due() == 0
        with house.runtime.db.read() as session:
            assert session.get_one(DeadLetter, letter_id).resolution == "cancelled"

    def test_a_cancelled_correction_does_not_claim_that_the_person_was_erased(
        self, house: House, ada: Visitor
    ) -> None:
        request_id = house.correct(4, name="Zoe")
        with house.runtime.db.begin() as session:
            session.execute(text("UPDATE customers SET email = 'zoe@people.example' WHERE id = 4"))
        house.approve(request_id)
        with house.runtime.db.read() as session:
            letter_id = session.scalars(select(DeadLetter.id)).one()
        ada.post(f"/console/abandoned/{letter_id}/subject", {"subject": "other", "reason": REASON})
        assert status_of(house, request_id) is RequestStatus.CANCELLED
        told = words(show(ada, house, request_id))
        assert "Nothing: the request was cancelled." in told
        assert "the person was erased" not in told

    @pytest.mark.parametrize("form", [{"subject": "", "reason": REASON}, {"subject": "same", "reason": ""}])
    def test_a_choice_and_a_reason_are_needed(
        self, house: House, ada: Visitor, letter_id: UUID, form: dict[str, str]
    ) -> None:
        assert ada.post(f"/console/abandoned/{letter_id}/subject", form, headers=HTMX).status_code == 422
        assert count_events(house, "SUBJECT_CONFIRMED") == 0

    def test_an_auditor_can_not_decide(self, house: House, cleo: Visitor, letter_id: UUID) -> None:
        form = {"subject": "other", "reason": REASON}
        assert cleo.post(f"/console/abandoned/{letter_id}/subject", form).status_code == 403
        assert count_events(house, "REQUEST_CANCELLED") == 0
