"""What people decide about letters: assign, note, resolve, reject, give up; and what they may not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from letters_cast import NO, Post
from saga_cast import KEYRING, NOON, CheckingVendor, Vendor
from sqlalchemy import select, update
from sqlalchemy import text as sql
from waiting import PATIENCE, eventually

from effaced.audit.notes import read_notes
from effaced.audit.tables import Note
from effaced.core import clock
from effaced.core.clock import ManualClock
from effaced.core.errors import Conflict, NotFound, Refused, ResolverError
from effaced.deadletters import decide as decisions
from effaced.deadletters.archive import archive_settled
from effaced.deadletters.assign import add_note, assign, notes_of
from effaced.deadletters.context import MOST_FAILURES
from effaced.deadletters.purge import purge
from effaced.deadletters.read import DeadLetterFilter, facets, get_dead_letter, groups, list_dead_letters
from effaced.deadletters.record import record_failures
from effaced.deadletters.repository import SQLFailedOperationRepository
from effaced.deadletters.rules import DECISIONS, SLA, Failure
from effaced.deadletters.tables import DeadLetter
from effaced.model import (
    DeadLetterDomain,
    DeadLetterStatus,
    DeliveryStatus,
    NoticeType,
    OutboxStatus,
    RequestStatus,
    Role,
    StepOutcome,
    Verification,
    new_id,
)
from effaced.notify.tables import Delivery, Message
from effaced.outbox.tables import OutboxRow
from effaced.requests.read import Blocker, RequestFilter, list_requests
from effaced.requests.tables import Request
from effaced.triage.attest import attest

S = DeadLetterStatus


def decide(post: Post, letter_id: UUID, to: DeadLetterStatus, reason: str = "seen to") -> None:
    with post.db.begin() as session:
        decisions.decide(session, KEYRING, letter_id, to, actor="officer:7", reason=reason)


@pytest.fixture
def undelivered(post: Post) -> UUID:
    """A letter with no erasure behind it."""
    return add_failure(post)


def add_failure(post: Post, domain: DeadLetterDomain = DeadLetterDomain.MESSAGE, **more: object) -> UUID:
    known = {each.id for each in post.letters()}
    facts = {
        "request_id": None,
        "subject": None,
        "error": "Refused",
        "code": "http_400",
        "entry_id": new_id(),
    }
    with post.db.begin() as session:
        record_failures(session, [Failure(domain=domain, **(facts | more))])  # type: ignore[arg-type]
    (made,) = {each.id for each in post.letters()} - known
    return made


class TestDecide:
    @pytest.mark.parametrize("to", list(S))
    def test_only_what_the_table_has(self, post: Post, undelivered: UUID, to: DeadLetterStatus) -> None:
        """Every pair of states, walked."""
        for source in S:
            with post.db.begin() as session:
                session.get_one(DeadLetter, undelivered).status = source
            if source in DECISIONS.get(to, ()):
                decide(post, undelivered, to)
                assert post.letter(undelivered).status is to
            else:
                with pytest.raises(Conflict, match=source.value):
                    decide(post, undelivered, to)
                assert post.letter(undelivered).status is source

    def test_resolved_says_when_how_and_by_whom(
        self, post: Post, undelivered: UUID, noon: ManualClock
    ) -> None:
        decide(post, undelivered, S.RESOLVED)
        found = post.letter(undelivered)
        assert (found.resolved_at, found.resolution, found.resolved_by) == (NOON, "by_hand", "officer:7")

    def test_opened_again_it_is_as_before(self, post: Post, undelivered: UUID) -> None:
        decide(post, undelivered, S.REJECTED)
        decide(post, undelivered, S.PENDING)
        found = post.letter(undelivered)
        assert (found.resolved_at, found.resolved_by) == (None, None)

    def test_is_an_event_that_points_at_an_erasable_note(self, post: Post, undelivered: UUID) -> None:
        decide(post, undelivered, S.PERMANENTLY_FAILED, "Anna has moved away")
        (event,) = post.events("DEAD_LETTER_DECIDED")
        assert (event.actor, event.payload["prior"], event.payload["status"]) == (
            "officer:7",
            "pending",
            "permanently_failed",
        )
        assert "Anna" not in str(event.payload)
        with post.db.read() as session:
            texts = read_notes(session, KEYRING, [UUID(event.payload["note_id"])])
        assert list(texts.values()) == ["Anna has moved away"]

    def test_needs_a_reason_and_a_letter(self, post: Post, undelivered: UUID) -> None:
        with pytest.raises(Refused, match="reason"):
            decide(post, undelivered, S.RESOLVED, "  ")
        with pytest.raises(NotFound):
            decide(post, new_id(), S.RESOLVED)
        assert post.letter(undelivered).status is S.PENDING

    @pytest.mark.parametrize("to", [S.RESOLVED, S.REJECTED])
    def test_does_not_close_over_an_erasure_that_was_not_made(self, post: Post, to: DeadLetterStatus) -> None:
        (letter_id,) = post.fail()
        with pytest.raises(Conflict, match="has not succeeded"):
            decide(post, letter_id, to)
        decide(post, letter_id, S.PERMANENTLY_FAILED)
        assert post.letter(letter_id).status is S.PERMANENTLY_FAILED

    def test_a_given_up_letter_still_holds_its_request_up(self, post: Post) -> None:
        (letter_id,) = post.fail()
        decide(post, letter_id, S.PERMANENTLY_FAILED)
        with post.db.read() as session:
            which = RequestFilter(blocked=Blocker.ABANDONED)
            held = list_requests(session, which, clock.now())
        assert [each.id for each in held.items] == [post.letter(letter_id).request_id]
        assert [block.by for block in held.items[0].blocks] == [Blocker.ABANDONED]

    def test_a_given_up_letter_is_resolved_when_the_erasure_is_attested(self, post: Post) -> None:
        (letter_id,) = post.fail()
        decide(post, letter_id, S.PERMANENTLY_FAILED)
        with post.db.begin() as session:
            attest(session, KEYRING, post.entry().entry_id, actor="officer:8", reason="by phone")
        found = post.letter(letter_id)
        assert (found.status, found.resolution, found.resolved_by) == (S.RESOLVED, "attested", "officer:8")

    def test_a_correction_that_was_not_made_is_closed_by_attesting_it(self, post: Post) -> None:
        letter_id = post.fail_correction()
        with pytest.raises(Conflict, match="has not succeeded"):
            decide(post, letter_id, S.RESOLVED, "corrected it myself")
        with post.db.begin() as session:
            attest(session, KEYRING, post.entry().entry_id, actor="officer:8", reason="corrected it myself")
        assert (post.letter(letter_id).status, post.letter(letter_id).resolution) == (S.RESOLVED, "attested")

    @pytest.mark.parametrize("status", [RequestStatus.APPROVED, RequestStatus.ON_HOLD])
    def test_does_not_close_over_a_request_that_is_still_to_be_executed(
        self, post: Post, status: RequestStatus
    ) -> None:
        request_id = post.request(("crm", "c-1"))
        with post.db.begin() as session:
            request = session.get_one(Request, request_id)
            request.status, request.executed_at, request.execute_at = status, None, None
        domain = DeadLetterDomain.LOCAL_EXECUTION
        letter_id = add_failure(post, domain, request_id=request_id, entry_id=None)
        with pytest.raises(Conflict, match="was not executed"):
            decide(post, letter_id, S.RESOLVED)
        with post.db.begin() as session:
            request = session.get_one(Request, request_id)
            request.status, request.closed_at = RequestStatus.CANCELLED, NOON
        decide(post, letter_id, S.RESOLVED)
        assert post.letter(letter_id).status is S.RESOLVED

    def test_an_undelivered_message_is_closed_with_a_reason_and_then_archived(
        self, post: Post, noon: ManualClock
    ) -> None:
        delivery_id = new_id()
        with post.db.begin() as session:
            message = Message(
                id=new_id(),
                type=NoticeType.REQUEST_COMPLETED,
                payload={},
                created_at=NOON,
                fanned_out_at=NOON,
            )
            delivery = Delivery(id=delivery_id, message_id=message.id, target="ops", gate=NOON)
            delivery.aging_since, delivery.status = NOON, DeliveryStatus.UNDELIVERABLE
            session.add(message)
            session.flush()
            session.add(delivery)
        letter_id = add_failure(post, entry_id=delivery_id)
        with pytest.raises(Conflict, match="was not delivered"):
            SQLFailedOperationRepository(post.db, KEYRING).mark_as_resolved(str(letter_id), "by_hand")
        decide(post, letter_id, S.RESOLVED, "told them by phone")
        noon.advance(timedelta(days=30))
        with post.db.begin() as session:
            assert archive_settled(session) == 1
            assert purge(session, older_than_days=0) == 1


def close_one(repository: SQLFailedOperationRepository, letter_id: str) -> int:
    try:
        return repository.mark_as_resolved(letter_id, "fixed")
    except Conflict:
        return 0


def close_many(repository: SQLFailedOperationRepository, letter_id: str) -> int:
    return repository.bulk_update_status([letter_id], "resolved")


def somebody_waits(post: Post) -> bool:
    activity = sql(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with post.db.read() as session:
        return bool(session.scalar(activity))


@pytest.mark.parametrize("close", [close_one, close_many])
def test_a_program_closes_nothing_whose_work_comes_undone_meanwhile(
    postgres_post: Post, close: Callable[[SQLFailedOperationRepository, str], int]
) -> None:
    """Its call succeeded, and is abandoned again in a transaction that has not ended yet."""
    post = postgres_post
    (letter_id,) = post.fail()
    with post.db.begin() as session:
        session.execute(update(OutboxRow).values(status=OutboxStatus.SUCCEEDED))
    repository = SQLFailedOperationRepository(post.db, KEYRING)

    with ThreadPoolExecutor(1) as pool:
        with post.db.begin() as settling:
            settling.get_one(DeadLetter, letter_id, with_for_update=True)
            settling.execute(update(OutboxRow).values(status=OutboxStatus.ABANDONED))
            # As the settle does: the dead letter is written too.
            settling.execute(update(DeadLetter).values(error_code="http_500"))
            closing = pool.submit(close, repository, str(letter_id))
            eventually(lambda: somebody_waits(post), "the closing to wait for the dead letter")
        assert closing.result(PATIENCE) == 0
    assert post.letter(letter_id).status is S.PENDING


def test_a_program_opens_no_second_one_for_work_that_fails_meanwhile(postgres_post: Post) -> None:
    """The execution of a request has failed, in a transaction that has not ended yet."""
    post = postgres_post
    request_id = post.request(("crm", "c-1"))
    repository = SQLFailedOperationRepository(post.db, KEYRING)
    domain, refs = DeadLetterDomain.LOCAL_EXECUTION, {"request_id": str(request_id)}

    with ThreadPoolExecutor(1) as pool:
        with post.db.begin() as executing:
            executing.get_one(Request, request_id, with_for_update=True)
            record_failures(executing, [Failure(domain, request_id, None, "Timeout", "local_execution")])
            creating = pool.submit(repository.create, domain, "Timeout", entity_refs=refs)
            eventually(lambda: somebody_waits(post), "the program to wait for the request")
        with pytest.raises(Conflict, match="already"):
            creating.result(PATIENCE)
    assert len(post.letters()) == 1


class TestReportedByAProgram:
    """A dead letter that a program opens is recorded as the product's own are."""

    def report(self, post: Post, domain: str = "external_call", **more: object) -> UUID:
        letters = SQLFailedOperationRepository(post.db, KEYRING, actor="officer:7")
        return UUID(letters.create(domain, "Timeout", **more).id)  # type: ignore[arg-type]

    def test_is_an_event_of_the_work_and_of_who_reported_it(self, post: Post) -> None:
        entry_id, request_id = new_id(), new_id()
        refs = {"entry_id": str(entry_id), "request_id": str(request_id)}
        letter_id = self.report(post, entity_refs=refs, user_id=4711)
        (event,) = post.events("DEAD_LETTER_OPENED")
        assert (event.actor, event.entry_id, event.request_id) == ("officer:7", entry_id, request_id)
        assert event.subject_hmac == KEYRING.subject_key("4711").hmac
        assert event.payload == {
            "dead_letter_id": str(letter_id),
            "domain": "external_call",
            "error": "Timeout",
        }

    def test_is_told_to_those_who_want_to_know(self, post: Post) -> None:
        letter_id = self.report(post, error_code="max_age", snapshot_data={"attempts": 8})
        with post.db.read() as session:
            (message,) = session.scalars(select(Message).where(Message.type == NoticeType.ENTRY_ABANDONED))
        told = message.payload
        assert told == {
            "dead_letter_id": str(letter_id),
            "error": "Timeout",
            "code": "max_age",
            "attempts": 8,
            "again": False,
        }

    def test_is_opened_again_when_the_same_work_fails(self, post: Post) -> None:
        entry_id = new_id()
        letter_id = self.report(post, "attestation", entity_type="entry", entity_id=str(entry_id))
        failure = Failure(DeadLetterDomain.EXTERNAL_CALL, None, None, "Refused", "http_400", entry_id)
        with post.db.begin() as session:
            record_failures(session, [failure])
        (found,) = post.by_age()
        assert (found.id, found.domain, found.failure_type) == (
            letter_id,
            DeadLetterDomain.EXTERNAL_CALL,
            "Refused",
        )

    def test_is_refused_without_an_event_or_a_message(self, post: Post) -> None:
        refs = {"request_id": str(new_id())}
        self.report(post, "local_execution", entity_refs=refs)
        with pytest.raises(Conflict):
            self.report(post, "local_execution", entity_refs=refs)
        with post.db.read() as session:
            assert len(session.scalars(select(Message)).all()) == 1
        assert len(post.events("DEAD_LETTER_OPENED")) == 1

    def test_archived_by_a_program_has_the_event_of_the_action_too(self, post: Post) -> None:
        letters = SQLFailedOperationRepository(post.db, KEYRING)
        letter_ids = [str(self.report(post)) for _ in range(2)]
        assert letters.bulk_update_status(letter_ids, "resolved") == 2
        assert letters.bulk_update_status(letter_ids, "archived") == 2
        (action,) = post.events("DEAD_LETTERS_ARCHIVED")
        assert action.payload["count"] == 2

    def test_a_note_about_it_belongs_to_the_request(self, post: Post) -> None:
        request_id = new_id()
        letter_id = str(self.report(post, "verification", entity_refs={"request_id": str(request_id)}))
        SQLFailedOperationRepository(post.db, KEYRING).mark_as_resolved(letter_id, "fixed", "seen to")
        with post.db.read() as session:
            (note,) = session.scalars(select(Note).where(Note.dead_letter_id == UUID(letter_id)))
        assert note.request_id == request_id


