"""Dead letters over the API: who may, what is there, and what becomes of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from api_desk import LETTERS, NOBODY, REDRIVES, RETENTIONS, Desk, answer, codes
from officers import add_officer
from saga_cast import NOON
from sqlalchemy import select, update

from effaced.core import clock
from effaced.deadletters.record import record_failures
from effaced.deadletters.rules import Failure
from effaced.deadletters.tables import DeadLetter
from effaced.model import (
    DeadLetterDomain,
    DeadLetterStatus,
    OutboxOperation,
    OutboxStatus,
    RequestStatus,
    new_id,
)
from effaced.requests.tables import Request

from .conftest import Api, customers


class TestScopes:
    READS = (
        LETTERS,
        f"{LETTERS}/stats",
        f"{LETTERS}/purge?older_than_days=0",
        f"{LETTERS}/evict?count=1",
        f"{LETTERS}/summaries",
        REDRIVES,
        RETENTIONS,
    )

    def test_a_key_for_requests_may_not_operate(self, lite: Desk) -> None:
        for path in self.READS:
            status, slug, fields = Api.problem(lite.api.get(path))
            assert (status, slug) == (403, "forbidden")
            assert fields == {"Authorization": "needs the scope operate:read"}

    def test_a_key_that_may_look_may_not_change(self, lite: Desk) -> None:
        reader = Desk(lite.api, "operate:read")
        letter_id = lite.letter()
        for path in (*self.READS, f"{LETTERS}/{letter_id}", f"{LETTERS}/{letter_id}/notes"):
            assert reader.get(path).status_code == 200
        for path in (
            f"{LETTERS}/{letter_id}/retry",
            f"{LETTERS}/{letter_id}/decision",
            f"{LETTERS}/{letter_id}/notes",
            f"{LETTERS}/archive",
            f"{LETTERS}/purge",
            f"{LETTERS}/evict",
            f"{LETTERS}/summaries/{new_id()}/status",
            REDRIVES,
            f"{REDRIVES}/{new_id()}/cancel",
            f"{RETENTIONS}/endings",
        ):
            refused = reader.send(path, {})
            assert Api.problem(refused)[:2] == (403, "forbidden")
            assert 'scope="operate:write"' in refused.headers["WWW-Authenticate"]
        assert reader.send(f"{LETTERS}/{letter_id}/assignee", {}, "PUT").status_code == 403

    def test_a_key_that_operates_may_not_send_requests(self, lite: Desk) -> None:
        refused = lite.api.post(Api.erasure(), token=lite.token)
        assert Api.problem(refused)[:2] == (403, "forbidden")
        assert lite.get(f"/api/v1/requests/{new_id()}").status_code == 403

    def test_a_key_from_before_there_were_scopes_sends_requests(self, lite: Desk) -> None:
        with lite.api.runtime.db.begin() as session:
            session.merge(lite.api.key).scopes = None
        assert lite.api.post(Api.erasure()).status_code == 201
        assert lite.api.get(LETTERS).status_code == 403

    def test_without_a_key_it_is_401(self, lite: Desk) -> None:
        assert lite.api.app.test_client().get(LETTERS).status_code == 401


class TestList:
    def test_is_oldest_first_by_pages_and_open_ones_unless_asked_otherwise(self, desk: Desk) -> None:
        with clock.pretend(NOON) as now:
            ids = []
            for _ in range(3):
                ids.append(str(desk.letter()))
                now.advance(timedelta(hours=1))
            resolved = str(desk.letter(status=DeadLetterStatus.RESOLVED))
        page = answer(desk.get(f"{LETTERS}?limit=2"))
        assert [each["id"] for each in page["data"]] == ids[:2]
        rest = answer(desk.get(f"{LETTERS}?limit=2&after={page['next']}"))
        assert ([each["id"] for each in rest["data"]], rest["next"]) == (ids[2:], None)
        every = answer(desk.get(f"{LETTERS}?status=all"))
        assert [each["id"] for each in every["data"]] == [*ids, resolved]

    def test_how_long_they_may_wait_is_a_setting(
        self, make_api: Callable[..., Api], migrated_sqlite_url: str
    ) -> None:
        desk = Desk(make_api(migrated_sqlite_url, dead_letter_hours={"external_call": 2}), "operate:write")
        letter_id = desk.letter()
        with desk.api.runtime.db.begin() as session:
            session.get_one(DeadLetter, letter_id).created_at -= timedelta(hours=3)
        assert answer(desk.get(f"{LETTERS}/stats"))["sla"]["external_call"] == {"hours": 2.0, "breached": 1}
        assert [each["late"] for each in answer(desk.get(f"{LETTERS}?late=true"))["data"]] == [True]
        assert answer(desk.get(f"{LETTERS}/{letter_id}"))["late"] is True

    def test_filters(self, lite: Desk) -> None:
        crm, mail = lite.letter("crm"), lite.letter("mail", status=DeadLetterStatus.REVIEWING)

        def found(query: str) -> list[str]:
            return [each["id"] for each in answer(lite.get(f"{LETTERS}?{query}"))["data"]]

        assert found("resolver=mail") == [str(mail)]
        assert found("status=reviewing") == [str(mail)]
        assert found("status=reviewing&status=pending") == [str(crm), str(mail)]
        assert found("domain=message") == []
        assert found("error=Timeout&code=attempts_exhausted&unassigned=true") == [str(crm), str(mail)]
        assert found("late=true") == []
        assert found("expired=true&status=all") == []
        assert found(f"assigned_to={new_id()}") == []

    def test_what_an_answer_says_finds_it_under_the_same_name(self, lite: Desk) -> None:
        lite.letter("mail")
        shown = answer(lite.get(f"{LETTERS}/{lite.letter('crm')}"))
        for name in ("status", "domain", "resolver", "error", "code", "request_id"):
            found = answer(lite.get(f"{LETTERS}?{name}={shown[name]}"))["data"]
            assert shown["id"] in [each["id"] for each in found], name

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ("status=done", "status"),
            ("domain=x", "domain"),
            ("resolver=%00", "resolver"),
            ("request_id=7", "request_id"),
            ("assigned_to=olga", "assigned_to"),
            ("late=1", "late"),
            ("limit=0", "limit"),
            ("limit=x", "limit"),
            ("after=x", "after"),
            ("stauts=pending", "stauts"),
            ("resolver=", "resolver"),
            (f"error={'x' * 256}", "error"),
        ],
    )
    def test_a_wrong_argument_is_refused_by_its_name(self, lite: Desk, query: str, field: str) -> None:
        status, slug, fields = Api.problem(lite.get(f"{LETTERS}?{query}"))
        assert (status, slug, list(fields)) == (422, "refused", [field])


def test_one_has_everything_and_nothing_personal(desk: Desk) -> None:
    letter_id = desk.letter()
    found = answer(desk.get(f"{LETTERS}/{letter_id}?expand=notes"))
    assert (found["status"], found["resolver"], found["attempts"], found["notes"]) == (
        "pending",
        "crm",
        8,
        [],
    )
    assert (found["recommended_action"], found["retry_count"], found["max_retries"]) == (
        "requeue_when_vendor_is_back",
        0,
        2,
    )
    assert (found["error"], found["code"], found["failures"]) == ("Timeout", "attempts_exhausted", [])
    assert not {"subject_hmac", "subject_key_id", "context", "failure_type", "error_code"} & found.keys()


def test_one_that_failed_again_has_the_facts_of_each_failure(desk: Desk) -> None:
    with desk.api.runtime.db.read() as session:
        letter = session.get_one(DeadLetter, desk.letter())
    again = Failure(
        domain=DeadLetterDomain.EXTERNAL_CALL,
        request_id=letter.request_id,
        subject=None,
        error="Refused",
        code="http_400",
        entry_id=letter.entry_id,
        resolver="crm",
        attempts=2,
    )
    with desk.api.runtime.db.begin() as session:
        record_failures(session, [again])
    found = answer(desk.get(f"{LETTERS}/{letter.id}"))
    assert [(each["error"], each["attempts"]) for each in found["failures"]] == [
        ("Timeout", 8),
        ("Refused", 2),
    ]
    assert (found["error"], found["code"]) == ("Refused", "http_400")


@pytest.mark.parametrize("name", [NOBODY, "x", "%00"])
def test_one_that_does_not_exist_is_not_found(lite: Desk, name: str) -> None:
    for path, body in (
        (f"{LETTERS}/{name}/retry", {"reason": "x"}),
        (f"{LETTERS}/{name}/decision", {"reason": "x", "status": "resolved"}),
        (f"{LETTERS}/{name}/notes", {"text": "x"}),
        (f"{LETTERS}/{name}/subject", {"same_person": True, "reason": "x"}),
        (f"{LETTERS}/summaries/{name}/status", {"status": "stale"}),
        (f"{REDRIVES}/{name}/cancel", {}),
    ):
        assert Api.problem(lite.send(path, body))[:2] == (404, "not-found")
    assert Api.problem(lite.send(f"{LETTERS}/{name}/assignee", {"assigned_to": None}, "PUT"))[0] == 404
    for path in (
        f"{LETTERS}/{name}",
        f"{LETTERS}/{name}/notes",
        f"{LETTERS}/{name}/notes/{name}",
        f"{LETTERS}/summaries/{name}",
        f"{REDRIVES}/{name}",
        f"{REDRIVES}/{name}/results",
        f"{RETENTIONS}/{name}",
        f"{RETENTIONS}/endings/{name}",
    ):
        assert Api.problem(lite.get(path))[:2] == (404, "not-found")


def test_stats_have_facets_groups_and_what_is_late(desk: Desk) -> None:
    desk.letter("crm"), desk.letter("mail")
    found = answer(desk.get(f"{LETTERS}/stats?resolver=crm"))
    assert (found["active"], found["facets"]["resolver"]) == (2, {"crm": 1, "mail": 1})
    assert [(each["resolver"], each["count"]) for each in found["groups"]] == [("crm", 1)]
    assert found["sla"]["local_execution"] == {"hours": 4.0, "breached": 0}


class TestRetry:
    def test_is_retried_once(self, desk: Desk) -> None:
        path = f"{LETTERS}/{desk.letter()}/retry"
        found = answer(desk.send(path, {"reason": "back"}))
        assert (found["status"], found["retry_count"]) == ("replaying", 1)
        again = desk.send(path, {"reason": "back"})
        assert codes(again) == (409, {"status": "already_replaying"})
        assert [each.actor for each in desk.events("ERASURE_REQUEUED")] == [desk.actor]

    def test_whose_retries_are_used_up_needs_force(self, desk: Desk) -> None:
        letter_id = desk.letter(status=DeadLetterStatus.REQUIRES_REVIEW)
        path = f"{LETTERS}/{letter_id}/retry"
        assert codes(desk.send(path, {"reason": "x"})) == (409, {"force": "needs_force"})
        assert answer(desk.send(path, {"reason": "x", "force": True}))["status"] == "replaying"

    def test_of_a_correction_has_to_be_sent_again(self, lite: Desk) -> None:
        letter_id = lite.letter(operation=OutboxOperation.RECTIFY)
        assert codes(lite.send(f"{LETTERS}/{letter_id}/retry", {"reason": "x"})) == (
            409,
            {"status": "reissue"},
        )
        assert answer(lite.get(f"{LETTERS}/{letter_id}"))["recommended_action"] == "reissue"

    def test_one_that_was_refused_leaves_nothing_behind(self, desk: Desk) -> None:
        letter_id = desk.letter(status=DeadLetterStatus.REQUIRES_REVIEW)
        before = desk.api.rows()
        desk.send(f"{LETTERS}/{letter_id}/retry", {"reason": "x"})
        assert desk.api.rows() == before

    def test_of_many_at_once_one_retries(self, desk: Desk) -> None:
        path, statuses = f"{LETTERS}/{desk.letter()}/retry", list[int]()
        threads = [
            threading.Thread(target=lambda: statuses.append(desk.send(path, {"reason": "x"}).status_code))
            for _ in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert sorted(statuses) == [200, *[409] * 7]
        assert len(desk.events("ERASURE_REQUEUED")) == 1

    def test_sent_again_under_one_idempotency_key_is_answered_alike(self, desk: Desk) -> None:
        path = f"{LETTERS}/{desk.letter()}/retry"
        first, second = (desk.send(path, {"reason": "x"}, idempotency_key="one") for _ in range(2))
        assert (first.status_code, second.status_code) == (200, 200)
        assert second.headers["Idempotent-Replay"] == "true"
        assert second.get_json() == first.get_json()


class TestOne:
    def test_is_decided_about(self, desk: Desk) -> None:
        letter_id = desk.letter(entry_status=OutboxStatus.SUCCEEDED)
        path = f"{LETTERS}/{letter_id}/decision"
        found = answer(desk.send(path, {"status": "resolved", "reason": "sent again"}))
        assert (found["status"], found["resolved_by"]) == ("resolved", desk.actor)
        assert found["notes"] is None
        shown = answer(desk.get(f"{LETTERS}/{letter_id}?expand=notes"))
        assert [each["text"] for each in shown["notes"]] == ["sent again"]
        again = desk.send(path, {"status": "resolved", "reason": "x"})
        assert codes(again) == (409, {"status": "wrong_state"})

    @pytest.mark.parametrize("operation", list(OutboxOperation))
    def test_over_a_call_that_was_not_made_is_not_closed(
        self, lite: Desk, operation: OutboxOperation
    ) -> None:
        letter_id = lite.letter(operation=operation)
        refused = lite.send(f"{LETTERS}/{letter_id}/decision", {"status": "resolved", "reason": "x"})
        assert codes(refused) == (409, {"status": "work_not_done"})
        assert lite.status(letter_id) == "pending"

    def test_is_assigned_and_given_back(self, desk: Desk) -> None:
        letter_id = desk.letter()
        with desk.api.runtime.db.begin() as session:
            olga = add_officer(session, "olga")
        path = f"{LETTERS}/{letter_id}/assignee"
        assert answer(desk.send(path, {"assigned_to": str(olga.id)}, "PUT"))["assigned_to"] == str(olga.id)
        assert answer(desk.send(path, {"assigned_to": None}, "PUT"))["assigned_to"] is None
        assert len(desk.events("DEAD_LETTER_ASSIGNED")) == 2

    def test_is_noted(self, desk: Desk) -> None:
        letter_id = desk.letter()
        created = desk.send(f"{LETTERS}/{letter_id}/notes", {"text": "called them"})
        found = answer(created, 201)
        assert (found["author"], found["text"]) == (desk.actor, "called them")
        assert answer(desk.get(created.headers["Location"])) == found
        assert answer(desk.get(f"{LETTERS}/{letter_id}/notes"))["data"] == [found]
        assert answer(desk.get(f"{LETTERS}/{letter_id}?expand=notes"))["notes"] == [found]
        assert desk.get(created.headers["Location"].replace(str(letter_id), NOBODY)).status_code == 404

    def test_a_note_is_not_kept_in_plain_for_its_idempotency_key(self, desk: Desk) -> None:
        path = f"{LETTERS}/{desk.letter()}/notes"
        first, second = (desk.send(path, {"text": "Zoe called"}, idempotency_key="one") for _ in range(2))
        assert (answer(first, 201)["text"], answer(second, 201)["text"]) == ("Zoe called", None)
        assert first.get_json()["id"] == second.get_json()["id"]
        assert "Zoe called" not in desk.api.everything()

    def test_settled_is_assigned_to_nobody(self, lite: Desk) -> None:
        letter_id = lite.letter(status=DeadLetterStatus.RESOLVED)
        refused = lite.send(f"{LETTERS}/{letter_id}/assignee", {"assigned_to": None}, "PUT")
        assert codes(refused) == (409, {"status": "wrong_state"})

    @pytest.mark.parametrize(
        ("path", "body", "fields"),
        [
            ("retry", {}, ["reason"]),
            ("retry", {"reason": "x", "force": "yes"}, ["force"]),
            ("decision", {"status": "archived", "reason": "x"}, ["status"]),
            ("decision", {"status": "resolved", "reason": "", "x": 1}, ["reason", "x"]),
            ("notes", {"text": "x" * 2_001}, ["text"]),
            ("notes", {"text": " "}, ["text"]),
            ("subject", {"same_person": "yes", "reason": "x"}, ["same_person"]),
        ],
    )
    def test_wrong_fields_are_named(self, lite: Desk, path: str, body: Any, fields: list[str]) -> None:
        status, slug, found = Api.problem(lite.send(f"{LETTERS}/{lite.letter()}/{path}", body))
        assert (status, slug, list(found)) == (422, "refused", fields)

    @pytest.mark.parametrize("officer", ["olga", NOBODY, 7])
    def test_an_officer_who_is_none_is_refused(self, lite: Desk, officer: object) -> None:
        refused = lite.send(f"{LETTERS}/{lite.letter()}/assignee", {"assigned_to": officer}, "PUT")
        assert (Api.problem(refused)[0], list(Api.problem(refused)[2])) == (422, ["assigned_to"])


class TestArchiveAndPurge:
    def test_archive_says_how_many_and_how_many_are_left(self, desk: Desk) -> None:
        for _ in range(2):
            letter_id = desk.letter(entry_status=OutboxStatus.SUCCEEDED)
            desk.send(f"{LETTERS}/{letter_id}/decision", {"status": "rejected", "reason": "x"})
        assert answer(desk.send(f"{LETTERS}/archive", {})) == {"archived": 0, "left": 0}
        assert answer(desk.send(f"{LETTERS}/archive", {"older_than_days": 0})) == {"archived": 2, "left": 0}

    def test_purge_removes_what_its_preview_said(self, desk: Desk) -> None:
        letter_id = desk.letter(entry_status=OutboxStatus.SUCCEEDED)
        desk.send(f"{LETTERS}/{letter_id}/decision", {"status": "rejected", "reason": "x"})
        desk.send(f"{LETTERS}/archive", {"older_than_days": 0})
        seen = answer(desk.get(f"{LETTERS}/purge?older_than_days=0"))
        assert seen == {"older_than_days": 0, "purgeable": 1}
        body = {"older_than_days": 0, "expected": 2, "reason": "old"}
        status, slug, fields = Api.problem(desk.send(f"{LETTERS}/purge", body))
        assert (status, slug, list(fields)) == (409, "conflict", ["expected"])
        assert codes(desk.send(f"{LETTERS}/purge", body)) == (409, {"expected": "out_of_date"})
        assert answer(desk.send(f"{LETTERS}/purge", body | {"expected": 1})) == {"purged": 1}
        assert desk.get(f"{LETTERS}/{letter_id}").status_code == 404
        assert [each.actor for each in desk.events("DEAD_LETTERS_PURGED")] == [desk.actor]

    def test_evict_removes_what_its_preview_said_and_leaves_summaries(self, desk: Desk) -> None:
        desk.archived(3)
        open_id = desk.letter()
        assert answer(desk.get(f"{LETTERS}/evict?count=9")) == {"count": 9, "evictable": 3}
        assert answer(desk.get(f"{LETTERS}/evict?count=9&domain=message"))["evictable"] == 0
        body = {"count": 1, "domain": "external_call", "reason": "old"}
        assert answer(desk.send(f"{LETTERS}/evict", body)) == {"evicted": 1}
        body = {"count": 2, "compress": True, "reason": "old"}
        assert answer(desk.send(f"{LETTERS}/evict", body)) == {"evicted": 2}
        assert desk.status(open_id) == "pending"
        found = answer(desk.get(f"{LETTERS}/summaries?domain=external_call&status=active&limit=5"))
        (summary,) = found["data"]
        assert (summary["count"], summary["status"], summary["stale_at"]) == (2, "active", None)
        assert found["totals"]["dead_letters"] == 2
        assert [each.actor for each in desk.events("DEAD_LETTERS_PURGED")] == [desk.actor] * 2
        path = f"{LETTERS}/summaries/{summary['id']}/status"
        assert answer(desk.send(path, {"status": "stale"}))["status"] == "stale"
        assert codes(desk.send(path, {"status": "stale"})) == (409, {"status": "wrong_state"})
        assert answer(desk.get(path.removesuffix("/status")))["status"] == "stale"
        assert codes(desk.get(f"{LETTERS}/summaries?after=x"))[0] == 422

    @pytest.mark.parametrize(
        ("path", "body", "fields"),
        [
            ("evict", {"count": 0, "reason": "x"}, ["count"]),
            ("evict", {"count": 1}, ["reason"]),
            ("evict", {"count": 1, "domain": "x", "reason": "x"}, ["domain"]),
            (f"summaries/{NOBODY}/status", {"status": "active"}, ["status"]),
        ],
    )
    def test_wrong_fields_of_an_eviction_are_named(
        self, lite: Desk, path: str, body: Any, fields: list[str]
    ) -> None:
        status, slug, found = Api.problem(lite.send(f"{LETTERS}/{path}", body))
        assert (status, slug, list(found)) == (422, "refused", fields)

    @pytest.mark.parametrize(
        ("query", "fields"),
        [
            ("evict", ["count"]),
            ("evict?count=1&domain=x", ["domain"]),
            ("evict?count=1&status=pending", ["status"]),
            ("summaries?status=pending", ["status"]),
            ("summaries?late=true", ["late"]),
        ],
    )
    def test_wrong_arguments_of_previews_and_summaries_are_named(
        self, lite: Desk, query: str, fields: list[str]
    ) -> None:
        status, slug, found = Api.problem(lite.get(f"{LETTERS}/{query}"))
        assert (status, slug, list(found)) == (422, "refused", fields)

    def test_an_age_that_is_none_is_refused(self, lite: Desk) -> None:
        for query in ("", "?older_than_days=-1", "?older_than_days=x"):
            status, _, fields = Api.problem(lite.get(f"{LETTERS}/purge{query}"))
            assert (status, list(fields)) == (422, ["older_than_days"])
        body = {"older_than_days": -1, "expected": 0, "reason": "x"}
        assert list(Api.problem(lite.send(f"{LETTERS}/purge", body))[2]) == ["older_than_days"]


class TestChangedSubject:
    """The row under the person's key may be somebody else's."""

    @pytest.fixture
    def stopped(self, api: Api) -> tuple[Desk, str, str]:
        """A desk, the letter's path and the request's."""
        where = api.post(api.erasure("4")).headers["Location"]
        with api.runtime.db.begin() as session:
            session.execute(
                update(customers).where(customers.c.id == 4).values(email="zoe@example.org", crm_ref="z")
            )
            request = session.scalars(select(Request)).one()
            request.status, request.execute_at = RequestStatus.APPROVED, clock.now()
        assert api.runtime.executor.execute_due() == 1
        with api.runtime.db.read() as session:
            letter = session.scalars(select(DeadLetter)).one()
        assert letter.error_code == "subject_changed"
        return Desk(api, "operate:write"), f"{LETTERS}/{letter.id}/subject", where

    def test_confirmed_is_executed(self, stopped: tuple[Desk, str, str]) -> None:
        desk, path, where = stopped
        answer = desk.send(path, {"same_person": True, "reason": "checked"})
        assert (answer.status_code, answer.get_json()["status"]) == (200, "replaying")
        assert desk.api.runtime.executor.execute_due() == 1
        assert desk.api.get(where).get_json()["status"] == "running"

    def test_denied_is_cancelled_and_nobody_erased(self, stopped: tuple[Desk, str, str]) -> None:
        desk, path, where = stopped
        answer = desk.send(path, {"same_person": False, "reason": "somebody else"})
        assert (answer.status_code, answer.get_json()["resolution"]) == (200, "cancelled")
        assert desk.api.get(where).get_json()["status"] == "cancelled"
        assert desk.api.rows()["customers"] == 6
        assert desk.send(path, {"same_person": True, "reason": "after all"}).status_code == 409

    def test_needs_the_scope(self, stopped: tuple[Desk, str, str]) -> None:
        desk, path, _ = stopped
        reader = Desk(desk.api, "operate:read")
        assert reader.send(path, {"same_person": True, "reason": "checked"}).status_code == 403

    def test_is_a_conflict_for_another_letter(self, lite: Desk) -> None:
        path = f"{LETTERS}/{lite.letter()}/subject"
        refused = lite.send(path, {"same_person": True, "reason": "checked"})
        assert codes(refused) == (409, {"code": "nothing_to_decide"})
