"""Exports of the trail as jobs: who may have what made, the file, and its end."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from export_cast import EXPORTS, Exporter, add_events, chunks_stored, exports_recorded, exports_stored
from sqlalchemy import select, text, update

from effaced.accounts.tables import ApiKey
from effaced.audit.exports.create import MOST_OPEN
from effaced.audit.exports.remove import KEPT
from effaced.audit.tables import AuditEvent, AuditExport, AuditExportChunk
from effaced.core import clock

Api = Any
DAY = timedelta(hours=24)

NOBODY = "263a11b6-587f-4a68-ae26-4862c1d00a28"


@pytest.fixture
def auditor(api: Api) -> Exporter:
    return Exporter(api, "audit:read")


@pytest.fixture
def shop(api: Api) -> Exporter:
    """The key that has sent the requests; it has the scopes of requests only."""
    return Exporter(api, token=api.token)


def lines(exported: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported.splitlines()]


class TestAnExport:
    def test_is_accepted_made_and_fetched(self, api: Api, auditor: Exporter) -> None:
        api.post(api.erasure("1"))
        answer = auditor.ask({})
        asked = answer.get_json()
        assert (answer.status_code, answer.headers["Location"]) == (202, f"{EXPORTS}/{asked['id']}")
        assert (asked["status"], asked["format"], asked["events"], asked["links"]["file"]) == (
            "pending",
            "jsonl",
            None,
            None,
        )
        assert api.runtime.export_maker().run() == 1
        ready = auditor.get(asked["links"]["self"]).get_json()
        file = auditor.get(ready["links"]["file"])
        assert (ready["status"], ready["progress"], ready["last_error"]) == ("ready", None, None)
        assert ready["events"] == len(file.text.splitlines())
        assert ready["bytes"] == len(file.data) == int(file.headers["Content-Length"])
        assert ready["sha256"] == hashlib.sha256(file.data).hexdigest() == file.headers["ETag"].strip('"')

    def test_is_json_lines_of_every_event_in_order(self, api: Api, auditor: Exporter) -> None:
        add_events(api.runtime.db, 3)
        answer = auditor.get(auditor.made()["links"]["file"])
        assert answer.content_type == "application/x-ndjson"
        found = [each["id"] for each in lines(answer.text)]
        assert found == sorted(found)
        assert len(found) >= 5

    def test_is_csv_that_spreadsheets_open_safely(self, api: Api, auditor: Exporter) -> None:
        add_events(api.runtime.db, 1, actor="=cmd|' /C calc'!A0")
        made = auditor.made(format="csv", filter={"type": "REQUEST_REPEATED"})
        answer = auditor.get(made["links"]["file"])
        assert answer.content_type == "text/csv; charset=utf-8"
        assert answer.headers["Content-Disposition"] == (
            f'attachment; filename="effaced-audit-{made["id"]}.csv"'
        )
        (row,) = csv.DictReader(io.StringIO(answer.text))
        assert (row["type"], row["actor"][0]) == ("REQUEST_REPEATED", "'")

    def test_has_what_the_filter_says_and_says_it_again(self, api: Api, auditor: Exporter) -> None:
        first, _ = (api.post(api.erasure(each)).get_json() for each in "12")
        now = clock.now()
        given = {
            "request_id": first["id"],
            "type": "REQUEST_RECEIVED",
            "actor": f"api_key:{api.key.id}",
            "from": clock.text(now - DAY),
            "before": clock.text(now + DAY),
        }
        made = auditor.made(filter=given)
        assert made["filter"] == given
        (event,) = lines(auditor.get(made["links"]["file"]).text)
        assert event["request_id"] == first["id"]

    def test_of_nothing_is_an_empty_file(self, auditor: Exporter) -> None:
        made = auditor.made(filter={"request_id": str(uuid4())})
        answer = auditor.get(made["links"]["file"])
        assert (made["events"], made["bytes"], answer.status_code, answer.data) == (0, 0, 200, b"")

    def test_has_what_was_committed_when_it_was_made(self, api: Api, auditor: Exporter) -> None:
        made = auditor.made(filter={"type": "REQUEST_REPEATED"})
        add_events(api.runtime.db, 1)
        assert auditor.get(made["links"]["file"]).data == b""

    def test_is_an_event_of_the_trail_before_it_can_be_fetched(self, api: Api, auditor: Exporter) -> None:
        request = api.post(api.erasure("1")).get_json()
        asked = auditor.asked(filter={"request_id": request["id"]}, format="csv")
        assert exports_recorded(api.runtime.db) == 0
        api.runtime.export_maker().run()
        with api.runtime.db.read() as session:
            event = session.scalars(select(AuditEvent).where(AuditEvent.type == "AUDIT_EXPORTED")).one()
            key = session.scalar(select(ApiKey.id).where(ApiKey.name == "auditor"))
        assert event.actor == f"api_key:{key}"
        assert {name: event.payload[name] for name in ("format", "events", "request_id", "export_id")} == {
            "format": "csv",
            "events": 1,
            "request_id": request["id"],
            "export_id": asked["id"],
        }

    def test_is_sealed_in_the_database(self, api: Api, auditor: Exporter) -> None:
        auditor.made()
        with api.runtime.db.read() as session:
            stored = b"".join(session.scalars(select(AuditExportChunk.sealed)))
        assert stored
        assert b"API_KEY_CREATED" not in stored

    def test_is_not_served_if_its_chunks_were_changed_in_the_database(
        self, api: Api, auditor: Exporter
    ) -> None:
        add_events(api.runtime.db, 4_000)
        made = auditor.made()
        with api.runtime.db.begin() as session:  # the first chunk twice, at the expense of the second
            first = session.scalars(select(AuditExportChunk.sealed).order_by(AuditExportChunk.number)).first()
            changed = update(AuditExportChunk).where(AuditExportChunk.number == 1).values(sealed=first)
            session.execute(changed)
        with pytest.raises(Exception, match="can't be opened"):
            _ = auditor.get(made["links"]["file"]).data


class TestBeforeItIsReady:
    def test_the_file_is_a_conflict(self, auditor: Exporter) -> None:
        asked = auditor.asked()
        answer = auditor.get(f"{asked['links']['self']}/file")
        assert auditor.api.problem(answer)[:2] == (409, "conflict")
        assert answer.get_json()["errors"][0]["code"] == "not_ready"

    def test_progress_says_how_many_events_are_written(self, api: Api, auditor: Exporter) -> None:
        asked = auditor.asked()
        with api.runtime.db.begin() as session:
            export = session.get_one(AuditExport, UUID(asked["id"]))
            export.status, export.total, export.events, export.size = "running", 10, 4, 1_000
        found = auditor.get(asked["links"]["self"]).get_json()
        assert (found["status"], found["progress"]) == ("running", {"done": 4, "total": 10})
        assert (found["events"], found["bytes"], found["sha256"]) == (None, None, None)


class TestItsEnd:
    @pytest.fixture
    def later(self) -> Iterator[clock.ManualClock]:
        with clock.pretend(clock.now()) as moving:
            yield moving

    def test_comes_after_a_day(self, auditor: Exporter, later: clock.ManualClock) -> None:
        made = auditor.made()
        later.advance(DAY - timedelta(seconds=1))
        assert auditor.get(made["links"]["file"]).status_code == 200
        later.advance(timedelta(seconds=1))
        assert auditor.api.problem(auditor.get(made["links"]["file"]))[:2] == (410, "gone")
        shown = auditor.get(made["links"]["self"]).get_json()
        assert (shown["status"], shown["links"]["file"]) == ("expired", None)
        assert shown["sha256"] == made["sha256"]

    def test_takes_the_file_and_later_the_export_away(
        self, api: Api, auditor: Exporter, later: clock.ManualClock
    ) -> None:
        made = auditor.made()
        other = auditor.made()
        auditor.delete(other["links"]["self"])
        later.advance(DAY)
        api.runtime.tidy()
        assert chunks_stored(api.runtime.db) == 0
        assert auditor.get(made["links"]["self"]).get_json()["status"] == "expired"
        later.advance(KEPT)
        api.runtime.tidy()
        assert auditor.get(made["links"]["self"]).status_code == 404
        assert exports_stored(api.runtime.db) == 0

    def test_tidying_leaves_a_file_that_can_be_fetched(self, api: Api, auditor: Exporter) -> None:
        made = auditor.made()
        api.runtime.tidy()
        assert auditor.get(made["links"]["file"]).status_code == 200

    def test_comes_at_once_when_it_is_deleted(self, api: Api, auditor: Exporter) -> None:
        made = auditor.made()
        answer = auditor.delete(made["links"]["self"])
        assert (answer.status_code, answer.data) == (204, b"")
        assert chunks_stored(api.runtime.db) == 0
        assert auditor.get(made["links"]["file"]).status_code == 410
        assert auditor.get(made["links"]["self"]).get_json()["status"] == "expired"
        assert auditor.delete(made["links"]["self"]).status_code == 204

    def test_of_one_that_waits_means_that_it_is_not_made(self, api: Api, auditor: Exporter) -> None:
        asked = auditor.asked()
        auditor.delete(asked["links"]["self"])
        assert api.runtime.export_maker().run() == 0
        assert exports_recorded(api.runtime.db) == 0
        assert auditor.get(f"{asked['links']['self']}/file").status_code == 410


class TestAKeyOfRequests:
    def test_exports_the_trail_of_a_request_that_it_has_sent(self, api: Api, shop: Exporter) -> None:
        first, _ = (api.post(api.erasure(each)).get_json() for each in "12")
        (event,) = lines(shop.text(filter={"request_id": first["id"]}))
        assert (event["type"], event["request_id"]) == ("REQUEST_RECEIVED", first["id"])

    @pytest.mark.parametrize("given", [{}, {"type": "REQUEST_RECEIVED"}, {"actor": "cli"}])
    def test_must_name_a_request(self, api: Api, shop: Exporter, given: dict[str, str]) -> None:
        before = api.rows()
        answer = shop.ask({"filter": given})
        status, slug, fields = api.problem(answer)
        assert (status, slug, list(fields)) == (422, "refused", ["filter.request_id"])
        assert answer.get_json()["errors"][0]["code"] == "missing"
        assert api.rows() == before

    def test_is_not_told_whether_another_key_s_request_exists(self, api: Api, shop: Exporter) -> None:
        theirs = api.post(api.erasure("1"), token=api.new_key("crm")).get_json()["id"]
        answers = [shop.ask({"filter": {"request_id": each}}).get_json() for each in (theirs, str(uuid4()))]
        for each in answers:
            del each["trace_id"]
        assert answers[0] == answers[1]
        assert answers[0]["status"] == 422
        assert exports_stored(api.runtime.db) == 0

    def test_sees_nothing_there_of_what_other_keys_have_asked(self, api: Api, shop: Exporter) -> None:
        first = api.post(api.erasure("4")).get_json()
        api.post(api.erasure("4"), token=api.new_key("crm"))
        for given in ({}, {"type": "REQUEST_REPEATED"}):
            found = lines(shop.text(filter={"request_id": first["id"], **given}))
            assert [each["type"] for each in found] == ([] if given else ["REQUEST_RECEIVED"])

    def test_sees_nothing_of_another_key_that_came_between_asking_and_making(
        self, api: Api, shop: Exporter
    ) -> None:
        correction = api.post(api.rectification("4", name="Ann")).get_json()
        asked = shop.asked(filter={"request_id": correction["id"]})
        with api.runtime.db.begin() as session:
            session.execute(update(ApiKey).values(approvals_needed=0))
        erasure = api.post(api.erasure("4"), token=api.new_key("crm", 0)).get_json()
        api.runtime.export_maker().run()
        exported = shop.get(f"{asked['links']['self']}/file").text
        assert lines(exported)[-1]["type"] == "REQUEST_SUPERSEDED"
        assert erasure["id"] not in exported

    def test_finds_its_own_exports_only(self, api: Api, shop: Exporter, auditor: Exporter) -> None:
        request = api.post(api.erasure("1")).get_json()
        whole = auditor.made()
        own = shop.made(filter={"request_id": request["id"]})
        other = Exporter(api, "requests:read", name="crm")
        for caller, foreign in ((shop, whole), (other, own), (other, whole), (auditor, own)):
            for path in (foreign["links"]["self"], foreign["links"]["file"]):
                assert api.problem(caller.get(path))[:2] == (404, "not-found")
            assert api.problem(caller.delete(foreign["links"]["self"]))[:2] == (404, "not-found")
        assert [each["id"] for each in shop.get(EXPORTS).get_json()["data"]] == [own["id"]]
        assert [each["id"] for each in auditor.get(EXPORTS).get_json()["data"]] == [whole["id"]]
        assert other.get(EXPORTS).get_json()["data"] == []

    def test_that_has_lost_audit_read_no_longer_finds_what_it_made_with_it(self, api: Api) -> None:
        caller = Exporter(api, "audit:read", "requests:read")
        made = caller.made()
        with api.runtime.db.begin() as session:
            session.execute(update(ApiKey).where(ApiKey.name == "auditor").values(scopes=["requests:read"]))
        assert caller.get(made["links"]["file"]).status_code == 404
        assert caller.get(EXPORTS).get_json()["data"] == []


class TestAuditRead:
    def test_finds_what_others_have_exported_with_it(self, api: Api, auditor: Exporter) -> None:
        made = auditor.made()
        second = Exporter(api, "audit:read", name="second")
        assert second.get(made["links"]["file"]).status_code == 200
        assert [each["id"] for each in second.get(EXPORTS).get_json()["data"]] == [made["id"]]

    def test_lists_in_pages_newest_first(self, auditor: Exporter) -> None:
        asked = [auditor.asked()["id"] for _ in range(3)]
        first = auditor.get(f"{EXPORTS}?limit=2").get_json()
        rest = auditor.get(f"{EXPORTS}?limit=2&after={first['next']}").get_json()
        found = [each["id"] for each in (*first["data"], *rest["data"])]
        assert (sorted(found), rest["next"]) == (sorted(asked), None)

    @pytest.mark.parametrize("scope", ["operate:write", "messages:read", "keys:write"])
    def test_or_requests_read_is_needed(self, api: Api, scope: str) -> None:
        caller = Exporter(api, scope, name="other")
        assert caller.ask({}).status_code == 403
        assert caller.get(EXPORTS).status_code == 403


class TestAsking:
    def test_again_with_the_same_key_makes_one(self, api: Api, auditor: Exporter) -> None:
        first, second = (auditor.ask({}, repeat="a-1") for _ in range(2))
        assert (first.get_json(), second.status_code) == (second.get_json(), 202)
        assert second.headers["Location"] == first.headers["Location"]
        assert exports_stored(api.runtime.db) == 1

    def test_that_fails_leaves_nothing(self, api: Api, auditor: Exporter) -> None:
        with api.runtime.db.begin() as session:
            session.execute(text("ALTER TABLE effaced_idempotency RENAME TO elsewhere"))
        assert auditor.ask({}, repeat="a-1").status_code >= 500
        assert exports_stored(api.runtime.db) == 0

    def test_too_often_is_a_conflict_until_one_is_deleted(self, api: Api, auditor: Exporter) -> None:
        asked = [auditor.asked() for _ in range(MOST_OPEN)]
        api.runtime.export_maker().run()
        answer = auditor.ask({})
        assert api.problem(answer)[:2] == (409, "conflict")
        assert answer.get_json()["errors"][0]["code"] == "too_many_exports"
        assert Exporter(api, "audit:read", name="second").ask({}).status_code == 202
        auditor.delete(asked[0]["links"]["self"])
        assert auditor.ask({}).status_code == 202

    def test_often_at_once_stays_within_the_limit(self, api: Api, auditor: Exporter) -> None:
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: auditor.ask({}).status_code, range(MOST_OPEN + 6)))
        assert sorted(answers) == [202] * MOST_OPEN + [409] * 6

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"format": "xls"}, "format"),
            ({"format": 1}, "format"),
            ({"filter": None}, "filter"),
            ({"filter": []}, "filter"),
            ({"filter": {"request_id": "ER-7KQ2-M4XP"}}, "filter.request_id"),
            ({"filter": {"request_id": 7}}, "filter.request_id"),
            ({"filter": {"type": "REQUEST_RECIEVED"}}, "filter.type"),
            ({"filter": {"type": "\x00"}}, "filter.type"),
            ({"filter": {"actor": "Anna Ash"}}, "filter.actor"),
            ({"filter": {"actor": "x" * 81}}, "filter.actor"),
            ({"filter": {"from": "2026-01-01T00:00:00"}}, "filter.from"),
            ({"filter": {"from": 10**400}}, "filter.from"),
            ({"filter": {"before": "9999-12-31T23:59:59-14:00"}}, "filter.before"),
            ({"filter": {"since": "2026-01-01T00:00:00Z"}}, "filter.since"),
            ({"own_request_only": False}, "own_request_only"),
        ],
    )
    def test_wrongly_is_refused_by_the_field_and_stores_nothing(
        self, api: Api, auditor: Exporter, body: dict[str, Any], field: str
    ) -> None:
        before = api.rows()
        status, _, fields = api.problem(auditor.ask(body))
        assert (status, list(fields)) == (422, [field])
        assert api.rows() == before

    @pytest.mark.parametrize("name", ["nonsense", NOBODY, "%00", "0" * 500, "{" + NOBODY + "}"])
    def test_for_one_that_is_not_there_is_not_found(self, auditor: Exporter, name: str) -> None:
        for answer in (
            auditor.get(f"{EXPORTS}/{name}"),
            auditor.get(f"{EXPORTS}/{name}/file"),
            auditor.delete(f"{EXPORTS}/{name}"),
        ):
            assert auditor.api.problem(answer)[:2] == (404, "not-found")
