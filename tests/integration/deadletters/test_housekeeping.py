"""What the scheduler tidies up, and what only a person may remove."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from letters_cast import Post
from saga_cast import KEYRING, NOON
from sqlalchemy import func, select

from effaced.audit.notes import write_note
from effaced.audit.tables import Note
from effaced.core.clock import ManualClock
from effaced.core.config import Settings
from effaced.core.crypto import new_key
from effaced.core.errors import Conflict
from effaced.deadletters.archive import archive_by_id, archive_settled, expire
from effaced.deadletters.assign import add_note
from effaced.deadletters.purge import evict, purge
from effaced.deadletters.record import record_failures
from effaced.deadletters.replay import acquire_for_replay, release_stale
from effaced.deadletters.rules import Failure
from effaced.deadletters.tables import DeadLetter, Redrive, RedriveRow
from effaced.model import DeadLetterDomain, DeadLetterStatus, OutboxStatus, RequestStatus, new_id
from effaced.outbox.tables import OutboxRow
from effaced.requests.tables import Request
from effaced.runtime import Runtime
from effaced.triage.housekeeping import tidy_dead_letters
from effaced.triage.redrive import advance_all
from effaced.worker.bell import RqBell
from effaced.worker.schedule import Scheduler

DAY = timedelta(days=1)
S = DeadLetterStatus


def attested(post: Post) -> None:
    """Every abandoned call ends well, so that its letter is resolved."""
    post.mend()
    for letter in post.letters():
        post.requeue(letter.id, force=True)
    post.drain()


class TestTidy:
    def test_releases_a_replay_that_nobody_will_end(self, post: Post, noon: ManualClock) -> None:
        (letter_id,) = post.fail()
        with post.db.begin() as session:
            acquire_for_replay(session, [letter_id])
        noon.advance(timedelta(minutes=31))
        with post.db.begin() as session:
            assert tidy_dead_letters(session)["released"] == 1
        assert post.letter(letter_id).status is S.PENDING

    def test_leaves_a_replay_alone_whose_entry_is_parked(self, post: Post, noon: ManualClock) -> None:
        (letter_id,) = post.fail()
        post.requeue(letter_id)
        with post.db.begin() as session:
            entry = session.scalars(select(OutboxRow)).one()
            entry.status, entry.gate = OutboxStatus.SCHEDULED, NOON + 90 * DAY
        noon.advance(60 * DAY)
        with post.db.begin() as session:
            assert tidy_dead_letters(session)["released"] == 0
        assert post.letter(letter_id).status is S.REPLAYING

    def test_leaves_a_replay_alone_whose_execution_is_to_come(self, post: Post, noon: ManualClock) -> None:
        (letter_id,) = post.fail()
        post.requeue(letter_id)
        with post.db.begin() as session:
            letter = session.get_one(DeadLetter, letter_id)
            letter.domain, letter.entry_id = DeadLetterDomain.LOCAL_EXECUTION, None
            request = session.scalars(select(Request)).one()
            request.status, request.execute_at = RequestStatus.APPROVED, NOON
        noon.advance(2 * DAY)
        with post.db.begin() as session:
            assert tidy_dead_letters(session)["released"] == 0

    def test_archives_what_was_resolved_30_days_ago(self, post: Post, noon: ManualClock) -> None:
        (letter_id,) = post.fail()
        attested(post)
        noon.advance(30 * DAY)
        with post.db.begin() as session:
            assert tidy_dead_letters(session)["archived"] == 1
        assert (post.letter(letter_id).status, post.letter(letter_id).archived_at) == (S.ARCHIVED, noon())
        (one,), (action,) = post.events("DEAD_LETTER_DECIDED"), post.events("DEAD_LETTERS_ARCHIVED")
        assert (one.payload["status"], action.payload["count"]) == ("archived", 1)

    def test_is_bounded_per_run(self, post: Post, noon: ManualClock) -> None:
        post.fail(3)
        attested(post)
        noon.advance(30 * DAY)
        for archived in (2, 1, 0):
            with post.db.begin() as session:
                assert archive_settled(session, limit=2) == archived

    def test_an_erasure_that_was_not_made_is_not_put_away(self, post: Post, noon: ManualClock) -> None:
        """Not even if its letter was called resolved by whatever went wrong."""
        (letter_id,) = post.fail()
        with post.db.begin() as session:
            letter = session.get_one(DeadLetter, letter_id)
            letter.status, letter.resolved_at, letter.expires_at = S.RESOLVED, NOON, NOON
        noon.advance(90 * DAY)
        with post.db.begin() as session:
            assert archive_settled(session) == 0
            assert archive_by_id(session, [letter_id], actor="cli") == 0
            assert expire(session) == 0
        assert post.letter(letter_id).status is S.RESOLVED

    def test_expired_ones_are_archived_if_settled_and_for_review_if_pending(
        self, post: Post, noon: ManualClock
    ) -> None:
        settled, *_ = post.fail()
        attested(post)
        pending = post.fail_correction()
        with post.db.begin() as session:
            for each in (settled, pending):
                session.get_one(DeadLetter, each).expires_at = NOON + DAY
        with post.db.begin() as session:
            assert expire(session) == 0
        noon.advance(DAY)
        with post.db.begin() as session:
            assert expire(session) == 2
            assert expire(session) == 0
        assert (post.letter(settled).status, post.letter(pending).status) == (S.ARCHIVED, S.REQUIRES_REVIEW)
        assert post.letter(pending).next_action_hint == "expired"

    def test_forgets_redrives_that_ended_30_days_ago(self, post: Post, noon: ManualClock) -> None:
        post.fail(2)
        post.start(per_second=None)
        advance_all(post.db)
        noon.advance(29 * DAY)
        post.fail()
        running = post.start(per_second=0.01)
        noon.advance(2 * DAY)
        with post.db.begin() as session:
            assert tidy_dead_letters(session)["redrives_forgotten"] == 1
        with post.db.read() as session:
            assert session.scalars(select(Redrive.id)).all() == [running]
            assert set(session.scalars(select(RedriveRow.redrive_id))) == {running}

    def test_releases_are_bounded(self, post: Post, noon: ManualClock) -> None:
        ids = post.fail(3)
        with post.db.begin() as session:
            acquire_for_replay(session, ids)
        noon.advance(timedelta(hours=1))
        with post.db.begin() as session:
            assert release_stale(session, limit=2) == 2


def test_the_scheduler_tidies_up_and_carries_redrives_out(
    post: Post, redis_url: str, noon: ManualClock
) -> None:
    stale, *others = post.fail(3)
    with post.db.begin() as session:
        acquire_for_replay(session, [stale])
    noon.advance(timedelta(hours=1))
    redrive_id = post.start(per_second=None)
    settings = Settings(keys=new_key(), redis_url=redis_url)  # type: ignore[arg-type]
    runtime = Runtime(settings, database=post.db)
    Scheduler(runtime, RqBell(settings)).tick()
    assert post.view(redrive_id).requeued == 2
    assert post.letter(stale).status is S.PENDING
    assert [post.letter(each).status for each in others] == [S.REPLAYING] * 2


class TestPurge:
    def archived(self, post: Post, number: int = 1) -> list[UUID]:
        ids = post.fail(number)
        attested(post)
        with post.db.begin() as session:
            assert archive_by_id(session, ids, actor="cli") == number
        return ids

    def test_is_one_event_per_letter_and_one_for_the_action(self, post: Post) -> None:
        ids = self.archived(post, 2)
        with post.db.begin() as session:
            note = write_note(session, KEYRING, "kept long enough", author="officer:7")
            assert purge(session, older_than_days=0, actor="officer:7", note=note) == 2
        gone = post.events("DEAD_LETTER_PURGED")
        assert sorted(each.payload["dead_letter_id"] for each in gone) == sorted(str(each) for each in ids)
        (action,) = post.events("DEAD_LETTERS_PURGED")
        assert (action.actor, action.payload["count"]) == ("officer:7", 2)
        assert action.payload["note_id"] == str(note.note_id)
        assert post.letters() == []

    def test_takes_what_was_written_about_the_letter_with_it(self, post: Post) -> None:
        (letter_id,) = self.archived(post)
        with post.db.begin() as session:
            add_note(session, KEYRING, letter_id, "called Anna", actor="officer:7")
        with post.db.begin() as session:
            purge(session, ids=[letter_id])
            left = select(func.count()).where(Note.dead_letter_id == letter_id, Note.text_sealed.is_not(None))
            assert session.scalar(left) == 0

    def test_that_is_rolled_back_has_removed_nothing(self, post: Post) -> None:
        self.archived(post)

        class Undone(Exception):
            pass

        def undone() -> None:
            with post.db.begin() as session:
                purge(session, older_than_days=0)
                raise Undone

        with pytest.raises(Undone):
            undone()
        assert (post.statuses(), post.events("DEAD_LETTER_PURGED")) == (["archived"], [])

    def test_that_would_remove_another_number_than_was_confirmed_removes_nothing(
        self, postgres_post: Post
    ) -> None:
        """Somebody holds one of the letters at that moment."""
        post = postgres_post
        held, _ = self.archived(post, 2)
        with post.db.begin() as other:
            other.get_one(DeadLetter, held, with_for_update=True)
            with pytest.raises(Conflict, match="preview"), post.db.begin() as session:
                purge(session, older_than_days=0, expected=2)
        assert (post.statuses(), post.events("DEAD_LETTER_PURGED")) == (["archived"] * 2, [])

    def test_a_letter_is_opened_again_if_its_call_fails_after_it_was_put_away(self, post: Post) -> None:
        (letter_id,) = self.archived(post)
        failure = Failure(
            domain=DeadLetterDomain.EXTERNAL_CALL,
            request_id=new_id(),
            subject=None,
            error="Timeout",
            code="x",
            entry_id=post.entry().entry_id,
        )
        with post.db.begin() as session:
            record_failures(session, [failure])
        found = post.letter(letter_id)
        assert (found.status, found.archived_at, found.resolved_at) == (S.PENDING, None, None)

    def test_evicting_and_compressing_leave_an_unresolved_erasure_alone(self, post: Post) -> None:
        post.fail(2)
        for compress in (False, True):
            with post.db.begin() as session:
                assert evict(session, 10, compress=compress) == 0
        assert post.statuses() == ["pending"] * 2