class TestReopened:
    """A dead letter that is open again no longer says how it was settled."""

    def settlement(self, found: DeadLetter) -> tuple[object, ...]:
        return (
            found.resolution,
            found.resolved_at,
            found.resolved_by,
            found.resolution_note_id,
            found.archived_at,
        )

    NONE = ("", None, None, None, None)

    def test_by_a_decision(self, post: Post, undelivered: UUID) -> None:
        decide(post, undelivered, S.REJECTED, "was a test")
        decide(post, undelivered, S.PENDING, "it was not")
        found = post.letter(undelivered)
        assert (self.settlement(found), found.marks) == (self.NONE, {"reopened": 1})
        moves = [
            (each.payload["prior"], each.payload["status"]) for each in post.events("DEAD_LETTER_DECIDED")
        ]
        assert moves == [("pending", "rejected"), ("rejected", "pending")]

    def test_by_another_failure(self, post: Post, undelivered: UUID) -> None:
        decide(post, undelivered, S.RESOLVED, "they have it")
        link = post.letter(undelivered).entry_id
        failure = Failure(DeadLetterDomain.MESSAGE, None, None, "Timeout", "max_age", entry_id=link)
        with post.db.begin() as session:
            record_failures(session, [failure])
        found = post.letter(undelivered)
        assert (found.status, self.settlement(found)) == (S.PENDING, self.NONE)
        assert (found.marks or {})["reopened"] == 1
        opened = [each.payload["error"] for each in post.events("DEAD_LETTER_OPENED")]
        assert opened == ["Refused", "Timeout"]

    def test_by_a_program(self, post: Post, undelivered: UUID) -> None:
        letters, name = SQLFailedOperationRepository(post.db, KEYRING), str(undelivered)
        letters.update_status(name, "rejected", "no_failure", "it was the firewall", 7)
        letters.update_status(name, "pending", "fixed", "not fixed", 7)
        found = letters.get_by_id(name)
        assert found is not None
        assert (found.resolution_type, found.resolution_note, found.resolved_by_id) == ("", "", None)
        assert (found.resolved_at, found.archived_at, found.metadata) == (None, None, {"reopened": 1})
        assert len(post.events("DEAD_LETTER_DECIDED")) == 2


