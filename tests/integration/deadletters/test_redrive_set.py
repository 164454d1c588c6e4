"""Another try for a whole set: in steps, at a pace, to be cancelled, safe against crashes and rivals."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from letters_cast import Post
from saga_cast import KEYRING, NOON
from sqlalchemy import select, text
from waiting import eventually

from effaced.audit.notes import read_notes
from effaced.core.clock import ManualClock
from effaced.core.crypto import new_key
from effaced.core.db import Database, is_postgres
from effaced.core.errors import Conflict, NotFound, Refused
from effaced.deadletters.read import DeadLetterFilter
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterStatus, OutboxStatus, RedriveStatus, new_id
from effaced.triage import redrive as redrive_set
from effaced.triage.redrive import advance, advance_all, cancel_redrive, step
from effaced.triage.redrive_read import list_redrives, redrive_results

SECOND = timedelta(seconds=1)


def requeued_events(post: Post) -> list[UUID]:
    return [event.entry_id for event in post.events("ERASURE_REQUEUED")]


class TestSet:
    def test_is_requeued_in_steps_with_a_result_for_each(self, post: Post, noon: ManualClock) -> None:
        ids = post.fail(5)
        redrive_id = post.start(per_second=None)
        assert post.statuses() == ["pending"] * 5
        for done in (2, 4):
            with post.db.begin() as session:
                assert step(session, redrive_id, limit=2) is True
            view = post.view(redrive_id)
            assert (view.status, view.done, view.requeued, view.total) == ("running", done, done, 5)
        with post.db.begin() as session:
            assert step(session, redrive_id, limit=2) is False
        view = post.view(redrive_id)
        assert (view.status, view.done, view.ended_at) == (RedriveStatus.FINISHED, 5, NOON)
        assert post.results(redrive_id) == dict.fromkeys(ids, "requeued")
        assert {entry.status for entry in post.entries()} == {OutboxStatus.PENDING}

    def test_ends_with_every_letter_resolved_once_the_vendor_is_back(self, post: Post) -> None:
        post.fail(3)
        post.mend()
        post.start(per_second=None)
        assert advance_all(post.db) == 1
        post.drain()
        assert post.statuses() == ["resolved"] * 3
        assert advance_all(post.db) == 0

    def test_takes_only_what_the_filter_says(self, post: Post) -> None:
        ids = post.fail(2)
        with post.db.begin() as session:
            session.get_one(DeadLetter, ids[0]).resolver = "other"
        redrive_id = post.start(DeadLetterFilter(resolver="crm"))
        advance_all(post.db)
        assert post.results(redrive_id) == {ids[1]: "requeued"}
        assert post.view(redrive_id).filter == {
            "statuses": ["pending", "reviewing", "requires_review"],
            "resolver": "crm",
        }

    def test_leaves_alone_what_came_after_it_was_confirmed(self, post: Post) -> None:
        before = post.fail()
        redrive_id = post.start(per_second=None)
        (after,) = post.fail()
        advance_all(post.db)
        assert list(post.results(redrive_id)) == before
        assert post.letter(after).status is DeadLetterStatus.PENDING

    def test_is_one_event_per_entry_and_one_for_the_action(self, post: Post) -> None:
        post.fail(2)
        redrive_id = post.start(per_second=None)
        advance_all(post.db)
        assert sorted(requeued_events(post)) == sorted(entry.entry_id for entry in post.entries())
        (started,) = post.events("REDRIVE_STARTED")
        assert (started.actor, started.payload["chosen"]) == ("officer:7", 2)
        assert started.payload["redrive_id"] == str(redrive_id)
        (ended,) = post.events("REDRIVE_ENDED")
        assert (ended.payload["requeued"], ended.payload["skipped"]) == (2, 0)
        assert ended.payload["cancelled"] is False

    def test_has_one_note_that_its_events_point_at(self, post: Post) -> None:
        post.fail(2)
        redrive_id = post.start(per_second=None)
        advance_all(post.db)
        note_ids = {event.payload["note_id"] for event in post.events("ERASURE_REQUEUED", "REDRIVE_STARTED")}
        assert note_ids == {str(post.view(redrive_id).note_id)}
        with post.db.read() as session:
            assert list(read_notes(session, KEYRING, [UUID(*note_ids)]).values()) == ["they are back"]

    def test_tells_of_each_that_it_leaves_alone_why(self, post: Post) -> None:
        correction = post.fail_correction()
        worn, reviewed, good = post.fail(3)
        with post.db.begin() as session:
            session.get_one(DeadLetter, worn).status = DeadLetterStatus.REQUIRES_REVIEW
            session.get_one(DeadLetter, reviewed).status = DeadLetterStatus.REVIEWING
        redrive_id = post.start(per_second=None)
        advance_all(post.db)
        assert post.results(redrive_id) == {
            correction: "reissue",
            worn: "needs_force",
            reviewed: "already_reviewing",
            good: "requeued",
        }
        assert post.view(redrive_id).skipped == {"reissue": 1, "needs_force": 1, "already_reviewing": 1}
        assert post.letter(correction).recommended_action == "reissue"
        assert post.letter(correction).status is DeadLetterStatus.PENDING

    def test_forced_takes_those_whose_tries_are_used_up(self, post: Post) -> None:
        (worn,) = post.fail()
        with post.db.begin() as session:
            letter = session.get_one(DeadLetter, worn)
            letter.status, letter.retry_count = DeadLetterStatus.REQUIRES_REVIEW, 2
        post.start(force=True)
        advance_all(post.db)
        found = post.letter(worn)
        assert (found.status, found.retry_count) == (DeadLetterStatus.REPLAYING, 1)
        assert found.marks == {"previous_total_retries": 2, "force_redrive_count": 1}

    def test_of_nothing_is_refused(self, post: Post) -> None:
        for which in (
            DeadLetterFilter(),
            DeadLetterFilter(statuses=(DeadLetterStatus.RESOLVED,)),
            DeadLetterFilter(resolver="nobody"),
        ):
            with pytest.raises(Refused, match="no open dead letter"):
                post.start(which)
        assert post.types() == []

    def test_without_a_reason_or_with_an_odd_pace_is_refused(self, post: Post) -> None:
        post.fail()
        for pace in (0, -1, 100_000):
            with pytest.raises(Refused, match="pace"):
                post.start(per_second=pace)
        with pytest.raises(Refused, match="reason"), post.db.begin() as session:
            redrive_set.start_redrive(session, KEYRING, DeadLetterFilter(), actor="cli", reason=" ")

    def test_is_bounded(self, post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
        ids = post.fail(3)
        monkeypatch.setattr(redrive_set, "MOST_OF_A_SET", 2)
        redrive_id = post.start(per_second=None)
        advance_all(post.db)
        assert list(post.results(redrive_id)) == ids[:2]

    def test_is_listed_newest_first_and_its_results_by_pages(self, post: Post, noon: ManualClock) -> None:
        ids = post.fail(3)
        first = post.start(per_second=None)
        noon.advance(SECOND)
        second = post.start(per_second=None)
        advance_all(post.db)
        with post.db.read() as session:
            page = list_redrives(session, limit=1)
            assert [each.id for each in page.items] == [second]
            assert [each.id for each in list_redrives(session, after=page.next).items] == [first]
            results = redrive_results(session, first, limit=2)
            rest = redrive_results(session, first, after=results.next)
        assert [each.dead_letter_id for each in (*results.items, *rest.items)] == ids


class TestPace:
    def test_gives_each_entry_a_moment_of_its_own(self, post: Post, noon: ManualClock) -> None:
        post.fail(5)
        post.start(per_second=2)
        advance_all(post.db)
        gates = sorted(entry.gate for entry in post.entries())
        assert gates == [NOON + n * SECOND / 2 for n in range(5)]
        assert [entry.aging_since for entry in post.entries()] == [entry.gate for entry in post.entries()]

    def test_lets_the_vendor_be_called_no_faster(self, post: Post, noon: ManualClock) -> None:
        post.fail(4)
        post.mend()
        post.start(per_second=1)
        advance_all(post.db)
        called = []
        for _ in range(4):
            post.drain()
            called.append(len(post.crm.calls))
            noon.advance(SECOND)
        assert called == [1, 2, 3, 4]

    def test_releases_no_more_than_a_minute_ahead(self, post: Post, noon: ManualClock) -> None:
        """What is released can't be taken back by a cancel."""
        post.fail(5)
        redrive_id = post.start(per_second=1 / 30)
        advance_all(post.db)
        assert post.view(redrive_id).done == 2
        advance_all(post.db)
        assert post.view(redrive_id).done == 2
        noon.advance(30 * SECOND)
        advance_all(post.db)
        assert post.view(redrive_id).done == 3

    def test_goes_on_from_now_after_a_standstill(self, post: Post, noon: ManualClock) -> None:
        """A scheduler that was down for an hour does not make up for it all at once."""
        post.fail(4)
        post.start(per_second=1 / 60)
        advance_all(post.db)
        noon.advance(timedelta(hours=1))
        advance_all(post.db)
        gates = sorted(entry.gate for entry in post.entries() if entry.gate)
        assert gates == [NOON, NOON + timedelta(hours=1)]

    def test_is_not_used_up_by_what_is_left_alone(self, post: Post, noon: ManualClock) -> None:
        post.fail_correction()
        post.fail(2)
        post.start(per_second=1)
        advance_all(post.db)
        assert sorted(e.gate for e in post.entries() if e.gate) == [NOON, NOON + SECOND]


