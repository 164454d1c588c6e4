"""Between intake and execution the row under the key may have become somebody else's."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from planned import planned
from requests_cast import MAP, Office

from effaced.core.errors import Conflict, NotFound
from effaced.model import Correction, DeadLetterDomain, DeadLetterStatus, RequestKind, RequestStatus, new_id
from effaced.requests.execute import Executor
from effaced.requests.intake import IntakeRequest, receive
from effaced.requests.tables import Request
from effaced.triage.retry import redrive
from effaced.triage.subject_changed import cancel_for_changed_subject, confirm_subject

from .test_duplicates import rotate, run

ZOE = "UPDATE people SET email = 'zoe@people.example', crm = 'c-7' WHERE id = 1"
MANY = """
version: 1
subject: {table: people, key: id}
identifiers: {email: email}
tables:
  people: {columns: {id: delete, email: delete, crm: delete}}
  orders: {link: {to: people, on: {person: id}}, columns: {id: delete, person: delete}}
"""


def stopped(office: Office) -> Request:
    """A request whose execution has stopped."""
    request = office.receive(approvals=0).request
    office.sql(ZOE)
    assert office.executor.execute_now(request.id) is False
    return request


def correct(office: Office, value: str) -> UUID:
    with office.db.begin() as session:
        return receive(
            session,
            office.keyring,
            office.plan,
            IntakeRequest(
                RequestKind.RECTIFICATION,
                "1",
                corrections=[Correction("email", value)],
                api_key=office.key(0),
            ),
        ).request.id


class TestExecution:
    def test_stops_with_a_dead_letter_when_no_identifier_agrees(self, office: Office) -> None:
        request = stopped(office)
        assert office.people() == [1, 2]
        assert office.entries() == []
        waits = office.request(request.id)
        assert (waits.status, waits.execute_at) == (RequestStatus.APPROVED, None)
        (letter,) = office.letters()
        assert (letter.domain, letter.error_code) == (DeadLetterDomain.LOCAL_EXECUTION, "subject_changed")
        assert (letter.failure_type, letter.recommended_action) == ("SubjectChanged", "confirm_or_cancel")
        assert "zoe" not in office.payloads()

    @pytest.mark.parametrize(
        "change",
        ["email = 'new@people.example'", "crm = 'c-7'", "email = NULL", "email = 'ANNA@people.EXAMPLE'"],
    )
    def test_goes_on_when_one_identifier_or_reference_agrees(self, office: Office, change: str) -> None:
        request = office.receive(approvals=0).request
        office.sql(f"UPDATE people SET {change} WHERE id = 1")
        assert office.executor.execute_now(request.id)
        assert office.people() == [2]

    def test_stops_when_nothing_is_left_to_compare_with(self, office: Office) -> None:
        request = office.receive(approvals=0).request
        office.sql("UPDATE people SET email = NULL, crm = NULL WHERE id = 1")
        assert office.executor.execute_now(request.id) is False
        assert office.people() == [1, 2]

    @pytest.mark.parametrize("placeholder", ["-", " ", "n/a", "N/A ", "null", "???"])
    def test_a_placeholder_that_both_rows_have_is_no_agreement(
        self, office: Office, placeholder: str
    ) -> None:
        office.sql(f"UPDATE people SET email = '{placeholder}', crm = '{placeholder}' WHERE id = 1")
        request = office.receive(approvals=0).request
        assert office.executor.execute_now(request.id) is False
        assert office.people() == [1, 2]

    def test_goes_on_after_a_key_rotation(self, office: Office) -> None:
        request = office.receive(approvals=0).request
        office.sql("UPDATE people SET crm = NULL WHERE id = 1")
        rotate(office)
        assert office.executor.execute_now(request.id)

    def test_goes_by_the_key_alone_when_the_map_has_nothing_else(
        self, office: Office, tmp_path: Path
    ) -> None:
        (tmp_path / "bare.yaml").write_text(
            MAP.replace("{email: email}", "{number: id}").replace("{column: crm}", "{column: id}")
        )
        with office.db.read() as session:
            office.plan = planned(session, tmp_path / "bare.yaml")
        office.executor = Executor(office.db, office.keyring, office.plan, office.registry)
        request = office.receive(approvals=0).request
        office.sql(ZOE)
        assert office.executor.execute_now(request.id)

    def test_a_correction_of_somebody_else_stops_too(self, office: Office) -> None:
        request_id = correct(office, "new@people.example")
        office.sql(ZOE)
        assert office.executor.execute_now(request_id) is False
        assert [letter.error_code for letter in office.letters()] == ["subject_changed"]

    def test_a_correction_does_not_make_the_person_a_stranger_to_their_other_requests(
        self, office: Office
    ) -> None:
        office.sql("UPDATE people SET crm = NULL WHERE id = 1")
        erasure, second = office.receive(approvals=0).request, correct(office, "second@people.example")
        first = correct(office, "first@people.example")
        for request_id in (first, second, erasure.id):
            assert office.executor.execute_now(request_id), office.letters()
        assert office.people() == [2]

    def test_very_many_rows_of_somebody_else_are_not_changed_in_batches(
        self, office: Office, tmp_path: Path
    ) -> None:
        office.sql("CREATE TABLE orders (id integer PRIMARY KEY, person integer REFERENCES people (id))")
        office.sql("INSERT INTO orders (id, person) VALUES (1, 1), (2, 1), (3, 1)")
        (tmp_path / "many.yaml").write_text(MANY)
        with office.db.read() as session:
            office.plan = planned(session, tmp_path / "many.yaml")
        executor = Executor(office.db, office.keyring, office.plan, office.registry, batch_rows=1)
        request = office.receive(approvals=0).request
        office.sql(ZOE)
        assert executor.execute_due() == 1
        assert [letter.error_code for letter in office.letters()] == ["subject_changed"]
        assert office.request(request.id).batch_counts is None
        with office.db.read() as session:
            assert session.connection().exec_driver_sql("SELECT count(*) FROM orders").scalar() == 3


class TestDecision:
    def confirm(self, office: Office, letter_id: UUID) -> None:
        with office.db.begin() as session:
            confirm_subject(
                session,
                office.keyring,
                office.plan,
                letter_id,
                actor="officer:1",
                reason="same person, married",
            )

    def cancel(self, office: Office, letter_id: UUID) -> None:
        with office.db.begin() as session:
            cancel_for_changed_subject(
                session, office.keyring, letter_id, actor="officer:1", reason="somebody else"
            )

    def test_confirmed_it_is_executed_and_the_letter_resolved(self, office: Office) -> None:
        request = stopped(office)
        (letter,) = office.letters()
        self.confirm(office, letter.id)
        assert office.executor.execute_due() == 1
        assert office.people() == [2]
        assert [letter.status for letter in office.letters()] == [DeadLetterStatus.RESOLVED]
        assert "SUBJECT_CONFIRMED" in office.types(request.id)

    def test_confirmed_it_stops_again_if_the_row_changes_again(self, office: Office) -> None:
        stopped(office)
        (letter,) = office.letters()
        self.confirm(office, letter.id)
        office.sql("UPDATE people SET email = 'max@people.example', crm = NULL WHERE id = 1")
        assert office.executor.execute_due() == 1
        assert office.people() == [1, 2]

    def test_tried_again_without_a_decision_it_stops_again(self, office: Office) -> None:
        stopped(office)
        (letter,) = office.letters()
        with office.db.begin() as session:
            redrive(session, office.keyring, [letter.id], actor="officer:1", reason="again")
        office.executor.execute_due()
        assert office.people() == [1, 2]
        (letter,) = office.letters()
        assert (letter.status, letter.error_code) == (DeadLetterStatus.PENDING, "subject_changed")

    def test_cancelled_nothing_is_erased_and_the_letter_is_resolved(self, office: Office) -> None:
        request = stopped(office)
        (letter,) = office.letters()
        self.cancel(office, letter.id)
        closed = office.request(request.id)
        assert (closed.status, closed.subject_sealed) == (RequestStatus.CANCELLED, None)
        assert closed.completed_at is None
        assert (office.people(), office.entries()) == ([1, 2], [])
        (letter,) = office.letters()
        assert (letter.status, letter.resolution, letter.resolved_by) == (
            DeadLetterStatus.RESOLVED,
            "cancelled",
            "officer:1",
        )
        assert office.types(request.id)[-1] == "REQUEST_CANCELLED"

    def test_cancelled_the_request_of_whoever_has_the_key_now_is_reviewed_and_erases_them(
        self, office: Office
    ) -> None:
        """Anna's row is gone and Zoe has her key: Zoe's request waited behind Anna's."""
        from effaced.requests.approve import approve_and_execute

        anna = office.receive(approvals=0).request
        office.sql(ZOE)
        zoe = office.receive(approvals=0).request
        assert zoe.duplicate_of == anna.id
        assert office.executor.execute_now(anna.id) is False
        (letter,) = office.letters()
        self.cancel(office, letter.id)
        assert office.request(zoe.id).status is RequestStatus.REVIEW
        approve_and_execute(office.executor, zoe.id, by=office.olga.id, reason="checked")
        run(office)
        assert office.people() == [2]
        assert office.request(zoe.id).status is RequestStatus.COMPLETED

    def test_a_duplicate_of_somebody_else_is_not_completed_with_the_original(self, office: Office) -> None:
        """Zoe had Anna's key for a while; now the row is Anna's again."""
        office.sql("UPDATE people SET crm = NULL WHERE id = 1")
        anna = office.receive(approvals=0).request
        office.sql("UPDATE people SET email = 'zoe@people.example' WHERE id = 1")
        zoe = office.receive().request
        office.sql("UPDATE people SET email = 'anna@people.example' WHERE id = 1")
        assert office.executor.execute_now(anna.id)
        assert office.request(anna.id).status is RequestStatus.COMPLETED
        assert office.request(zoe.id).status is RequestStatus.REVIEW

    def test_a_letter_about_something_else_is_a_conflict(self, office: Office) -> None:
        request = office.receive(approvals=0).request
        office.break_execution()
        office.executor.execute_now(request.id)
        (letter,) = office.letters()
        for decide in (self.confirm, self.cancel):
            with pytest.raises(Conflict):
                decide(office, letter.id)
            with pytest.raises(NotFound):
                decide(office, new_id())

    def test_decided_once_it_can_not_be_decided_again(self, office: Office) -> None:
        stopped(office)
        (letter,) = office.letters()
        self.cancel(office, letter.id)
        with pytest.raises(Conflict):
            self.confirm(office, letter.id)
