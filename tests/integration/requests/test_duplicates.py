"""The same person asks for erasure more than once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from planned import planned
from requests_cast import MAP, Office
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from effaced.audit.events import RequestCancelled
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.crypto import Keyring, new_key
from effaced.model import OutboxStatus, RequestKind, RequestStatus, new_id
from effaced.notify.tables import Message
from effaced.requests.approve import approve_and_execute
from effaced.requests.close import close_unexecuted
from effaced.requests.complete import complete_operations
from effaced.requests.execute import Executor
from effaced.requests.intake import IntakeRequest, receive
from effaced.requests.status import RequestEvent
from effaced.requests.subject import open_subject
from effaced.requests.tables import Request
from effaced.resolvers.registry import ResolverRegistry
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner
from effaced.triage.retry import redrive

ORDERS = "  orders: {link: {to: people, on: {person: id}}, columns: {id: delete, person: delete}}\n"
ANNA = "INSERT INTO people VALUES (1, 'anna@people.example', 'c-1')"


def run(office: Office) -> None:
    outbox = Outbox(office.db.sessions, keyring=office.keyring)
    runner = SagaRunner(office.registry, outbox, on_operations_complete=complete_operations)
    asyncio.run(runner.run_once())


def abandon(office: Office) -> None:
    """Have every pending call given up: no resolver is registered for it any more."""
    registered = list(office.registry)
    office.registry = ResolverRegistry()
    run(office)
    assert OutboxStatus.ABANDONED in {entry.status for entry in office.entries()}
    office.registry = ResolverRegistry(tuple(registered))


def cancel(office: Office, request_id: UUID) -> None:
    with office.db.begin() as session:
        request = session.get_one(Request, request_id)
        by = f"officer:{office.olga.id}"
        event = RequestCancelled()
        close_unexecuted(session, request, RequestEvent.CANCELLED, event, resolution="cancelled", actor=by)


class TestBeforeExecution:
    def test_a_second_asking_has_its_own_row_ref_and_clock(self, office: Office) -> None:
        with clock.pretend(datetime(2026, 3, 2, 9, tzinfo=UTC)):
            first = office.receive().request
        with clock.pretend(datetime(2026, 3, 9, 9, tzinfo=UTC)):
            second = office.receive()
        assert (second.duplicate, second.request.duplicate_of) == (True, first.id)
        assert second.request.ref != first.ref
        assert second.request.due_at == datetime(2026, 4, 9, 23, 59, 59, tzinfo=UTC)
        assert (second.request.status, second.request.execute_at) == (RequestStatus.RECEIVED, None)
        assert open_subject(office.keyring, office.request(second.request.id)) == "1"

    def test_both_trails_say_so_without_naming_the_other_request(self, office: Office) -> None:
        first, second = office.receive().request, office.receive().request
        assert office.types(first.id) == ["REQUEST_RECEIVED", "REQUEST_REPEATED"]
        assert office.types(second.id) == ["REQUEST_RECEIVED", "REQUEST_DUPLICATE"]
        assert str(first.id) not in office.payloads()
        assert str(second.id) not in office.payloads()

    def test_a_third_asking_is_a_duplicate_of_the_first(self, office: Office) -> None:
        first = office.receive().request
        office.receive()
        assert office.receive().request.duplicate_of == first.id

    def test_a_duplicate_is_not_executed_even_if_its_key_needs_no_approval(self, office: Office) -> None:
        office.receive()
        second = office.receive(approvals=0).request
        assert office.executor.execute_now(second.id) is False
        assert office.executor.execute_due() == 0
        assert office.people() == [1, 2]

    def test_a_cancelled_request_does_not_answer_a_new_one(self, office: Office) -> None:
        first = office.receive().request
        cancel(office, first.id)
        assert office.receive().duplicate is False

    def test_a_refused_request_does_not_answer_a_new_one(self, office: Office) -> None:
        first = office.receive().request
        with office.db.begin() as session:
            refused = session.get_one(Request, first.id)
            refused.status, refused.closed_at = RequestStatus.REFUSED, clock.now()
        assert office.receive().duplicate is False

    def test_a_duplicate_is_recognised_after_a_key_rotation(self, office: Office) -> None:
        first = office.receive().request
        rotate(office)
        second = office.receive()
        assert (second.duplicate, second.request.duplicate_of) == (True, first.id)
        assert second.request.subject_hmac != first.subject_hmac

    def test_two_unexecuted_originals_of_one_person_are_impossible_in_the_database(
        self, office: Office
    ) -> None:
        first = office.receive().request
        with pytest.raises(IntegrityError), office.db.begin() as session:
            session.add(twin(first))
        with office.db.begin() as session:
            session.add(twin(first, duplicate_of=first.id))


class TestWithTheOriginal:
    def test_a_duplicate_completes_when_the_original_does_and_not_before(self, office: Office) -> None:
        first, second = office.receive(approvals=0).request, office.receive().request
        assert office.executor.execute_now(first.id)
        assert office.request(second.id).status is RequestStatus.RECEIVED
        abandon(office)
        assert office.request(second.id).closed_at is None
        (letter,) = office.letters()
        with office.db.begin() as session:
            redrive(session, office.keyring, [letter.id], actor="officer:1", reason="registered again")
        run(office)
        original, duplicate = office.request(first.id), office.request(second.id)
        assert (original.status, duplicate.status) == (RequestStatus.COMPLETED, RequestStatus.COMPLETED)
        assert duplicate.completed_at == duplicate.closed_at == original.completed_at
        assert (duplicate.subject_sealed, duplicate.executed_at) == (None, None)
        assert office.types(second.id)[-1] == "REQUEST_DUPLICATE_COMPLETED"

    def test_a_duplicate_completes_with_an_original_that_calls_nobody(self, office: Office) -> None:
        first, second = office.receive("2", approvals=0).request, office.receive("2").request
        assert office.executor.execute_now(first.id)
        assert office.request(second.id).status is RequestStatus.COMPLETED

    def test_the_completion_of_each_asking_is_announced(self, office: Office) -> None:
        first, second = office.receive("2", approvals=0).request, office.receive("2").request
        office.executor.execute_now(first.id)
        with office.db.read() as session:
            told = session.scalars(select(Message.request_id).where(Message.type == "request.completed"))
            assert set(told) == {first.id, second.id}

    def test_a_duplicate_that_knew_another_reference_is_reviewed_on_its_own(self, office: Office) -> None:
        """The original's calls never named it, so completing it with them would be a false report."""
        first = office.receive(approvals=0).request
        office.sql("UPDATE people SET crm = 'c-9' WHERE id = 1")
        second = office.receive().request
        office.sql("DELETE FROM people WHERE id = 1")
        assert office.executor.execute_now(first.id)
        released = office.request(second.id)
        assert (released.status, released.duplicate_of) == (RequestStatus.REVIEW, None)
        run(office)
        assert office.request(first.id).status is RequestStatus.COMPLETED
        assert office.request(second.id).status is RequestStatus.REVIEW
        approve_and_execute(office.executor, second.id, by=office.olga.id, reason="checked")
        assert len(office.entries()) == 2