class TestFailedAgain:
    def execution(self, post: Post, error: str, *tables: str, attempts: int = 1) -> DeadLetter:
        failure = Failure(
            domain=DeadLetterDomain.LOCAL_EXECUTION,
            request_id=self.request_id,
            subject=None,
            error=error,
            code="local_execution",
            attempts=attempts,
            tables=tables,
        )
        with post.db.begin() as session:
            record_failures(session, [failure])
        return post.by_age()[0]

    @pytest.fixture(autouse=True)
    def _request(self) -> None:
        self.request_id = new_id()

    def test_adds_to_what_is_known_and_erases_nothing(self, post: Post) -> None:
        first = self.execution(post, "StillReachable", "orders", "tickets", attempts=2)
        assert first.context == {"attempts": 2, "tables": ["orders", "tickets"]}
        found = self.execution(post, "OperationalError", attempts=5)
        about = {"domain": "local_execution", "code": "local_execution"}
        assert found.context == {
            "attempts": 5,
            "tables": ["orders", "tickets"],
            "failures": [
                {**about, "error": "StillReachable", "attempts": 2, "tables": ["orders", "tickets"]},
                {**about, "error": "OperationalError", "attempts": 5},
            ],
        }
        assert found.failure_type == "OperationalError"

    def test_names_every_table_in_which_rows_were_found(self, post: Post) -> None:
        self.execution(post, "StillReachable", "tickets")
        found = self.execution(post, "StillReachable", "orders")
        assert found.context["tables"] == ["orders", "tickets"]
        assert [each["tables"] for each in found.context["failures"]] == [["tickets"], ["orders"]]

    def test_lists_the_first_and_the_last_ones_of_very_many(self, post: Post) -> None:
        for number in range(MOST_FAILURES + 3):
            found = self.execution(post, f"Error{number}")
        errors = [each["error"] for each in found.context["failures"]]
        assert len(errors) == MOST_FAILURES
        assert (errors[0], errors[1], errors[-1]) == ("Error0", "Error4", f"Error{MOST_FAILURES + 2}")


