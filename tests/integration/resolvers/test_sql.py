"""The `sql` kind: what it answers, that it acts once per entry, whom it finds, what it notices."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any
from uuid import UUID

import pytest
from other_database import GOES, STAYS, Shop

from effaced.core.crypto import Keyring, new_key
from effaced.datamap.surrogates.shapes import Hashing
from effaced.model import Correction, SubjectRef, new_id
from effaced.resolvers.load import load_registry
from effaced.resolvers.protocols import (
    AlreadyAbsent,
    CredentialsRefused,
    Erased,
    Rectified,
    Rejected,
    Retained,
)
from effaced.resolvers.sql import RectifyingSql, SqlResolver

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def ref(value: object) -> SubjectRef:
    return SubjectRef("shop", str(value))


def erase(resolver: SqlResolver, value: object, key: UUID | None = None) -> Any:
    return asyncio.run(resolver.erase_subject(ref(value), key=key or new_id()))


def absent(resolver: SqlResolver, value: object, key: UUID | None = None) -> bool:
    return asyncio.run(resolver.verify_absent(ref(value), key=key or new_id()))


def rectify(resolver: SqlResolver, value: object, key: UUID | None = None, **corrections: Any) -> Any:
    assert isinstance(resolver, RectifyingSql)
    told = [Correction(name, each) for name, each in corrections.items()]
    return asyncio.run(resolver.rectify_subject(ref(value), told, key=key or new_id()))


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(Rejected) as told:
        call()
    return told.value.code


class TestAnswers:
    def test_erased_when_rows_change(self, shop: Shop):
        assert Erased() == erase(shop.resolver(), shop.person(orders=2))
        assert shop.calls() == [("erase", "erased", None, 3)]

    def test_already_absent_when_there_is_nobody(self, shop: Shop):
        assert AlreadyAbsent() == erase(shop.resolver(), 4711)
        assert shop.calls() == [("erase", "already_absent", None, 0)]

    def test_erased_names_what_stays_and_why(self, shop: Shop):
        assert Erased(retained="tax_law_10_years") == erase(shop.resolver(STAYS), shop.person(invoices=2))

    def test_retained_when_that_is_all_there_is(self, shop: Shop):
        resolver, anna = shop.resolver(STAYS), shop.person(invoices=1)
        erase(resolver, anna)
        assert Retained("tax_law_10_years") == erase(resolver, anna)

    def test_a_reference_that_can_be_no_key_is_refused(self, shop: Shop):
        assert refused(lambda: erase(shop.resolver(), "anna@people.example")) == "not_a_key"

    def test_rows_that_the_database_keeps_in_spite_of_it_undo_everything(self, shop: Shop):
        anna = shop.person(invoices=1)
        if shop.is_postgres:
            shop.run(
                "CREATE OR REPLACE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql"
                " AS 'BEGIN RETURN NULL; END'",
                "CREATE TRIGGER stay BEFORE DELETE ON invoices FOR EACH ROW EXECUTE FUNCTION stay()",
            )
        else:
            shop.run("CREATE TRIGGER stay BEFORE DELETE ON invoices BEGIN SELECT RAISE(IGNORE); END")
        assert refused(lambda: erase(shop.resolver(), anna)) == "still_there"
        assert len(shop.rows("SELECT 1 FROM users")) == 1
        assert shop.calls() == []


class TestOnce:
    def test_a_second_call_answers_as_the_first_and_changes_nothing(self, shop: Shop):
        resolver, key = shop.resolver(STAYS), new_id()
        anna = shop.person(invoices=1)
        first = erase(resolver, anna, key)
        shop.run(f"UPDATE users SET name = 'Somebody new' WHERE id = {anna}")
        assert first == erase(shop.resolver(STAYS), anna, key)
        assert shop.rows("SELECT name FROM users") == [("Somebody new",)]

    def test_a_second_correction_too(self, shop: Shop):
        resolver, anna, key = shop.resolver(), shop.person(), new_id()
        rectify(resolver, anna, key, name="Anna Neu")
        shop.run("UPDATE users SET name = 'Anna Neuer'")
        assert Rectified() == rectify(resolver, anna, key, name="Anna Neu")
        assert shop.rows("SELECT name FROM users") == [("Anna Neuer",)]

    def test_two_at_once_do_it_once_and_answer_alike(self, shop: Shop):
        anna, key = shop.person(), new_id()
        resolvers = [shop.resolver(), shop.resolver()]  # as two workers have them
        barrier, answers = threading.Barrier(2), list[Any]()

        def call(resolver: SqlResolver) -> None:
            barrier.wait()
            answers.append(erase(resolver, anna, key))

        threads = [threading.Thread(target=call, args=(each,)) for each in resolvers]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert [Erased(), Erased()] == answers
        assert shop.calls() == [("erase", "erased", None, 2)]

    def test_what_a_read_back_has_refuted_is_done_again(self, shop: Shop):
        """Whoever requeues the entry means it; the read-back itself erases nothing."""
        resolver, anna, key = shop.resolver(STAYS), shop.person(), new_id()
        erase(resolver, anna, key)
        shop.run(f"INSERT INTO orders VALUES (1, {anna}, 'late')")
        assert absent(resolver, anna, key) is False
        assert len(shop.rows("SELECT 1 FROM orders")) == 1
        assert Erased() == erase(resolver, anna, key)
        assert absent(resolver, anna, key) is True

    def test_without_a_ledger_no_table_is_made_and_the_plan_s_own_idempotence_is_left(self, shop: Shop):
        resolver, anna, key = shop.resolver(ledger=False), shop.person(), new_id()
        assert [Erased(), AlreadyAbsent()] == [erase(resolver, anna, key) for _ in range(2)]
        with pytest.raises(Exception, match="effaced_sql_calls"):
            shop.calls()

    def test_a_ledger_that_was_dropped_is_made_again(self, shop: Shop):
        resolver = shop.resolver()
        erase(resolver, shop.person())
        shop.run("DROP TABLE effaced_sql_calls")
        assert Erased() == erase(resolver, shop.person())


class TestReadBack:
    def test_rows_left_behind_without_their_person_are_found(self, shop: Shop):
        shop.run("INSERT INTO invoices VALUES (1, 77, 'R-1')")
        assert absent(shop.resolver(), 77) is False

    def test_what_is_retained_is_no_contradiction(self, shop: Shop):
        resolver, anna = shop.resolver(STAYS), shop.person(invoices=1)
        erase(resolver, anna)
        assert absent(resolver, anna) is True

    def test_makes_no_table(self, shop: Shop):
        absent(shop.resolver(), shop.person())
        with pytest.raises(Exception, match="effaced_sql_calls"):
            shop.calls()


class TestCorrecting:
    def test_nobody_is_there(self, shop: Shop):
        assert AlreadyAbsent() == rectify(shop.resolver(), 4711, name="Anna Neu")

    def test_a_row_that_was_erased_is_nobody(self, shop: Shop):
        resolver, anna = shop.resolver(STAYS), shop.person()
        erase(resolver, anna)
        assert AlreadyAbsent() == rectify(resolver, anna, name="Anna Neu")
        assert shop.rows("SELECT name FROM users") == [(None,)]

    def test_a_category_the_map_has_not_is_refused_by_name_and_nothing_is_changed(self, shop: Shop):
        anna = shop.person()
        with pytest.raises(Rejected, match="category 'email'") as told:
            rectify(shop.resolver(STAYS), anna, name="Anna Neu", email="neu@people.example")
        assert told.value.code == "cannot_rectify"
        assert shop.rows("SELECT name FROM users") == [("Anna Alt",)]

    def test_a_value_that_does_not_fit_is_refused_without_being_quoted(self, shop: Shop):
        anna = shop.person()
        with pytest.raises(Rejected) as told:
            rectify(shop.resolver(), anna, email="x" * 201)
        assert told.value.code == "unfit_correction"
        assert "xxx" not in str(told.value)


class TestSchema:
    def test_a_column_that_went_is_noticed_at_the_next_call(self, shop: Shop):
        resolver, anna = shop.resolver(), shop.person()
        absent(resolver, anna)
        shop.run("ALTER TABLE users DROP COLUMN phone")
        assert refused(lambda: rectify(resolver, anna, phone="+49 2")) == "map_does_not_fit"

    def test_a_table_that_moved_and_came_back_needs_no_restart(self, shop: Shop):
        resolver, anna = shop.resolver(), shop.person()
        absent(resolver, anna)
        shop.run("ALTER TABLE orders RENAME TO old_orders")
        assert refused(lambda: erase(resolver, anna)) == "map_does_not_fit"
        shop.run("ALTER TABLE old_orders RENAME TO orders")
        assert Erased() == erase(resolver, anna)

    @pytest.mark.parametrize(
        "call",
        [
            erase,
            absent,
            lambda resolver, person: rectify(resolver, person, phone="+49 2"),
            lambda resolver, _person: erase(resolver, 4711),
            lambda resolver, _person: absent(resolver, "no key"),
        ],
        ids=["erase", "absent", "rectify", "erase_nobody", "absent_without_a_key"],
    )
    def test_a_column_that_came_is_noticed_at_the_next_call(self, shop: Shop, call: Any):
        resolver, anna = shop.resolver(), shop.person()
        absent(resolver, anna)
        shop.run("ALTER TABLE users ADD COLUMN nickname TEXT")
        assert refused(lambda: call(resolver, anna)) == "map_does_not_fit"


class TestRefusals:
    def test_a_constraint_is_permanent_and_told_by_its_code(self, shop: Shop):
        shop.run("CREATE UNIQUE INDEX one_each ON users (email)")
        anna = shop.person()
        shop.run("INSERT INTO users VALUES (9, 'taken@people.example', 'Berta', NULL)")
        code = refused(lambda: rectify(shop.resolver(), anna, email="taken@people.example"))
        assert code == ("sqlstate_23505" if shop.is_postgres else "sqlite_constraint_unique")

    def test_a_trigger_is_permanent_and_its_words_are_kept_out(self, shop: Shop):
        anna = shop.person("Stubborn")
        with pytest.raises(Rejected) as told:
            erase(shop.resolver(), anna)
        assert ("sqlstate_P0001" if shop.is_postgres else "sqlite_constraint_trigger") == told.value.code
        assert "people.example" not in str(told.value)
        assert told.value.__cause__ is None
        assert told.value.__context__ is None
        assert len(shop.rows("SELECT 1 FROM orders")) == 1


def test_one_of_several_kinds_of_people(shop: Shop):
    shop.run("CREATE TABLE staff (no INTEGER PRIMARY KEY, name TEXT)", "INSERT INTO staff VALUES (1, 'Kai')")
    person = "subject: {table: users, key: id}\n    identifiers: {email: email}"
    two = GOES.replace(person, "subjects: {user: {table: users, key: id}, staff: {table: staff, key: no}}")
    two = two.replace("tables:\n", "tables:\n      staff: {columns: {no: not_personal, name: delete}}\n", 1)
    anna = shop.person()
    assert erase(shop.resolver(two, subject="staff"), 1) == Erased()
    assert shop.rows("SELECT id FROM users") == [(anna,)]
    assert shop.rows("SELECT no FROM staff") == []


def test_tells_the_host_of_a_server_and_none_of_a_file(shop: Shop):
    host = shop.resolver().host
    assert (host is not None and host.startswith("127.0.0.1:")) if shop.is_postgres else host is None


def test_shows_no_password(shop: Shop):
    assert "map" in repr(shop.resolver())
    assert shop.url not in repr(shop.resolver())


def test_somebody_who_may_not_is_told_apart_from_a_refusal(fresh_postgres_url: str, tmp_path):
    """As with a 403: the account lacks a right, not the entry."""
    shop = Shop(fresh_postgres_url, tmp_path)
    anna = shop.person()
    with shop.role("SELECT") as url, pytest.raises(CredentialsRefused) as told:
        erase(shop.resolver(url=url, ledger=False), anna)
    assert told.value.code == "sqlstate_42501"


class TestHashes:
    """A map with keyed hashes: whose the secret is, and that a hash is never called an erasure."""

    MAP = STAYS.replace("note: delete", "note: {anonymise: keyed_hash}")

    def hashed(self, shop: Shop, **options: Any) -> str:
        person = shop.person()
        answer = erase(shop.resolver(self.MAP, **options), person)
        assert answer == Erased(retained="pseudonymised")
        [(note,)] = shop.rows(f"SELECT note FROM orders WHERE user_id = {person}")
        return str(note)

    def test_the_same_value_has_another_hash_in_each_database_unless_they_shall_be_alike(self, shop: Shop):
        keyring = Keyring.parse(new_key())
        own = Hashing.under(keyring).hash("hi")
        crm, again, other = (self.hashed(shop, keyring=keyring, name=name) for name in ("crm", "crm", "erp"))
        assert crm == again
        assert len({own, crm, other}) == 3
        assert self.hashed(shop, keyring=keyring, hashes="alike") == own

    def test_what_is_a_hash_already_is_said_to_stay_and_found_absent(self, shop: Shop, tmp_path: Path):
        (tmp_path / "shop.yaml").write_text(dedent(self.MAP))
        file = tmp_path / "resolvers.yaml"
        file.write_text(
            "version: 1\nresolvers: {shop: {kind: sql, ref: shop, url: '${URL}', map: shop.yaml}}\n"
        )
        registry = load_registry(file, {"URL": shop.url}, keyring=Keyring.parse(new_key()))
        resolver, person = registry.get("shop").resolver, shop.person()
        assert isinstance(resolver, SqlResolver)
        erase(resolver, person)
        assert Retained("pseudonymised") == erase(resolver, person)
        assert absent(resolver, person)

    def test_without_a_key_the_check_says_so(self, shop: Shop):
        (problem,) = asyncio.run(shop.resolver(self.MAP).find_problems())
        assert "keyed_hash" in problem.message