class TestReleased:
    def test_the_first_duplicate_goes_to_review_when_the_original_is_cancelled(self, office: Office) -> None:
        first = office.receive().request
        second, third = office.receive(approvals=0).request, office.receive().request
        cancel(office, first.id)
        released, waiting = office.request(second.id), office.request(third.id)
        assert (released.status, released.duplicate_of) == (RequestStatus.REVIEW, None)
        assert released.approvals_needed == 1
        assert (waiting.status, waiting.duplicate_of) == (RequestStatus.RECEIVED, second.id)
        assert office.types(second.id)[-1] == "REQUEST_DUPLICATE_RELEASED"

    def test_a_released_duplicate_erases_and_takes_the_others_with_it(self, office: Office) -> None:
        first = office.receive().request
        second, third = office.receive().request, office.receive().request
        cancel(office, first.id)
        approve_and_execute(office.executor, second.id, by=office.olga.id, reason="checked")
        run(office)
        assert office.people() == [2]
        assert office.request(second.id).status is RequestStatus.COMPLETED
        assert office.request(third.id).status is RequestStatus.COMPLETED

    def test_duplicates_follow_another_open_original_rather_than_becoming_a_second_one(
        self, office: Office
    ) -> None:
        """Two processes with different keys can each take an original in during a rotation."""
        first = office.receive().request
        rotate(office)
        second = office.receive().request
        with office.db.begin() as session:
            other = twin(second, duplicate_of=None, status=RequestStatus.REVIEW)
            session.add(other)
            other_id = other.id
        cancel(office, first.id)
        assert office.request(second.id).duplicate_of == other_id