class TestStillPresent:
    """A read-back that finds the person again and again, whatever the vendor says."""

    def found_again(self, post: Post) -> UUID:
        post.crm = post.vendor("crm", CheckingVendor(absent=lambda _: False))
        (letter_id,) = post.fail()
        return letter_id

    def attest(self, post: Post, reason: str = "seen gone on a call with them") -> None:
        with post.db.begin() as session:
            attest(session, KEYRING, post.entry().entry_id, actor="officer:8", reason=reason)

    @pytest.mark.parametrize("to", [S.RESOLVED, S.REJECTED])
    def test_is_not_closed_without_a_word_about_the_person(self, post: Post, to: DeadLetterStatus) -> None:
        """The reference would stay for good, and nobody would look again."""
        letter_id = self.found_again(post)
        with pytest.raises(Conflict, match="attest"):
            decide(post, letter_id, to)
        assert post.letter(letter_id).status is S.PENDING

    def test_ends_with_an_attestation_and_so_does_the_reference(self, post: Post, noon: ManualClock) -> None:
        letter_id = self.found_again(post)
        self.attest(post)
        entry, found = post.entry(), post.letter(letter_id)
        assert (entry.verification, entry.verified_at, entry.ref_sealed) == (
            Verification.ATTESTED,
            NOON,
            None,
        )
        assert (entry.status, entry.outcome) == (OutboxStatus.SUCCEEDED, StepOutcome.ERASED)
        assert (found.status, found.resolution, found.resolved_by) == (S.RESOLVED, "attested", "officer:8")
        (event,) = post.events("ERASURE_READ_BACK_ATTESTED")
        assert (event.actor, event.payload["resolver"], event.payload["prior"]) == (
            "officer:8",
            "crm",
            "still_present",
        )
        assert event.payload["note_id"]

    def test_is_attested_also_where_no_read_back_could_ever_be_made(
        self, post: Post, noon: ManualClock
    ) -> None:
        post.crm = post.vendor("crm", CheckingVendor(absent=lambda _: ConnectionError()))
        post.request(("crm", "c-1"))
        post.drain()
        with pytest.raises(Conflict, match="looked at"):
            self.attest(post)
        for _ in range(27):
            noon.advance(timedelta(days=1))
            post.drain()
        assert post.statuses() == ["pending"]
        self.attest(post)
        assert (post.statuses(), post.entry().ref_sealed) == (["resolved"], None)

    def test_is_attested_once_and_only_with_a_reason(self, post: Post) -> None:
        self.found_again(post)
        with pytest.raises(Refused, match="reason"):
            self.attest(post, " ")
        self.attest(post)
        with pytest.raises(Conflict):
            self.attest(post)
        assert len(post.events("ERASURE_READ_BACK_ATTESTED")) == 1

    def test_what_was_confirmed_needs_nobodys_word(self, post: Post) -> None:
        post.crm = post.vendor("crm", CheckingVendor())
        post.fail()
        with pytest.raises(Conflict, match="succeeded"):
            self.attest(post)


