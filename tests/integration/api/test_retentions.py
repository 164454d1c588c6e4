"""Retentions over the API: what erasures have kept, and having it erased when that ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import pytest
from api_desk import NOBODY, RETENTIONS, Desk, answer, codes
from quick_database import open_quickly
from retention_cast import ERASED, INVOICE_DUE, LINE_DUE
from sqlalchemy import text

from effaced.core import clock

from .conftest import Api

# The shop of `retention_cast`, with tables of its own beside those of the other tests of the API.
MAP = """
version: 1
subject: {table: buyers, key: id}
not_personal: [customers]
tables:
  buyers:
    columns: {id: not_personal, name: {anonymise: fixed_text}}
  invoices:
    link: {to: buyers, on: {buyer_id: id}}
    columns:
      id: not_personal
      buyer_id: &tax {retain: {basis: tax law, until: issued_on + 10 years}}
      issued_on: *tax
  lines:
    link: {to: invoices, on: {invoice_id: id}}
    columns:
      id: not_personal
      invoice_id: &lines {retain: {basis: warranty, until: sold_on + 2 years}}
      sold_on: *lines
"""
TABLES = """
    CREATE TABLE buyers (id integer PRIMARY KEY, name varchar(40));
    CREATE TABLE invoices (id integer PRIMARY KEY, buyer_id integer NOT NULL REFERENCES buyers,
        issued_on date);
    CREATE TABLE lines (id integer PRIMARY KEY, invoice_id integer NOT NULL REFERENCES invoices,
        sold_on timestamp);
    INSERT INTO buyers VALUES (1, 'Alice'), (2, 'Bob');
    INSERT INTO invoices VALUES (10, 1, '2016-03-01'), (11, 1, '2024-03-01'), (20, 2, '2016-03-01');
    INSERT INTO lines VALUES (100, 10, '2025-06-01 10:00:00')