class TestAfterExecution:
    def test_a_person_whose_row_is_there_again_is_erased_again(self, office: Office) -> None:
        first = office.receive(approvals=0).request
        office.executor.execute_now(first.id)
        abandon(office)
        office.sql(ANNA)
        second = office.receive(approvals=0)
        assert (second.duplicate, second.request.duplicate_of) == (False, None)
        assert office.executor.execute_now(second.request.id)
        assert office.people() == [2]

    def test_somebody_else_with_a_reused_key_is_not_answered_with_the_first_one(self, office: Office) -> None:
        first = office.receive(approvals=0).request
        office.executor.execute_now(first.id)
        office.sql("INSERT INTO people VALUES (1, 'zoe@people.example', 'c-7')")
        second = office.receive(approvals=0)
        assert second.duplicate is False
        assert office.executor.execute_now(second.request.id)
        assert office.people() == [2]
        assert len(office.entries()) == 2

    def test_the_running_request_answers_when_nothing_is_left_to_change(self, office: Office) -> None:
        first = office.receive(approvals=0).request
        office.executor.execute_now(first.id)
        second = office.receive()
        assert (second.duplicate, second.request.duplicate_of) == (True, first.id)
        run(office)
        assert office.request(second.request.id).status is RequestStatus.COMPLETED

    def test_rows_left_of_somebody_whose_own_row_is_gone_are_a_new_request(
        self, office: Office, tmp_path: Path
    ) -> None:
        office.sql("CREATE TABLE orders (id integer PRIMARY KEY, person integer)")
        (tmp_path / "orders.yaml").write_text(MAP.replace("rectify:", f"{ORDERS}rectify:"))
        with office.db.read() as session:
            office.plan = planned(session, tmp_path / "orders.yaml")
        office.executor = Executor(office.db, office.keyring, office.plan, office.registry)
        first = office.receive(approvals=0).request
        office.executor.execute_now(first.id)
        office.sql("INSERT INTO orders VALUES (1, 1)")
        second = office.receive(approvals=0)
        assert second.duplicate is False
        assert office.executor.execute_now(second.request.id)
        with office.db.read() as session:
            assert session.scalar(text("SELECT count(*) FROM orders")) == 0

    def test_the_latest_of_several_running_ones_answers(self, office: Office) -> None:
        first = office.receive(approvals=0).request
        office.executor.execute_now(first.id)
        abandon(office)
        office.sql(ANNA)
        second = office.receive(approvals=0).request
        office.executor.execute_now(second.id)
        assert office.receive().request.duplicate_of == second.id

    def test_somebody_who_is_gone_and_completed_is_not_known(self, office: Office) -> None:
        from effaced.core.errors import Refused

        first = office.receive(approvals=0).request
        office.executor.execute_now(first.id)
        run(office)
        with pytest.raises(Refused):
            office.receive()