class TestAssign:
    def test_to_an_officer_to_another_and_to_nobody(self, post: Post, noon: ManualClock) -> None:
        (letter_id,) = post.fail()
        olga, otto = post.officer("olga"), post.officer("otto")
        for officer_id in (olga.id, otto.id, None):
            with post.db.begin() as session:
                assert assign(session, letter_id, officer_id, actor=f"officer:{olga.id}") is True
            found = post.letter(letter_id)
            assert (found.assigned_to, found.status) == (officer_id, S.PENDING)
            assert found.assigned_at == (NOON if officer_id else None)
        events = post.events("DEAD_LETTER_ASSIGNED")
        assert [each.payload.get("officer_id") for each in events] == [str(olga.id), str(otto.id), None]

    def test_to_the_same_again_is_nothing_new(self, post: Post) -> None:
        (letter_id,) = post.fail()
        olga = post.officer()
        for changed in (True, False):
            with post.db.begin() as session:
                assert assign(session, letter_id, olga.id, actor="cli") is changed
        assert len(post.events("DEAD_LETTER_ASSIGNED")) == 1

    def test_is_refused_for_who_can_not_act_and_for_what_is_settled(
        self, post: Post, undelivered: UUID
    ) -> None:
        auditor = post.officer("ada", Role.AUDITOR)
        for nobody in (auditor.id, new_id()):
            with pytest.raises(Refused, match="officer"), post.db.begin() as session:
                assign(session, undelivered, nobody, actor="cli")
        decide(post, undelivered, S.RESOLVED)
        with pytest.raises(Conflict), post.db.begin() as session:
            assign(session, undelivered, None, actor="cli")

    def test_can_be_filtered_by(self, post: Post) -> None:
        first, second = post.fail(2)
        olga = post.officer()
        with post.db.begin() as session:
            assign(session, first, olga.id, actor="cli")
        with post.db.read() as session:
            mine = list_dead_letters(session, DeadLetterFilter(assigned_to=olga.id))
            free = list_dead_letters(session, DeadLetterFilter(unassigned=True))
        assert ([each.id for each in mine.items], [each.id for each in free.items]) == ([first], [second])


