"""What an erasure leaves under `retain`: registered, erased when it has come due, audited, forgotten."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from retention_cast import ERASED, INVOICE_DUE, LAST_DUE, LINE_DUE, MAP, Shop, forbid, on
from sqlalchemy import text

from effaced.core.db import Database
from effaced.core.errors import Refused
from effaced.requests.retention import RetentionState
from effaced.retention.read import count_due, list_due, list_kept
from effaced.retention.run import reassess_stale

DAY = timedelta(days=1)
LINES = "&lines {retain: {basis: warranty, until: sold_on + 2 years}}"


@pytest.fixture
def shop(db: Database, tmp_path: Path) -> Shop:
    return Shop(db, tmp_path)


def due(shop: Shop, day):
    with on(day), shop.db.read() as session:
        return list_due(session, shop.keyring, shop.plan).items


class TestRegister:
    def test_the_erasure_writes_down_what_it_leaves_and_when_the_first_of_it_comes_due(self, shop):
        shop.erase()
        kept = shop.kept()
        assert {name: (each.rows, each.first_due) for name, each in kept.items()} == {
            "lines": (1, LINE_DUE),
            "invoices": (2, INVOICE_DUE),
        }

    def test_whose_it_is_is_sealed(self, shop):
        shop.erase()
        sealed = shop.kept()["invoices"].subject_sealed
        assert sealed is not None
        assert b'"id"' not in sealed

    def test_the_evidence_names_the_rule_the_first_day_and_the_rows(self, shop):
        shop.erase()
        (event,) = shop.events("LOCAL_ERASURE_EXECUTED")
        told = {(each["table"], each["until"], each["first_due"]) for each in event.payload["retained"]}
        counted = {each["table"]: each["rows"] for each in event.payload["retained"]}
        assert counted == {"lines": 1, "invoices": 2}
        assert told == {
            ("invoices", "issued_on + 10 years", INVOICE_DUE.isoformat()),
            ("lines", "sold_on + 2 years", LINE_DUE.isoformat()),
        }

    def test_a_table_that_kept_nothing_is_not_registered(self, shop):
        shop.erase("2")
        assert list(shop.kept()) == ["invoices"]

    def test_a_second_erasure_of_the_person_takes_over_from_the_first(self, shop):
        first, second = shop.erase(), shop.erase(day=ERASED + DAY)
        with shop.db.read() as session:
            found = session.execute(
                text("SELECT request_id, subject_sealed IS NULL FROM effaced_retentions ORDER BY id")
            ).all()
        assert len(found) == 4
        assert [bool(forgotten) for _, forgotten in found] == [True, True, False, False]
        assert first != second

    def test_bob_s_are_left_alone_by_it(self, shop):
        shop.erase("2")
        shop.erase("1")
        with shop.db.read() as session:
            assert len(list_kept(session, shop.plan).items) == 3


class TestDue:
    def test_nothing_is_due_on_the_last_day(self, shop):
        shop.erase()
        assert due(shop, INVOICE_DUE - DAY) == ()

    def test_it_is_listed_with_what_would_happen_by_the_map_in_force(self, shop):
        shop.erase("2")
        (line,) = due(shop, INVOICE_DUE)
        assert (line.table, line.standing, line.ended.deleted) == ("invoices", RetentionState.DUE, 1)
        assert line.reasons == (("tax law", "issued_on + 10 years"),)

    def test_the_number_and_the_list_agree(self, shop):
        shop.erase("1")
        shop.erase("2")
        with on(LAST_DUE), shop.db.read() as session:
            lines = list_due(session, shop.keyring, shop.plan)
            assert count_due(session, shop.plan.today) == len(lines.items) == 3

    def test_pages_go_on_where_the_last_one_ended(self, shop):
        shop.erase("1")
        shop.erase("2")
        with on(LAST_DUE), shop.db.read() as session:
            first = list_due(session, shop.keyring, shop.plan, limit=2)
            second = list_due(session, shop.keyring, shop.plan, limit=2, after=first.next)
        assert len({each.id for each in (*first.items, *second.items)}) == 3

    @pytest.mark.parametrize(
        ("yaml", "standing"),
        [
            (MAP[: MAP.index("  lines:")] + "not_personal: [lines]\n", RetentionState.TABLE_GONE),
            (MAP.replace(LINES, "&lines delete"), RetentionState.NOT_RETAINED),
        ],
    )
    def test_a_rule_that_has_gone_from_the_map_is_said(self, shop, yaml, standing):
        shop.erase()
        columns = "(id integer, invoice_id integer, text text, sold_on timestamp)"
        shop.run("DROP TABLE lines", f"CREATE TABLE lines {columns}")
        shop.use(yaml)
        assert {each.table: each.standing for each in due(shop, LINE_DUE)}["lines"] is standing


class TestEnd:
    def test_a_parent_waits_for_its_child_and_both_go_when_that_is_due(self, shop):
        shop.erase()
        assert shop.end(INVOICE_DUE)[0].rows == 0
        assert shop.kept()["invoices"].first_due == LINE_DUE
        (result,) = shop.end(LINE_DUE)
        assert [(each.table, each.deleted) for each in result.done] == [("lines", 1), ("invoices", 1)]

    def test_the_register_moves_on_to_the_next_end(self, shop):
        shop.erase()
        shop.end(LINE_DUE)
        kept = shop.kept()
        assert (kept["invoices"].rows, kept["invoices"].first_due) == (1, LAST_DUE)
        assert kept["lines"].closed_at is not None

    def test_whose_it_was_is_forgotten_with_the_last_row(self, shop):
        shop.erase()
        shop.end(LAST_DUE)
        assert [(each.subject_sealed, each.first_due) for each in shop.kept().values()] == [(None, None)] * 2

    def test_other_people_s_rows_stay_byte_identical(self, shop):
        shop.erase()
        before = shop.rows("SELECT * FROM invoices WHERE customer_id = 2")
        shop.end(LAST_DUE)
        assert shop.rows("SELECT * FROM invoices") == before

    def test_each_table_has_an_event_with_the_reason_as_a_note(self, shop):
        request_id = shop.erase()
        shop.end(LAST_DUE)
        events = shop.events("RETENTION_ENDED")
        assert [(each.payload["table"], each.payload["action"], each.payload["rows"]) for each in events] == [
            ("lines", "deleted", 1),
            ("invoices", "deleted", 2),
        ]
        assert {each.request_id for each in events} == {request_id}
        assert {each.actor for each in events} == {"cli"}
        assert all(each.payload["datamap_hash"] == shop.plan.data_map.hash for each in events)
        assert all(each.payload["note_id"] for each in events)

    def test_doing_it_again_does_nothing_and_says_nothing(self, shop):
        shop.erase()
        shop.end(LAST_DUE)
        assert shop.end(LAST_DUE) == []
        assert len(shop.events("RETENTION_ENDED")) == 2

    def test_a_row_without_a_date_is_kept_and_reported(self, shop):
        shop.run("UPDATE invoices SET issued_on = NULL WHERE id = 11")
        shop.erase()
        shop.end(LAST_DUE)
        kept = shop.kept()["invoices"]
        assert (kept.rows, kept.undated, kept.first_due) == (1, 1, None)

    def test_a_date_that_is_filled_in_later_is_found(self, shop):
        shop.run("DELETE FROM lines", "UPDATE invoices SET issued_on = NULL WHERE customer_id = 1")
        shop.erase()
        shop.run("UPDATE invoices SET issued_on = '2024-03-01' WHERE customer_id = 1")
        with on(ERASED + 2 * DAY):
            assert reassess_stale(shop.db, shop.keyring, shop.plan) == 1
        assert shop.kept()["invoices"].first_due == LAST_DUE

    def test_a_reason_is_asked_for_before_anything_happens(self, shop):
        shop.erase("2")
        with pytest.raises(Refused):
            shop.end(LAST_DUE, reason=" ")
        assert len(shop.rows("SELECT * FROM invoices")) == 3

    def test_a_changed_map_counts_from_the_next_look(self, shop):
        shop.erase("2")
        shop.use(MAP.replace("issued_on + 10 years", "issued_on + 12 years"))
        with on(ERASED):
            assert reassess_stale(shop.db, shop.keyring, shop.plan) == 1
            assert reassess_stale(shop.db, shop.keyring, shop.plan) == 0
        assert shop.kept()["invoices"].first_due == INVOICE_DUE.replace(year=2028)

    def test_a_table_that_left_the_map_is_closed_by_a_person_and_not_by_the_schedule(self, shop):
        shop.run("DROP TABLE lines")
        shop.use(MAP[: MAP.index("  lines:")])
        shop.erase("2")
        shop.run("ALTER TABLE invoices RENAME TO bills")
        shop.use(MAP[: MAP.index("  invoices:")] + "not_personal: [bills]\n")
        with on(LAST_DUE):
            shop.ender.end_due(on_schedule=True)
            assert shop.kept()["invoices"].closed_at is None
        shop.end(LAST_DUE)
        assert shop.kept()["invoices"].subject_sealed is None
        assert [each.payload["action"] for each in shop.events("RETENTION_ENDED")] == ["closed"]


class TestSafety:
    def test_nothing_goes_when_somebody_lives_under_the_key_again(self, shop):
        shop.erase("2")
        shop.run("UPDATE customers SET name = 'Bob is back' WHERE id = 2")
        assert due(shop, LAST_DUE)[0].standing is RetentionState.IN_USE
        (result,) = shop.end(LAST_DUE)
        assert "key is in use again" in (result.error or "")
        assert len(shop.rows("SELECT * FROM invoices WHERE customer_id = 2")) == 1

    def test_a_refusal_of_the_database_undoes_the_request_and_holds_no_other_up(self, shop):
        shop.erase("1")
        shop.erase("2")
        before = shop.rows("SELECT * FROM lines"), shop.rows("SELECT * FROM invoices WHERE customer_id = 1")
        forbid(shop, 11)
        results = {each.request_id: each for each in shop.end(LAST_DUE)}
        assert sorted((each.rows, each.error is None) for each in results.values()) == [(0, False), (1, True)]
        assert (shop.rows("SELECT * FROM lines"), shop.rows("SELECT * FROM invoices")) == before

    def test_a_failure_is_told_once_and_shown_until_it_is_over(self, shop):
        shop.erase("1")
        forbid(shop, 11)
        shop.end(LAST_DUE)
        shop.end(LAST_DUE)
        assert len(shop.events("RETENTION_FAILED")) == 1
        assert shop.kept()["invoices"].error == "DatabaseRefusal"