class TestCancel:
    def test_ends_it_where_it_is(self, post: Post, noon: ManualClock) -> None:
        ids = post.fail(4)
        redrive_id = post.start(per_second=None)
        with post.db.begin() as session:
            step(session, redrive_id, limit=2)
        with post.db.begin() as session:
            cancel_redrive(session, redrive_id, actor="officer:8")
        assert advance_all(post.db) == 0
        assert advance(post.db, redrive_id) is False
        assert post.statuses() == ["replaying"] * 2 + ["pending"] * 2
        assert list(post.results(redrive_id)) == ids[:2]
        view = post.view(redrive_id)
        assert (view.status, view.ended_by, view.ended_at) == ("cancelled", "officer:8", NOON)
        (ended,) = post.events("REDRIVE_ENDED")
        assert (ended.actor, ended.payload["requeued"], ended.payload["cancelled"]) == ("officer:8", 2, True)

    def test_is_refused_twice_and_of_one_that_does_not_exist(self, post: Post) -> None:
        post.fail()
        redrive_id = post.start()
        with post.db.begin() as session:
            cancel_redrive(session, redrive_id, actor="cli")
        with pytest.raises(Conflict, match="cancelled"), post.db.begin() as session:
            cancel_redrive(session, redrive_id, actor="cli")
        with pytest.raises(NotFound), post.db.begin() as session:
            cancel_redrive(session, new_id(), actor="cli")