class TestNotes:
    def test_are_kept_in_order_and_the_trail_has_id_and_hash(self, post: Post, noon: ManualClock) -> None:
        (letter_id,) = post.fail()
        for text in ("called Anna", "called again"):
            with post.db.begin() as session:
                add_note(session, KEYRING, letter_id, text, actor="officer:7")
            noon.advance(timedelta(minutes=1))
        with post.db.read() as session:
            found = notes_of(session, KEYRING, letter_id)
        assert [(each.author, each.text) for each in found] == [
            ("officer:7", "called Anna"),
            ("officer:7", "called again"),
        ]
        events = post.events("DEAD_LETTER_NOTED")
        assert [each.payload["note_id"] for each in events] == [str(each.id) for each in found]
        assert "Anna" not in repr([each.payload for each in events]) + repr(found)

    def test_are_sealed_and_can_be_erased(self, post: Post) -> None:
        (letter_id,) = post.fail()
        with post.db.begin() as session:
            add_note(session, KEYRING, letter_id, "called Anna", actor="officer:7")
        with post.db.begin() as session:
            (note,) = session.scalars(select(Note).where(Note.dead_letter_id == letter_id))
            assert b"Anna" not in (note.text_sealed or b"")
            note.text_sealed = None
        with post.db.read() as session:
            (found,) = notes_of(session, KEYRING, letter_id)
        assert found.text is None

    def test_that_are_empty_or_of_no_letter_are_refused(self, post: Post) -> None:
        (letter_id,) = post.fail()
        with pytest.raises(Refused, match="note"), post.db.begin() as session:
            add_note(session, KEYRING, letter_id, "  ", actor="cli")
        with pytest.raises(NotFound), post.db.begin() as session:
            add_note(session, KEYRING, new_id(), "x", actor="cli")


