"""Dead letters over the API: who may, what is there, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from officers import add_officer
from saga_cast import NOON
from sqlalchemy import insert, select, update
from werkzeug.test import TestResponse

from effaced.accounts.api_keys import create_api_key
from effaced.audit.tables import AuditEvent
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
    SubjectKey,
    new_id,
)
from effaced.outbox.tables import OutboxRow
from effaced.requests.tables import Request

from .conftest import Api, customers

LETTERS, REDRIVES = "/api/v1/dead-letters", "/api/v1/redrives"
NOBODY = "01890a5d-ac96-774b-bcce-b302099a8057"


class Desk:
    """A caller who may operate, and some letters to operate on."""

    def __init__(self, api: Api, *scopes: str) -> None:
        self.api = api
        with api.runtime.db.begin() as session:
            key, self.token = create_api_key(
                session, name=f"desk {new_id()}", approvals_needed=1, actor="cli", scopes=scopes
            )
        self.actor = f"api_key:{key.id}"

    def get(self, path: str) -> TestResponse:
        return self.api.get(path, token=self.token)

    def send(self, path: str, body: Any = None, method: str = "POST") -> TestResponse:
        headers = self.api.headers(self.token)
        return self.api.app.test_client().open(path, method=method, json=body, headers=headers)

    def letter(
        self,
        resolver: str = "crm",
        *,
        operation: OutboxOperation = OutboxOperation.ERASE,
        status: DeadLetterStatus = DeadLetterStatus.PENDING,
        entry_status: OutboxStatus = OutboxStatus.ABANDONED,
    ) -> UUID:
        """An abandoned call and its letter; `entry_status` says how the call stands by now."""
        entry_id, request_id, at = new_id(), new_id(), clock.now()
        subject = SubjectKey("k1", "0" * 64)
        row = {
            "entry_id": entry_id,
            "request_id": request_id,
            "operation": operation,
            "resolver": resolver,
            "subject_key_id": subject.key_id,
            "subject_hmac": subject.hmac,
            "ref_kind": "crm",
            "status": entry_status,
            "enqueued_at": at,
            "aging_since": at,
        }
        failure = Failure(
            domain=DeadLetterDomain.EXTERNAL_CALL,
            request_id=request_id,
            subject=subject,
            error="Timeout",
            code="attempts_exhausted",
            entry_id=entry_id,
            resolver=resolver,
            attempts=8,
            operation=operation,
        )
        with self.api.runtime.db.begin() as session:
            session.execute(insert(OutboxRow), [row])
            record_failures(session, [failure])
            letter = session.scalars(select(DeadLetter).where(DeadLetter.entry_id == entry_id)).one()
            letter.status = status
            return letter.id

    def status(self, letter_id: UUID) -> str:
        with self.api.runtime.db.read() as session:
            return session.get_one(DeadLetter, letter_id).status.value

    def events(self, *types: str) -> list[AuditEvent]:
        with self.api.runtime.db.read() as session:
            query = select(AuditEvent).where(AuditEvent.type.in_(types)).order_by(AuditEvent.id)
            return list(session.scalars(query))


@pytest.fixture
def desk(api: Api) -> Desk:
    return Desk(api, "operate:write")


@pytest.fixture
def lite(make_api: Callable[..., Api], migrated_sqlite_url: str) -> Desk:
    """For what is the same on either database."""
    return Desk(make_api(migrated_sqlite_url), "operate:write")


def answer(response: TestResponse, status: int = 200) -> Any:
    assert response.status_code == status, response.get_json()
    return response.get_json()


class TestScopes:
    READS = (
        LETTERS,
        f"{LETTERS}/stats",
        f"{LETTERS}/purge?older_than_days=0",
        f"{LETTERS}/evict?count=1",
        f"{LETTERS}/summaries",
        REDRIVES,
    )

    def test_a_key_for_requests_may_not_operate(self, lite: Desk) -> None:
        for path in self.READS:
            status, slug, fields = Api.problem(lite.api.get(path))
            assert (status, slug) == (403, "forbidden")
            assert fields == {"Authorization": "needs the scope operate:read"}

    def test_a_key_that_may_look_may_not_change(self, lite: Desk) -> None:
        reader = Desk(lite.api, "operate:read")
        letter_id = lite.letter()
        for path in (*self.READS, f"{LETTERS}/{letter_id}"):
            assert reader.get(path).status_code == 200
        for path in (
            f"{LETTERS}/{letter_id}/requeue",
            f"{LETTERS}/{letter_id}/decision",
            f"{LETTERS}/{letter_id}/notes",
            f"{LETTERS}/archive",
            f"{LETTERS}/purge",
            f"{LETTERS}/evict",
            f"{LETTERS}/summaries/{new_id()}/status",
            REDRIVES,
            f"{REDRIVES}/{new_id()}/cancel",
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
        assert [each["id"] for each in page["dead_letters"]] == ids[:2]
        rest = answer(desk.get(f"{LETTERS}?limit=2&after={page['next']}"))
        assert ([each["id"] for each in rest["dead_letters"]], rest["next"]) == (ids[2:], None)
        every = answer(desk.get(f"{LETTERS}?status=all"))
        assert [each["id"] for each in every["dead_letters"]] == [*ids, resolved]

    def test_how_long_they_may_wait_is_a_setting(
        self, make_api: Callable[..., Api], migrated_sqlite_url: str
    ) -> None:
        desk = Desk(make_api(migrated_sqlite_url, dead_letter_hours={"external_call": 2}), "operate:write")
        letter_id = desk.letter()
        with desk.api.runtime.db.begin() as session:
            session.get_one(DeadLetter, letter_id).created_at -= timedelta(hours=3)
        assert answer(desk.get(f"{LETTERS}/stats"))["sla"]["external_call"] == {"hours": 2.0, "breached": 1}
        assert [each["late"] for each in answer(desk.get(f"{LETTERS}?late=true"))["dead_letters"]] == [True]
        assert answer(desk.get(f"{LETTERS}/{letter_id}"))["late"] is True

    def test_filters(self, lite: Desk) -> None:
        crm, mail = lite.letter("crm"), lite.letter("mail", status=DeadLetterStatus.REVIEWING)

        def found(query: str) -> list[str]:
            return [each["id"] for each in answer(lite.get(f"{LETTERS}?{query}"))["dead_letters"]]

        assert found("resolver=mail") == [str(mail)]
        assert found("status=reviewing") == [str(mail)]
        assert found("status=reviewing&status=pending") == [str(crm), str(mail)]
        assert found("domain=message") == []
        assert found("error=Timeout&code=attempts_exhausted&unassigned=true") == [str(crm), str(mail)]
        assert found("late=true") == []
        assert found("expired=true&status=all") == []
        assert found(f"assigned_to={new_id()}") == []

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
        ],
    )
    def test_a_wrong_argument_is_refused_by_its_name(self, lite: Desk, query: str, field: str) -> None:
        status, slug, fields = Api.problem(lite.get(f"{LETTERS}?{query}"))
        assert (status, slug, list(fields)) == (422, "refused", [field])


def test_one_has_everything_and_nothing_personal(desk: Desk) -> None:
    letter_id = desk.letter()
    found = answer(desk.get(f"{LETTERS}/{letter_id}"))
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
    assert not {"subject_hmac", "subject_key_id", "context"} & found.keys()


@pytest.mark.parametrize("name", [NOBODY, "x", "%00"])
def test_one_that_does_not_exist_is_not_found(lite: Desk, name: str) -> None:
    for path, body in (
        (f"{LETTERS}/{name}/requeue", {"reason": "x"}),
        (f"{LETTERS}/{name}/decision", {"reason": "x", "status": "resolved"}),
        (f"{LETTERS}/{name}/notes", {"text": "x"}),
        (f"{REDRIVES}/{name}/cancel", {}),
    ):
        assert Api.problem(lite.send(path, body))[:2] == (404, "not-found")
    for path in (f"{LETTERS}/{name}", f"{REDRIVES}/{name}", f"{REDRIVES}/{name}/results"):
        assert Api.problem(lite.get(path))[:2] == (404, "not-found")


def test_stats_have_facets_groups_and_what_is_late(desk: Desk) -> None:
    desk.letter("crm"), desk.letter("mail")
    found = answer(desk.get(f"{LETTERS}/stats?resolver=crm"))
    assert (found["active"], found["facets"]["resolver"]) == (2, {"crm": 1, "mail": 1})
    assert [(each["resolver"], each["count"]) for each in found["groups"]] == [("crm", 1)]
    assert found["sla"]["local_execution"] == {"hours": 4.0, "breached": 0}


class TestOne:
    def test_is_requeued(self, desk: Desk) -> None:
        letter_id = desk.letter()
        told = answer(desk.send(f"{LETTERS}/{letter_id}/requeue", {"reason": "back"}))
        assert (told["requeued"], told["code"]) == (True, "requeued")
        again = answer(desk.send(f"{LETTERS}/{letter_id}/requeue", {"reason": "back"}))
        assert (again["requeued"], again["code"]) == (False, "already_replaying")
        assert [each.actor for each in desk.events("ERASURE_REQUEUED")] == [desk.actor]

    def test_whose_tries_are_used_up_needs_force(self, lite: Desk) -> None:
        letter_id = lite.letter(status=DeadLetterStatus.REQUIRES_REVIEW)
        path = f"{LETTERS}/{letter_id}/requeue"
        assert answer(lite.send(path, {"reason": "x"}))["code"] == "needs_force"
        assert answer(lite.send(path, {"reason": "x", "force": True}))["requeued"] is True

    def test_of_a_correction_is_told_to_be_sent_again(self, lite: Desk) -> None:
        letter_id = lite.letter(operation=OutboxOperation.RECTIFY)
        told = answer(lite.send(f"{LETTERS}/{letter_id}/requeue", {"reason": "x"}))
        assert (told["requeued"], told["code"]) == (False, "reissue")
        assert answer(lite.get(f"{LETTERS}/{letter_id}"))["recommended_action"] == "reissue"

    def test_is_decided_about(self, desk: Desk) -> None:
        letter_id = desk.letter(entry_status=OutboxStatus.SUCCEEDED)
        path = f"{LETTERS}/{letter_id}/decision"
        found = answer(desk.send(path, {"status": "resolved", "reason": "sent again"}))
        assert (found["status"], found["resolved_by"]) == ("resolved", desk.actor)
        assert [each["text"] for each in found["notes"]] == ["sent again"]
        assert Api.problem(desk.send(path, {"status": "resolved", "reason": "x"}))[:2] == (409, "conflict")

    @pytest.mark.parametrize("operation", list(OutboxOperation))
    def test_over_a_call_that_was_not_made_is_not_closed(
        self, lite: Desk, operation: OutboxOperation
    ) -> None:
        letter_id = lite.letter(operation=operation)
        refused = lite.send(f"{LETTERS}/{letter_id}/decision", {"status": "resolved", "reason": "x"})
        assert Api.problem(refused)[:2] == (409, "conflict")
        assert lite.status(letter_id) == "pending"

    def test_is_assigned_and_given_back(self, desk: Desk) -> None:
        letter_id = desk.letter()
        with desk.api.runtime.db.begin() as session:
            olga = add_officer(session, "olga")
        path = f"{LETTERS}/{letter_id}/assignee"
        assert answer(desk.send(path, {"officer": str(olga.id)}, "PUT"))["assigned_to"] == str(olga.id)
        assert answer(desk.send(path, {"officer": None}, "PUT"))["assigned_to"] is None
        assert len(desk.events("DEAD_LETTER_ASSIGNED")) == 2

    def test_is_noted(self, desk: Desk) -> None:
        letter_id = desk.letter()
        found = answer(desk.send(f"{LETTERS}/{letter_id}/notes", {"text": "called them"}), 201)
        assert [(each["author"], each["text"]) for each in found["notes"]] == [(desk.actor, "called them")]

    @pytest.mark.parametrize(
        ("path", "body", "fields"),
        [
            ("requeue", {}, ["reason"]),
            ("requeue", {"reason": "x", "force": "yes"}, ["force"]),
            ("decision", {"status": "archived", "reason": "x"}, ["status"]),
            ("decision", {"status": "resolved", "reason": "", "x": 1}, ["reason", "x"]),
            ("notes", {"text": "x" * 2_001}, ["text"]),
            ("notes", {"text": " "}, ["note"]),
        ],
    )
    def test_wrong_fields_are_named(self, lite: Desk, path: str, body: Any, fields: list[str]) -> None:
        status, slug, found = Api.problem(lite.send(f"{LETTERS}/{lite.letter()}/{path}", body))
        assert (status, slug, list(found)) == (422, "refused", fields)

    @pytest.mark.parametrize("officer", ["olga", NOBODY, 7])
    def test_an_officer_who_is_none_is_refused(self, lite: Desk, officer: object) -> None:
        refused = lite.send(f"{LETTERS}/{lite.letter()}/assignee", {"officer": officer}, "PUT")
        assert (Api.problem(refused)[0], list(Api.problem(refused)[2])) == (422, ["officer"])


class TestRedrive:
    def test_of_a_set_is_202_and_can_be_polled_to_its_end(self, desk: Desk) -> None:
        ids = [desk.letter() for _ in range(3)]
        body = {"filter": {"resolver": "crm"}, "reason": "back", "per_second": None}
        started = desk.send(REDRIVES, body)
        found = answer(started, 202)
        assert (found["status"], found["total"], found["done"]) == ("running", 3, 0)
        path = started.headers["Location"]
        desk.api.runtime.advance_redrives()
        found = answer(desk.get(path))
        assert (found["status"], found["requeued"], found["skipped"]) == ("finished", 3, {})
        page = answer(desk.get(f"{path}/results?limit=2"))
        rest = answer(desk.get(f"{path}/results?after={page['next']}"))
        told = [*page["results"], *rest["results"]]
        assert {each["dead_letter_id"]: each["code"] for each in told} == {
            str(each): "requeued" for each in ids
        }
        assert [each["id"] for each in answer(desk.get(REDRIVES))["redrives"]] == [found["id"]]

    def test_can_be_cancelled_once(self, desk: Desk) -> None:
        letter_id = desk.letter()
        body = {"filter": {}, "reason": "back"}
        path = desk.send(REDRIVES, body).headers["Location"]
        assert answer(desk.send(f"{path}/cancel", {}))["status"] == "cancelled"
        desk.api.runtime.advance_redrives()
        assert desk.status(letter_id) == "pending"
        assert Api.problem(desk.send(f"{path}/cancel", {}))[:2] == (409, "conflict")

    @pytest.mark.parametrize(
        ("body", "fields"),
        [
            ({}, ["filter", "reason"]),
            ({"filter": {"resolvr": "x"}, "reason": "x"}, ["filter.resolvr"]),
            ({"filter": {"domain": "x"}, "reason": "x"}, ["filter.domain"]),
            ({"filter": {"status": ["done"]}, "reason": "x"}, ["filter.status"]),
            ({"filter": {"resolver": "nobody"}, "reason": "x"}, ["filter"]),
            ({"filter": {}, "reason": "x", "per_second": 0}, ["per_second"]),
            ({"filter": {}, "reason": " "}, ["reason"]),
        ],
    )
    def test_wrong_fields_are_named_and_nothing_is_started(
        self, lite: Desk, body: Any, fields: list[str]
    ) -> None:
        lite.letter()
        status, slug, found = Api.problem(lite.send(REDRIVES, body))
        assert (status, slug, list(found)) == (422, "refused", fields)
        assert answer(lite.get(REDRIVES))["redrives"] == []


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
        assert answer(desk.send(f"{LETTERS}/purge", body | {"expected": 1})) == {"purged": 1}
        assert desk.get(f"{LETTERS}/{letter_id}").status_code == 404
        assert [each.actor for each in desk.events("DEAD_LETTERS_PURGED")] == [desk.actor]

    def archived(self, desk: Desk, number: int) -> None:
        for _ in range(number):
            letter_id = desk.letter(entry_status=OutboxStatus.SUCCEEDED)
            desk.send(f"{LETTERS}/{letter_id}/decision", {"status": "rejected", "reason": "x"})
        desk.send(f"{LETTERS}/archive", {"older_than_days": 0})

    def test_evict_removes_what_its_preview_said_and_leaves_summaries(self, desk: Desk) -> None:
        self.archived(desk, 3)
        open_id = desk.letter()
        assert answer(desk.get(f"{LETTERS}/evict?count=9")) == {"count": 9, "evictable": 3}
        assert answer(desk.get(f"{LETTERS}/evict?count=9&domain=message"))["evictable"] == 0
        body = {"count": 1, "domain": "external_call", "reason": "old"}
        assert answer(desk.send(f"{LETTERS}/evict", body)) == {"evicted": 1}
        body = {"count": 2, "compress": True, "reason": "old"}
        assert answer(desk.send(f"{LETTERS}/evict", body)) == {"evicted": 2}
        assert desk.status(open_id) == "pending"
        found = answer(desk.get(f"{LETTERS}/summaries?domain=external_call&status=active&limit=5"))
        (summary,) = found["summaries"]
        assert (summary["count"], summary["status"], summary["stale_at"]) == (2, "active", None)
        assert found["totals"]["letters"] == 2
        assert [each.actor for each in desk.events("DEAD_LETTERS_PURGED")] == [desk.actor] * 2
        path = f"{LETTERS}/summaries/{summary['id']}/status"
        assert answer(desk.send(path, {"status": "stale"}))["status"] == "stale"
        assert Api.problem(desk.send(path, {"status": "stale"}))[:2] == (409, "conflict")

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
        assert lite.send(path, {"same_person": True, "reason": "checked"}).status_code == 409
