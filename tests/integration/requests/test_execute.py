"""Approval and execution: one transaction, or a dead letter."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from quick_database import open_quickly
from requests_cast import EXECUTE_KEEP, Office, trigger_function
from sqlalchemy import text

from effaced.core import clock
from effaced.core.errors import Conflict, NotFound, Refused
from effaced.model import DeadLetterDomain, DeadLetterStatus, OutboxStatus, RequestStatus, new_id
from effaced.requests.approve import approve, approve_and_execute
from effaced.requests.complete import complete_operations
from effaced.requests.execute import Executor
from effaced.requests.tables import Request
from effaced.resolvers.noop import NoopResolver
from effaced.resolvers.registry import Registered
from effaced.saga.facade import Outbox
from effaced.saga.runner import SagaRunner
from effaced.triage.retry import redrive

REASON = "Identity checked."


def run(office: Office) -> None:
    outbox = Outbox(office.db.sessions, keyring=office.keyring)
    runner = SagaRunner(office.registry, outbox, on_operations_complete=complete_operations)
    asyncio.run(runner.run_once())


class TestApprove:
    def test_the_last_approval_erases_and_enqueues_in_one_transaction(self, office: Office) -> None:
        request = office.receive().request
        approve_and_execute(office.executor, request.id, by=office.olga.id, reason=REASON)
        assert office.people() == [2]
        assert [entry.resolver for entry in office.entries()] == ["crm"]
        assert office.request(request.id).status is RequestStatus.RUNNING
        assert office.types(request.id) == [
            "REQUEST_RECEIVED",
            "REQUEST_APPROVED",
            "LOCAL_ERASURE_EXECUTED",
            "LOCAL_VERIFIED",
        ]

    def test_rolled_back_it_has_not_happened(self, office: Office) -> None:
        request = office.receive().request

        class Undone(Exception):
            pass

        def approve_and_fail() -> None:
            with office.db.begin() as session:
                approve(session, office.keyring, request.id, by=office.olga, reason=REASON)
                raise Undone

        with pytest.raises(Undone):
            approve_and_fail()
        assert office.people() == [1, 2]
        assert office.entries() == []
        assert office.types(request.id) == ["REQUEST_RECEIVED"]

    def test_whoever_entered_it_cannot_approve_it(self, office: Office) -> None:
        request = office.receive(entered_by=office.olga).request
        with pytest.raises(Refused, match="entered"), office.db.begin() as session:
            approve(session, office.keyring, request.id, by=office.olga, reason=REASON)
        approve_and_execute(office.executor, request.id, by=office.otto.id, reason=REASON)

    def test_an_auditor_cannot(self, office: Office) -> None:
        request = office.receive().request
        with pytest.raises(Refused, match="Your role reads everything"), office.db.begin() as session:
            approve(session, office.keyring, request.id, by=office.ada, reason=REASON)

    def test_a_reason_is_needed(self, office: Office) -> None:
        request = office.receive().request
        with pytest.raises(Refused) as caught, office.db.begin() as session:
            approve(session, office.keyring, request.id, by=office.olga, reason="  ")
        assert [problem.where for problem in caught.value.problems] == ["reason"]

    def test_twice_is_a_conflict(self, office: Office) -> None:
        request = office.receive().request
        approve_and_execute(office.executor, request.id, by=office.olga.id, reason=REASON)
        with pytest.raises(Conflict), office.db.begin() as session:
            approve(session, office.keyring, request.id, by=office.otto, reason=REASON)

    def test_two_officers_at_once_are_one_approval_and_one_conflict(self, postgres_office: Office) -> None:
        """Both have the page open: the second session read the request before the first one approved."""
        office = postgres_office
        request = office.receive().request
        with office.db.begin() as late:
            assert late.get_one(Request, request.id).status is RequestStatus.REVIEW
            approve_and_execute(office.executor, request.id, by=office.olga.id, reason=REASON)
            with pytest.raises(Conflict):
                approve(late, office.keyring, request.id, by=office.otto, reason=REASON)
        assert office.request(request.id).status is RequestStatus.RUNNING

    def test_an_unknown_request_is_not_found(self, office: Office) -> None:
        with pytest.raises(NotFound), office.db.begin() as session:
            approve(session, office.keyring, new_id(), by=office.olga, reason=REASON)


class TestExecute:
    def test_completes_at_once_when_nobody_else_knows_the_person(self, office: Office) -> None:
        request = office.receive("2", approvals=0).request
        assert office.executor.execute_now(request.id)
        done = office.request(request.id)
        assert (done.status, done.subject_sealed) == (RequestStatus.COMPLETED, None)
        assert done.completed_at is not None

    def test_everything_about_the_person_is_forgotten_at_completion(self, office: Office) -> None:
        request = office.receive(approvals=0).request
        office.executor.execute_now(request.id)
        run(office)
        assert office.request(request.id).status is RequestStatus.COMPLETED
        assert office.request(request.id).subject_sealed is None
        assert [entry.ref_sealed for entry in office.entries()] == [None]

    def test_is_refused_without_the_approvals_it_needs_and_changes_nothing(self, office: Office) -> None:
        request = office.receive(approvals=1).request
        with pytest.raises(Conflict, match="review"), office.db.begin() as session:
            office.executor.carry_out(session, session.get_one(Request, request.id))
        assert office.people() == [1, 2]
        assert office.entries() == []

    def test_a_new_request_can_follow_a_completed_one(self, office: Office) -> None:
        first = office.receive("2", approvals=0).request
        office.executor.execute_now(first.id)
        with office.db.begin() as session:
            session.execute(text("INSERT INTO people VALUES (2, 'bert@people.example', NULL)"))
        assert office.receive("2").duplicate is False

    def test_happens_once_however_often_it_is_asked_for(self, office: Office) -> None:
        request = office.receive(approvals=0).request
        assert office.executor.execute_now(request.id) is True
        assert office.executor.execute_now(request.id) is False
        assert len(office.entries()) == 1

    def test_due_requests_are_found_by_the_scheduler(self, office: Office) -> None:
        office.receive("1", approvals=0)
        office.receive("2", approvals=0)
        assert office.executor.execute_due() == 2
        assert office.people() == []

    def test_somebody_gone_meanwhile_is_still_erased_elsewhere(self, office: Office) -> None:
        request = office.receive(approvals=0).request
        with office.db.begin() as session:
            session.execute(text("DELETE FROM people WHERE id = 1"))
        office.executor.execute_now(request.id)
        assert [entry.resolver for entry in office.entries()] == ["crm"]


class TestFailure:
    def test_undoes_itself_alone_and_opens_a_dead_letter(self, office: Office) -> None:
        request = office.receive().request
        office.break_execution()
        approve_and_execute(office.executor, request.id, by=office.olga.id, reason=REASON)
        assert office.people() == [1, 2]
        assert office.entries() == []
        stands = office.request(request.id)
        assert (stands.status, stands.execute_at) == (RequestStatus.APPROVED, None)
        (letter,) = office.letters()
        assert (letter.domain, letter.request_id) == (DeadLetterDomain.LOCAL_EXECUTION, request.id)
        assert letter.failure_type == "DatabaseRefusal"

    def test_redriven_after_the_cause_is_gone_it_succeeds_and_resolves(self, office: Office) -> None:
        request = office.receive(approvals=0).request
        office.break_execution()
        office.executor.execute_now(request.id)
        office.mend_execution()
        (letter,) = office.letters()
        with office.db.begin() as session:
            results = redrive(session, office.keyring, [letter.id], actor="officer:1", reason="rule removed")
        assert [result.requeued for result in results] == [True]
        assert office.executor.execute_due() == 1
        assert office.people() == [2]
        assert [letter.status for letter in office.letters()] == [DeadLetterStatus.RESOLVED]

    def test_rows_that_the_database_keeps_quietly_are_noticed(self, office: Office) -> None:
        """A soft delete: the statement succeeds, and the person is still there."""
        request = office.receive(approvals=0).request
        with office.db.begin() as session:
            if session.get_bind().dialect.name == "sqlite":
                session.execute(
                    text("CREATE TRIGGER soft BEFORE DELETE ON people BEGIN SELECT RAISE(IGNORE); END")
                )
            else:
                session.execute(text(trigger_function("keep", "RETURN NULL")))
                session.execute(text(f"CREATE TRIGGER keep BEFORE DELETE ON people {EXECUTE_KEEP}"))
        assert office.executor.execute_now(request.id) is False
        (letter,) = office.letters()
        assert (letter.failure_type, letter.context["tables"]) == ("StillReachable", ["people"])
        assert office.entries() == []

    def test_a_constraint_that_waits_for_the_commit_holds_nobody_else_up(
        self, postgres_office: Office
    ) -> None:
        """PostgreSQL only: in SQLite only a foreign key can wait, and its table has to be in the data map."""
        office = postgres_office
        stuck = office.receive("1", approvals=0).request
        free = office.receive("2", approvals=0).request
        office.break_commit_of_anna()
        assert office.executor.execute_due() == 2
        assert office.request(free.id).status is RequestStatus.COMPLETED
        assert office.request(stuck.id).status is RequestStatus.APPROVED
        assert [letter.request_id for letter in office.letters()] == [stuck.id]

    def test_a_constraint_that_waits_for_the_commit_leaves_the_approval_standing(
        self, postgres_office: Office
    ) -> None:
        office = postgres_office
        request = office.receive("1").request
        office.break_commit_of_anna()
        stands = approve_and_execute(office.executor, request.id, by=office.olga.id, reason=REASON)
        assert (stands.status, stands.executed_at) == (RequestStatus.APPROVED, None)
        assert stands.execute_at is None
        assert [letter.request_id for letter in office.letters()] == [request.id]
        assert "REQUEST_APPROVED" in office.types(request.id)
        assert (office.people(), office.entries()) == ([1, 2], [])

    def test_a_lock_that_is_not_given_is_tried_again_without_a_dead_letter(
        self, postgres_office: Office, migrated_postgres_url: str
    ) -> None:
        office = postgres_office
        request = office.receive(approvals=0).request
        hasty = open_quickly(migrated_postgres_url, lock_timeout_ms=50)
        executor = Executor(hasty, office.keyring, office.plan, office.registry)
        with office.db.begin() as session:
            session.execute(text("SELECT * FROM people FOR UPDATE"))
            assert executor.execute_now(request.id) is False
        hasty.dispose()
        waits = office.request(request.id)
        assert (waits.status, office.letters()) == (RequestStatus.APPROVED, [])
        assert waits.execute_at is not None
        with clock.pretend(waits.execute_at + timedelta(seconds=1)):
            assert office.executor.execute_due() == 1
        assert office.people() == [2]


class TestRedrive:
    def abandoned(self, office: Office) -> None:
        office.registry = office.registry.__class__()  # nobody is registered any more
        request = office.receive(approvals=0).request
        office.executor.execute_now(request.id)
        run(office)
        assert [entry.status for entry in office.entries()] == [OutboxStatus.ABANDONED]

    def test_puts_the_entry_back_and_marks_the_letter(self, office: Office) -> None:
        self.abandoned(office)
        (letter,) = office.letters()
        with office.db.begin() as session:
            redrive(session, office.keyring, [letter.id], actor="officer:1", reason="registered again")
        assert [entry.status for entry in office.entries()] == [OutboxStatus.PENDING]
        assert [letter.status for letter in office.letters()] == [DeadLetterStatus.REPLAYING]

    def test_a_failed_verification_leaves_its_event_on_the_request(self, office: Office) -> None:
        class Lies(NoopResolver):
            async def verify_absent(self, ref: object, *, key: object) -> bool:
                return False

        office.registry.register(Registered("crm", "crm_contact", Lies()))
        request = office.receive(approvals=0).request
        office.executor.execute_now(request.id)
        run(office)
        (letter,) = office.letters()
        with office.db.begin() as session:
            redrive(session, office.keyring, [letter.id], actor="officer:1", reason="ask the vendor")
        assert office.types(request.id)[-1] == "ERASURE_READ_BACK_REQUESTED"

    def test_says_for_each_what_became_of_it(self, office: Office) -> None:
        self.abandoned(office)
        (letter,) = office.letters()
        stranger = new_id()
        for expected in (["is tried again", "does not exist"], ["is already replaying", "does not exist"]):
            with office.db.begin() as session:
                results = redrive(
                    session, office.keyring, [letter.id, stranger], actor="officer:1", reason="x"
                )
            assert [result.why for result in results] == expected

    @pytest.mark.parametrize(("number", "reason"), [(0, "x"), (501, "x"), (1, " ")])
    def test_refuses_none_too_many_and_no_reason(self, office: Office, number: int, reason: str) -> None:
        with pytest.raises(Refused), office.db.begin() as session:
            redrive(
                session, office.keyring, [new_id() for _ in range(number)], actor="officer:1", reason=reason
            )