class TestRecommended:
    """From how it failed, and from what has been tried since."""

    def actions(self, post: Post, *failures: Callable[[], object]) -> list[str]:
        (letter_id,) = post.fail()
        found = [post.letter(letter_id).recommended_action]
        for fail in failures:
            fail()
            post.requeue(letter_id, force=True)
            post.drain()
            found.append(post.letter(letter_id).recommended_action)
        return found

    def test_failing_in_the_same_way_after_a_requeue_asks_for_the_cause_then_escalates(
        self, post: Post
    ) -> None:
        same = lambda: None  # noqa: E731
        assert self.actions(post, same, same, same) == [
            "fix_and_requeue",
            "find_the_cause",
            "escalate",
            "escalate",
        ]

    def test_failing_in_another_way_is_looked_at_anew_and_escalates_in_the_end(self, post: Post) -> None:
        def otherwise() -> None:
            class Moved(ResolverError):
                pass

            post.vendor("crm", Vendor(lambda _: Moved("no", code="http_301")))

        def back() -> None:
            post.vendor("crm", Vendor(lambda _: NO))

        assert self.actions(post, otherwise, back) == ["fix_and_requeue", "fix_and_requeue", "escalate"]

    def test_a_correction_is_always_to_be_sent_again(self, post: Post) -> None:
        letter_id = post.fail_correction()
        assert post.letter(letter_id).recommended_action == "reissue"
        (result,) = post.requeue(letter_id, force=True)
        assert (result.requeued, result.code) == (False, "reissue")
        assert "send the correction again" in result.why

    def test_what_was_tried_is_in_the_marks(self, post: Post) -> None:
        (letter_id,) = post.fail()
        for _ in range(2):
            post.requeue(letter_id)
            post.drain()
        found = post.letter(letter_id)
        assert (found.status, found.marks) == (S.REQUIRES_REVIEW, {"failed_replays": 2, "same_error": 2})