"""
ENDINGS = f"{RETENTIONS}/endings"


class Shop(Desk):
    """Alice (1) has two invoices, of which the older has a line; Bob (2) has one. Both were erased."""

    def erase(self, person: str) -> str:
        with on(ERASED):
            return str(answer(self.api.post(Api.erasure(person)), 201)["id"])

    def listed(self, query: str = "") -> list[dict[str, Any]]:
        return list(answer(self.get(f"{RETENTIONS}{query}"))["data"])

    def end(self, request_id: str, **more: Any) -> Any:
        return self.send(ENDINGS, {"request_id": request_id, "reason": "its time is over"}, **more)

    def run(self, statement: str) -> None:
        with self.api.runtime.db.begin() as session:
            session.execute(text(statement))

    def count(self, table: str) -> int:
        with self.api.runtime.db.read() as session:
            return session.scalar(text(f"SELECT count(*) FROM {table}")) or 0


def on(day: date) -> Any:
    """Within the block it is noon of that day."""
    return clock.pretend(datetime.combine(day, time(12), UTC))


@pytest.fixture
def shop(make_api: Callable[..., Api], migrated_url: str, tmp_path: Path) -> Shop:
    database = open_quickly(migrated_url)
    with database.begin() as session:
        for statement in TABLES.split(";"):
            session.execute(text(statement))
    database.dispose()
    path = tmp_path / "retain.yaml"
    path.write_text(MAP)
    return Shop(
        make_api(migrated_url, approvals_needed=0, datamap=path, resolvers="version: 1\nresolvers: {}\n"),
        "operate:write",
    )


@pytest.fixture
def alice(shop: Shop) -> str:
    """The id of her request, after its execution."""
    return shop.erase("1")


class TestList:
    def test_says_what_is_kept_why_and_until_when(self, shop: Shop, alice: str) -> None:
        with on(ERASED):
            lines, invoices = sorted(shop.listed(), key=lambda each: each["table"], reverse=True)
        assert (invoices["request_id"], invoices["table"], invoices["state"]) == (alice, "invoices", "kept")
        assert invoices["reasons"] == [{"basis": "tax law", "until": "issued_on + 10 years"}]
        assert (invoices["rows"], invoices["undated_rows"]) == (2, 0)
        assert (lines["table"], lines["rows"], lines["first_due"]) == ("lines", 1, LINE_DUE.isoformat())
        assert invoices["ended_at"] is None

    def test_filters(self, shop: Shop, alice: str) -> None:
        bob = shop.erase("2")

        def found(query: str) -> list[tuple[str, str]]:
            return [(each["request_id"], each["table"]) for each in shop.listed(f"?{query}")]

        with on(INVOICE_DUE):
            assert {each for each, _ in found(f"request_id={bob}")} == {bob}
            assert found(f"request_id={NOBODY}") == []
            assert found("table=lines") == [(alice, "lines")]
            assert (bob, "invoices") in found("state=due")
            assert (alice, "lines") in found("state=kept")
            assert found("state=ended") == []
            due = found(f"due_before={INVOICE_DUE.isoformat()}")
            assert due == []
            assert (bob, "invoices") in found(f"due_before={LINE_DUE.isoformat()}")

    def test_by_due_date_what_ends_next_comes_first_by_pages(self, shop: Shop, alice: str) -> None:
        shop.erase("2")
        with on(ERASED):
            page = answer(shop.get(f"{RETENTIONS}?order=first_due&limit=1"))
            found = list(page["data"])
            while page["next"]:
                page = answer(shop.get(f"{RETENTIONS}?order=first_due&limit=1&after={page['next']}"))
                found += page["data"]
            days = [each["first_due"] for each in found]
            assert len({each["id"] for each in found}) == len(found) == 3
            assert days == sorted(days)
            by_age = answer(shop.get(f"{RETENTIONS}?limit=2"))
            rest = shop.listed(f"?after={by_age['next']}")
            assert {each["id"] for each in [*by_age["data"], *rest]} == {each["id"] for each in found}

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ("state=gone", "state"),
            ("request_id=7", "request_id"),
            ("due_before=tomorrow", "due_before"),
            ("due_before=2026-03-02T09:30:00Z", "due_before"),
            ("table=%00", "table"),
            ("order=rows", "order"),
            ("after=x", "after"),
            ("tabel=lines", "tabel"),
        ],
    )
    def test_a_wrong_argument_is_refused_by_its_name(self, lite: Desk, query: str, field: str) -> None:
        status, slug, fields = Api.problem(lite.get(f"{RETENTIONS}?{query}"))
        assert (status, slug, list(fields)) == (422, "refused", [field])

    def test_a_page_by_one_order_does_not_start_in_the_other(self, shop: Shop, alice: str) -> None:
        with on(ERASED):
            page = answer(shop.get(f"{RETENTIONS}?limit=1"))
            wrong = shop.get(f"{RETENTIONS}?order=first_due&after={page['next']}")
            assert Api.problem(wrong)[2].keys() == {"after"}


class TestOne:
    def test_says_what_ending_it_now_would_do(self, shop: Shop) -> None:
        shop.erase("2")
        (listed,) = shop.listed("?table=invoices")
        assert listed["assessment"] is None
        with on(ERASED):
            found = answer(shop.get(f"{RETENTIONS}/{listed['id']}"))
            assert (found["state"], found["assessment"]["state"]) == ("kept", "kept")
        with on(INVOICE_DUE):
            found = answer(shop.get(f"{RETENTIONS}/{listed['id']}"))
            assert found["state"] == "due"
            assert found["assessment"] == {"state": "due", "deleted": 1, "anonymised": 0, "waiting": 0}

    def test_waits_for_rows_that_point_at_it(self, shop: Shop, alice: str) -> None:
        (listed,) = shop.listed("?table=invoices")
        with on(INVOICE_DUE):
            found = answer(shop.get(f"{RETENTIONS}/{listed['id']}"))
        assert (found["assessment"]["state"], found["assessment"]["waiting"]) == ("waiting", 1)


class TestEnding:
    def test_is_202_and_can_be_polled_to_its_end(self, shop: Shop) -> None:
        bob = shop.erase("2")
        with on(INVOICE_DUE):
            started = shop.end(bob)
            found = answer(started, 202)
            assert (found["request_id"], found["status"], found["created_by"]) == (bob, "running", shop.actor)
            assert found["retentions"][0]["ending"] == {"rows": 0, "total": None}
            path = started.headers["Location"]
            assert answer(shop.get(path)) == found
            shop.api.runtime.end_retentions()
            found = answer(shop.get(path))
            assert (found["status"], found["progress"], found["error"]) == ("finished", None, None)
            (ended,) = found["retentions"]
            assert (ended["state"], ended["rows"]) == ("ended", 0)
            assert ended["ended_at"] is not None
            assert shop.listed("?state=ended") == [ended]
            assert answer(shop.get(f"{RETENTIONS}/{ended['id']}"))["assessment"] is None
        assert shop.count("invoices") == 2

    def test_is_in_the_trail_with_the_key_and_the_reason(self, shop: Shop) -> None:
        bob = shop.erase("2")
        with on(INVOICE_DUE):
            shop.end(bob)
            shop.api.runtime.end_retentions()
        (event,) = shop.events("RETENTION_ENDED")
        assert (event.actor, str(event.request_id)) == (shop.actor, bob)
        assert event.payload["note_id"]
        assert "its time is over" not in shop.api.everything()

    def test_before_anything_is_due_is_a_conflict(self, shop: Shop) -> None:
        bob = shop.erase("2")
        with on(ERASED):
            assert codes(shop.end(bob)) == (409, {"request_id": "nothing_due"})
            assert answer(shop.get(f"{ENDINGS}/{bob}"))["status"] == "finished"

    def test_of_what_waits_for_other_rows_is_a_conflict_that_names_the_table(
        self, shop: Shop, alice: str
    ) -> None:
        with on(INVOICE_DUE):
            assert codes(shop.end(alice)) == (409, {"tables.invoices": "waiting"})
            assert answer(shop.get(f"{ENDINGS}/{alice}"))["status"] == "due"
        assert shop.count("invoices") == 3

    def test_while_the_key_is_in_use_again_is_a_conflict(self, shop: Shop) -> None:
        bob = shop.erase("2")
        shop.run("UPDATE buyers SET name = 'Back' WHERE id = 2")
        with on(INVOICE_DUE):
            assert codes(shop.end(bob)) == (409, {"request_id": "in_use"})
        assert shop.count("invoices") == 3

    def test_twice_is_a_conflict(self, shop: Shop) -> None:
        bob = shop.erase("2")
        with on(INVOICE_DUE):
            shop.end(bob)
            assert codes(shop.end(bob)) == (409, {"request_id": "already_running"})

    def test_by_many_at_once_is_begun_once(self, shop: Shop) -> None:
        bob = shop.erase("2")
        statuses = list[int]()
        with on(INVOICE_DUE):
            threads = [
                threading.Thread(target=lambda: statuses.append(shop.end(bob).status_code)) for _ in range(6)
            ]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert sorted(statuses) == [202, *[409] * 5]
            shop.api.runtime.end_retentions()
        assert len(shop.events("RETENTION_ENDED")) == 1

    def test_that_failed_says_so_and_can_be_asked_for_again(self, shop: Shop) -> None:
        bob = shop.erase("2")
        with on(INVOICE_DUE):
            shop.end(bob)
            shop.run("UPDATE buyers SET name = 'Back' WHERE id = 2")
            shop.api.runtime.end_retentions()
            found = answer(shop.get(f"{ENDINGS}/{bob}"))
            assert (found["status"], found["error"]) == ("failed", "Conflict")
            shop.run("UPDATE buyers SET name = NULL WHERE id = 2")
            assert shop.end(bob).status_code == 202
            shop.api.runtime.end_retentions()
            assert answer(shop.get(f"{ENDINGS}/{bob}"))["status"] == "finished"

    @pytest.mark.parametrize(
        ("body", "fields"),
        [
            ({}, ["request_id", "reason"]),
            ({"request_id": "x", "reason": "x"}, ["request_id"]),
            ({"request_id": NOBODY, "reason": ""}, ["reason"]),
            ({"request_id": NOBODY, "reason": "x", "all": True}, ["all"]),
        ],
    )
    def test_wrong_fields_are_named(self, lite: Desk, body: Any, fields: list[str]) -> None:
        status, slug, found = Api.problem(lite.send(ENDINGS, body))
        assert (status, slug, list(found)) == (422, "refused", fields)

    def test_without_a_reason_that_can_be_read_nothing_goes(self, shop: Shop) -> None:
        bob = shop.erase("2")
        with on(INVOICE_DUE):
            refused = shop.send(ENDINGS, {"request_id": bob, "reason": " "})
            assert Api.problem(refused)[2].keys() == {"reason"}
            shop.api.runtime.end_retentions()
        assert shop.count("invoices") == 3

    def test_of_a_request_that_does_not_exist_is_refused(self, lite: Desk) -> None:
        refused = lite.send(ENDINGS, {"request_id": NOBODY, "reason": "x"})
        assert codes(refused) == (422, {"request_id": "not_found"})
