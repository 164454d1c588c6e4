"""An erasure calls every reference it knows: the one recorded at intake and the one in the row now."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from planned import planned
from requests_cast import MAP, Office

from effaced.model import RequestStatus, SubjectRef
from effaced.requests.execute import Executor
from effaced.requests.subject import seal_subject
from effaced.requests.tables import Request
from effaced.resolvers.protocols import Erased
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.triage.subject_changed import cancel_for_changed_subject, confirm_subject

from .test_duplicates import run

RETAIN = "{retain: {basis: tax law, until: 2099-01-01}}"


class Vendor:
    """Another system, with the contacts it still has and the references it was called with."""

    def __init__(self, *contacts: str) -> None:
        self.contacts = set(contacts)
        self.called: list[str] = []

    async def erase_subject(self, ref: SubjectRef, *, key: UUID) -> Erased:
        self.called.append(ref.value)
        self.contacts.discard(ref.value)
        return Erased()


@pytest.fixture
def vendor(office: Office) -> Vendor:
    vendor = Vendor("c-1", "c-2")
    office.registry = ResolverRegistry((Registered("crm", "crm_contact", vendor),))
    office.executor = Executor(office.db, office.keyring, office.plan, office.registry)
    return vendor


def retain(office: Office, folder: Path) -> None:
    """From now on the row stays after an erasure, and its reference with it."""
    columns = f"{{id: not_personal, email: {{anonymise: fixed_text}}, crm: {RETAIN}}}"
    (folder / "retain.yaml").write_text(MAP.replace("{id: delete, email: delete, crm: delete}", columns))
    with office.db.read() as session:
        office.plan = planned(session, folder / "retain.yaml")
    office.executor = Executor(office.db, office.keyring, office.plan, office.registry)


@pytest.mark.parametrize(
    ("change", "called"),
    [
        ("UPDATE people SET crm = NULL WHERE id = 1", ["c-1"]),
        ("UPDATE people SET crm = 'c-2' WHERE id = 1", ["c-1", "c-2"]),
        ("UPDATE people SET crm = 'c-1' WHERE id = 1", ["c-1"]),
        ("DELETE FROM people WHERE id = 1", ["c-1"]),
    ],
)
def test_the_reference_recorded_at_intake_is_called_whatever_the_row_says_now(
    office: Office, vendor: Vendor, change: str, called: list[str]
) -> None:
    request = office.receive(approvals=0).request
    office.sql(change)
    assert office.executor.execute_now(request.id)
    run(office)
    assert office.request(request.id).status is RequestStatus.COMPLETED
    assert sorted(vendor.called) == called
    assert "c-1" not in vendor.contacts


def test_confirmed_as_the_same_person_both_references_are_called(office: Office, vendor: Vendor) -> None:
    request = office.receive(approvals=0).request
    office.sql("UPDATE people SET email = 'new@people.example', crm = 'c-2' WHERE id = 1")
    assert office.executor.execute_now(request.id) is False
    (letter,) = office.letters()
    with office.db.begin() as session:
        confirm_subject(
            session, office.keyring, office.plan, letter.id, actor="officer:1", reason="same person"
        )
    assert office.executor.execute_due() == 1
    run(office)
    assert office.request(request.id).status is RequestStatus.COMPLETED
    assert sorted(vendor.called) == ["c-1", "c-2"]


def test_cancelled_as_somebody_else_no_reference_is_called(office: Office, vendor: Vendor) -> None:
    request = office.receive(approvals=0).request
    office.sql("UPDATE people SET email = 'zoe@people.example', crm = 'c-2' WHERE id = 1")
    assert office.executor.execute_now(request.id) is False
    (letter,) = office.letters()
    with office.db.begin() as session:
        cancel_for_changed_subject(
            session, office.keyring, letter.id, actor="officer:1", reason="somebody else"
        )
    assert office.executor.execute_due() == 0
    run(office)
    assert vendor.called == []
    assert office.request(request.id).status is RequestStatus.CANCELLED


class TestLaterAskings:
    """What a running erasure answers: askings that know nothing it has not called."""

    @pytest.fixture
    def first(self, office: Office, vendor: Vendor, tmp_path: Path) -> Request:
        """Received with `c-1`, executed with `c-2` in the row; its calls are still to be made."""
        retain(office, tmp_path)
        request = office.receive(approvals=0).request
        office.sql("UPDATE people SET crm = 'c-2' WHERE id = 1")
        assert office.executor.execute_now(request.id)
        assert vendor.called == []
        return request

    @pytest.mark.parametrize("ref", ["c-1", "c-2"])
    def test_a_duplicate_completes_only_with_its_own_reference_called(
        self, office: Office, vendor: Vendor, first: Request, ref: str
    ) -> None:
        office.sql(f"UPDATE people SET crm = '{ref}' WHERE id = 1")
        second = office.receive().request
        assert second.duplicate_of == first.id
        run(office)
        assert office.request(second.id).status is RequestStatus.COMPLETED
        assert ref in vendor.called

    def test_a_reference_that_was_never_called_is_a_new_request(self, office: Office, first: Request) -> None:
        assert first.duplicate_of is None
        office.sql("UPDATE people SET crm = 'c-9' WHERE id = 1")
        assert office.receive().duplicate is False

    def test_an_erasure_that_did_not_record_its_calls_answers_no_reference(
        self, office: Office, first: Request
    ) -> None:
        """Executed by an earlier version, which did not always call what was recorded at intake."""
        with office.db.begin() as session:
            executed = session.get_one(Request, first.id)
            executed.subject_sealed = seal_subject(office.keyring, first.id, "1", {"crm_contact": "c-1"})
        office.sql("UPDATE people SET crm = 'c-1' WHERE id = 1")
        assert office.receive().duplicate is False