class TestSingleRedrive:
    def test_at_the_cap_needs_force_and_is_told_so(self, post: Post) -> None:
        (letter_id,) = post.fail()
        for _ in range(2):
            post.requeue(letter_id)
            post.drain()
        (result,) = post.requeue(letter_id)
        assert (result.requeued, result.code) == (False, "needs_force")
        (result,) = post.requeue(letter_id, force=True)
        assert result.requeued
        found = post.letter(letter_id)
        assert found.marks is not None
        assert (found.retry_count, found.marks["previous_total_retries"]) == (1, 2)

    def test_of_a_letter_with_nothing_behind_it_says_so(self, post: Post) -> None:
        letter_id = add_failure(post, DeadLetterDomain.EXTERNAL_CALL, entry_id=None, request_id=new_id())
        (result,) = post.requeue(letter_id)
        assert (result.code, post.letter(letter_id).status) == ("not_linked", S.PENDING)

    def test_of_many_at_once_one_has_an_effect(self, postgres_post: Post) -> None:
        post = postgres_post
        (letter_id,) = post.fail()
        together, won = threading.Barrier(6), []

        def race() -> None:
            together.wait(10)
            won.extend(each.requeued for each in post.requeue(letter_id, force=True))

        threads = [threading.Thread(target=race) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(won) == [False] * 5 + [True]
        assert len(post.events("ERASURE_REQUEUED")) == 1


class TestShown:
    def test_facets_leave_out_their_own_choice(self, post: Post) -> None:
        post.fail(2)
        undelivered = add_failure(post, resolver="oncall")
        decide(post, undelivered, S.RESOLVED)
        add_failure(post, resolver="oncall", error="Timeout")
        with post.db.read() as session:
            found = facets(session, DeadLetterFilter(resolver="oncall"))
        assert found.status == {"pending": 1, "resolved": 1}
        assert found.domain == {"message": 1}
        assert found.resolver == {"crm": 2, "oncall": 1}
        assert found.error == {"Timeout": 1}

    def test_groups_are_by_place_and_error_class_with_count_and_oldest(
        self, post: Post, noon: ManualClock
    ) -> None:
        post.fail(2)
        noon.advance(timedelta(hours=1))
        post.fail()
        add_failure(post, resolver="oncall")
        with post.db.read() as session:
            found = groups(session, DeadLetterFilter())
        assert [(each.resolver, each.failure_type, each.count, each.oldest) for each in found] == [
            ("crm", "ResolverError", 3, NOON),
            ("oncall", "Refused", 1, NOON + timedelta(hours=1)),
        ]

    def test_late_ones_can_be_asked_for(self, post: Post, noon: ManualClock) -> None:
        (old,) = post.fail()
        noon.advance(timedelta(hours=24))
        (new,) = post.fail()
        with post.db.read() as session:
            late = list_dead_letters(session, DeadLetterFilter(late=True))
            assert [each.id for each in late.items] == [old]
            assert [get_dead_letter(session, each, SLA).late for each in (old, new)] == [True, False]