def test_a_correction_is_never_a_duplicate(office: Office) -> None:
    from effaced.model import Correction

    office.receive()
    for value in ("a@people.example", "b@people.example"):
        with office.db.begin() as session:
            taken = receive(
                session,
                office.keyring,
                office.plan,
                IntakeRequest(
                    RequestKind.RECTIFICATION,
                    "1",
                    corrections=[Correction("email", value)],
                    api_key=office.key(),
                ),
            )
        assert (taken.duplicate, taken.request.duplicate_of) == (False, None)


def rotate(office: Office) -> None:
    import base64

    old = ",".join(f"{key_id}:{base64.b64encode(key).decode()}" for key_id, key in office.keyring.keys)
    office.keyring = office.executor.keyring = Keyring.parse(f"{new_key('k2')},{old}")


def twin(request: Request, **changes: object) -> Request:
    values = {each.key: getattr(request, each.key) for each in Request.__mapper__.column_attrs}
    values |= {"id": new_id(), "ref": f"ER-{new_id().hex[-8:].upper()}"}
    return Request(**(values | changes))


def test_events_of_duplicates_hold_no_ids(office: Office) -> None:
    office.receive("2", approvals=0)
    office.receive("2")
    office.executor.execute_due()
    with office.db.read() as session:
        events = session.execute(
            select(AuditEvent.type, AuditEvent.payload).where(AuditEvent.type.like("REQUEST_DUPLICATE%"))
        ).all()
    assert {(type_, str(payload)) for type_, payload in events} == {
        ("REQUEST_DUPLICATE", "{}"),
        ("REQUEST_DUPLICATE_COMPLETED", "{}"),
    }


def test_an_asking_during_the_execution_waits_for_it_and_ends_with_it(postgres_office: Office) -> None:
    office = postgres_office
    first = office.receive(approvals=0).request
    key = office.key()
    with ThreadPoolExecutor(1) as pool:
        with office.db.begin() as session:
            office.executor.carry_out(session, session.get_one(Request, first.id, with_for_update=True))
            asking = pool.submit(office.receive, key=key)
            while not _somebody_waits_for_a_person(office) and not asking.done():
                pass
            assert not asking.done()
        second = asking.result(timeout=60)
    assert second.request.duplicate_of == first.id
    run(office)
    assert office.request(second.request.id).status is RequestStatus.COMPLETED


def _somebody_waits_for_a_person(office: Office) -> bool:
    with office.db.read() as session:
        waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(session.scalar(waiting))


class TestRetained:
    """The row stays under a retention duty, with everything else of it erased."""

    @pytest.fixture
    def retaining(self, office: Office, tmp_path: Path) -> Office:
        retain = "{retain: {basis: tax law, until: 2099-01-01}}"
        (tmp_path / "retain.yaml").write_text(
            MAP.replace(
                "{id: delete, email: delete, crm: delete}",
                f"{{id: not_personal, email: {{anonymise: fixed_text}}, crm: {retain}}}",
            )
        )
        with office.db.read() as session:
            office.plan = planned(session, tmp_path / "retain.yaml")
        office.executor = Executor(office.db, office.keyring, office.plan, office.registry)
        return office

    def test_what_is_only_retained_is_answered_by_the_running_request(self, retaining: Office) -> None:
        first = retaining.receive(approvals=0).request
        assert retaining.executor.execute_now(first.id), retaining.letters()
        assert retaining.receive().request.duplicate_of == first.id

    def test_a_reference_that_the_running_request_did_not_know_is_a_new_request(
        self, retaining: Office
    ) -> None:
        first = retaining.receive(approvals=0).request
        assert retaining.executor.execute_now(first.id)
        retaining.sql("UPDATE people SET crm = 'c-9' WHERE id = 1")
        assert retaining.receive().duplicate is False

    def test_what_was_filled_in_again_is_a_new_request(self, retaining: Office) -> None:
        first = retaining.receive(approvals=0).request
        assert retaining.executor.execute_now(first.id)
        retaining.sql("UPDATE people SET email = 'anna@people.example' WHERE id = 1")
        assert retaining.receive().duplicate is False