class TestCrash:
    def test_of_a_step_leaves_nothing_half_done(self, post: Post) -> None:
        post.fail(3)
        redrive_id = post.start(per_second=None)
        before = post.types()
        session = post.db.sessions()
        step(session, redrive_id)
        session.flush()
        session.rollback()
        session.close()
        assert post.statuses() == ["pending"] * 3
        assert (post.view(redrive_id).done, post.types()) == (0, before)
        advance_all(post.db)
        assert len(requeued_events(post)) == 3

    def test_one_letter_that_can_not_be_requeued_holds_no_other_up(self, post: Post) -> None:
        bad, *others = post.fail(3)
        self.break_letter(post, bad)
        redrive_id = post.start(per_second=None)
        advance_all(post.db)
        assert post.results(redrive_id) == {bad: "failed"} | dict.fromkeys(others, "requeued")
        assert post.view(redrive_id).status is RedriveStatus.FINISHED
        assert post.letter(bad).status is DeadLetterStatus.PENDING

    def break_letter(self, post: Post, letter_id: UUID) -> None:
        """From now on this letter can't be changed."""
        with post.db.begin() as session:
            if is_postgres(session):
                session.execute(
                    text(
                        "CREATE OR REPLACE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS "
                        "$$ BEGIN RAISE EXCEPTION 'stays'; END $$"
                    )
                )
                session.execute(
                    text(
                        "CREATE TRIGGER stays BEFORE UPDATE ON effaced_dead_letters FOR EACH ROW "
                        f"WHEN (OLD.id = '{letter_id}') EXECUTE FUNCTION stay()"
                    )
                )
            else:
                session.execute(
                    text(
                        "CREATE TRIGGER stays BEFORE UPDATE ON effaced_dead_letters "
                        f"WHEN OLD.id = '{letter_id.hex}' BEGIN SELECT RAISE(ABORT, 'stays'); END"
                    )
                )

    def test_of_the_process_in_the_middle_is_gone_on_with_and_nothing_is_done_twice(
        self, postgres_post: Post
    ) -> None:
        """Killed between and inside its steps; another process finishes, one event per entry."""
        post = postgres_post
        ids = post.fail(40)
        redrive_id = post.start(per_second=None)
        url = post.db.engine.url.render_as_string(hide_password=False)
        process = subprocess.Popen(
            [sys.executable, "-c", STEP_BY_STEP, url, str(redrive_id)],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            eventually(lambda: post.view(redrive_id).done >= 5, "some steps")
        finally:
            process.kill()
            process.wait(30)
        assert post.view(redrive_id).status is RedriveStatus.RUNNING
        eventually(lambda: advance_all(post.db) == 0, "the end of every redrive")
        assert post.results(redrive_id) == dict.fromkeys(ids, "requeued")
        events = requeued_events(post)
        assert (len(events), len(set(events))) == (40, 40)
        assert {letter.retry_count for letter in post.letters()} == {1}


STEP_BY_STEP = """
import sys
from uuid import UUID
from effaced.core.db import Database
from effaced.triage.redrive import step

database = Database(sys.argv[1])
for number in range(30):
    with database.begin() as session:
        step(session, UUID(sys.argv[2]), limit=1)
with database.begin() as session:
    step(session, UUID(sys.argv[2]), limit=5)
    session.flush()
    sys.stdin.read() or __import__("time").sleep(600)
"""


RACER = """
import sys
from effaced.core.crypto import Keyring
from effaced.core.db import Database
from effaced.deadletters.repository import SQLFailedOperationRepository

letters = SQLFailedOperationRepository(Database(sys.argv[1]), Keyring.parse(sys.argv[2]))
ids = letters.get_oldest_ids(100)
print("ready", flush=True)
sys.stdin.readline()
for each in ids:
    taken = letters.try_acquire_for_replay(each, 2, force=sys.argv[3] == "force")
    if taken is not None:
        print(each, taken.acquired, flush=True)
"""


class TestRivals:
    def test_of_several_processes_one_gets_each_letter(self, postgres_post: Post) -> None:
        """D7, with processes: some by force, some not."""
        post = postgres_post
        ids = post.fail(25)
        url = post.db.engine.url.render_as_string(hide_password=False)
        racers = [
            subprocess.Popen(
                [sys.executable, "-c", RACER, url, new_key(), mode],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for mode in ("force", "plain", "force")
        ]
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        won = [line for racer in racers for line in racer.communicate(timeout=60)[0].splitlines()]
        assert sorted(won) == sorted(f"{each} 1" for each in ids)

    def test_many_who_make_steps_requeue_each_letter_once(self, postgres_post: Post) -> None:
        post = postgres_post
        ids = post.fail(40)
        redrive_id = post.start(per_second=None)
        together, errors = threading.Barrier(6), []

        def work() -> None:
            together.wait(10)
            try:
                while post.view(redrive_id).running:
                    with post.db.begin() as session:
                        step(session, redrive_id, limit=3)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert errors == []
        assert post.results(redrive_id) == dict.fromkeys(ids, "requeued")
        assert len(requeued_events(post)) == 40
        assert len(post.events("REDRIVE_ENDED")) == 1

    def test_two_redrives_and_people_with_single_letters_requeue_each_once(self, postgres_post: Post) -> None:
        post = postgres_post
        ids = post.fail(30)
        sets = [post.start(per_second=None) for _ in range(2)]
        errors: list[Exception] = []

        def guarded(work: object) -> None:
            try:
                work()  # type: ignore[operator]
            except Exception as error:
                errors.append(error)

        def one_by_one() -> None:
            for each in reversed(ids):
                post.requeue(each)

        works = [lambda: advance_all(post.db), lambda: advance_all(post.db), one_by_one]
        threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        eventually(lambda: advance_all(post.db) == 0, "the end of every redrive")
        assert errors == []
        assert len(requeued_events(post)) == 30
        assert {letter.retry_count for letter in post.letters()} == {1}
        done = sum(post.view(each).requeued for each in sets)
        with post.db.read() as session:
            singles = sum(event.payload["requeued"] for event in post.events("BULK_REQUEUE"))
            assert session.scalars(select(DeadLetter.id)).all()
        assert done + singles == 30


def test_moments_of_a_pace_only_grow(post: Post, noon: ManualClock) -> None:
    pace = redrive_set.Pace(4)
    moments = [pace.next() for _ in range(9)]
    assert all(later - earlier == SECOND / 4 for earlier, later in pairwise(moments))  # type: ignore[operator]


def test_a_database_without_redrives_has_nothing_to_advance(db: Database) -> None:
    assert advance_all(db) == 0
