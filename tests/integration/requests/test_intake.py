"""A request comes in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from requests_cast import Office
from sqlalchemy import func, select

from effaced.core import clock
from effaced.core.errors import Refused
from effaced.model import Correction, RequestKind, RequestStatus
from effaced.requests.identifiers import find_requests
from effaced.requests.intake import IntakeRequest, receive
from effaced.requests.subject import open_corrections, open_subject
from effaced.requests.tables import Request


def test_waits_for_review_when_its_key_asks_for_an_approval(office: Office) -> None:
    request = office.receive(approvals=1).request
    assert (request.status, request.execute_at) == (RequestStatus.REVIEW, None)


def test_is_approved_at_once_when_its_key_asks_for_none(office: Office) -> None:
    request = office.receive(approvals=0).request
    assert request.status is RequestStatus.APPROVED
    assert request.execute_at is not None


def test_is_due_one_month_later(office: Office) -> None:
    with clock.pretend(datetime(2026, 3, 2, 9, tzinfo=UTC)):
        request = office.receive().request
    assert request.due_at == datetime(2026, 4, 2, 23, 59, 59, tzinfo=UTC)


def test_an_unknown_person_is_refused_by_field_and_changes_nothing(office: Office) -> None:
    with pytest.raises(Refused) as caught:
        office.receive("4711")
    assert [problem.where for problem in caught.value.problems] == ["subject.id"]
    assert "4711" not in str(caught.value)
    with office.db.read() as session:
        assert session.scalar(select(func.count()).select_from(Request)) == 0


def test_a_rectification_that_corrects_nothing_is_refused(office: Office) -> None:
    """It could never be executed: nobody would know what to write."""
    with pytest.raises(Refused) as caught, office.db.begin() as session:
        receive(session, office.keyring, office.plan, IntakeRequest(RequestKind.RECTIFICATION, "1"))
    assert [problem.where for problem in caught.value.problems] == ["corrections"]


def correct(office: Office, *corrections: Correction) -> Request:
    with office.db.begin() as session:
        return receive(
            session,
            office.keyring,
            office.plan,
            IntakeRequest(RequestKind.RECTIFICATION, "1", corrections=corrections, api_key=office.key()),
        ).request


def test_a_rectification_keeps_the_names_and_seals_the_values(office: Office) -> None:
    request = office.request(correct(office, Correction("email", "new@people.example")).id)
    assert (request.kind, request.correction_fields) == (RequestKind.RECTIFICATION, ["email"])
    assert b"new@people" not in (request.corrections_sealed or b"")
    assert "new@people" not in office.payloads()
    assert open_corrections(office.keyring, request) == (Correction("email", "new@people.example"),)


def test_a_correction_that_the_map_does_not_allow_is_refused_and_changes_nothing(office: Office) -> None:
    with pytest.raises(Refused) as caught:
        correct(office, Correction("crm", "c-9"))
    assert [str(problem) for problem in caught.value.problems] == [
        "corrections.crm: can't be corrected; the data map allows email"
    ]
    with office.db.read() as session:
        assert session.scalar(select(func.count()).select_from(Request)) == 0


def test_what_is_stored_of_the_person_is_sealed_or_hashed(office: Office) -> None:
    request = office.receive(reason="Anna called us").request
    row = office.request(request.id)
    assert open_subject(office.keyring, row) == "1"
    assert b"c-1" not in (row.subject_sealed or b"")
    assert "Anna" not in office.payloads()


@pytest.mark.parametrize("spelling", ["anna@people.example", " ANNA@People.Example "])
def test_is_found_by_an_identifier_however_it_is_spelt(office: Office, spelling: str) -> None:
    request = office.receive().request
    with office.db.read() as session:
        assert find_requests(session, office.keyring, "email", spelling) == [request.id]
        assert find_requests(session, office.keyring, "email", "bert@people.example") == []
