from __future__ import annotations

import pytest
from sqlalchemy import func, select

from effaced.accounts.officers import (
    create_officer,
    deactivate_officer,
    find_officer,
    get_officer,
    list_officers,
    set_password,
)
from effaced.accounts.passwords import verify_password
from effaced.accounts.tables import Officer
from effaced.audit.tables import AuditEvent
from effaced.core.db import Database
from effaced.core.errors import Conflict, Refused
from effaced.model import Role, new_id

pytestmark = pytest.mark.usefixtures("cheap_passwords")

PASSWORD = "correct horse battery"


def ada(db: Database, email: str = "ada@example.org") -> Officer:
    with db.begin() as session:
        return create_officer(
            session, email=email, name="Ada", role=Role.OFFICER, password=PASSWORD, actor="cli"
        )


def trail(db: Database) -> list[tuple[str, str, dict[str, object]]]:
    with db.read() as session:
        rows = session.scalars(select(AuditEvent).order_by(AuditEvent.id))
        return [(row.type, row.actor, row.payload) for row in rows]


def test_the_address_is_kept_and_found_in_lower_case(db: Database) -> None:
    ada(db, " Ada@Example.ORG ")
    with db.read() as session:
        found = find_officer(session, "ADA@example.org")
    assert found is not None
    assert found.email == "ada@example.org"


def test_the_trail_tells_of_a_new_officer_without_name_and_address(db: Database) -> None:
    officer = ada(db)
    assert trail(db) == [("OFFICER_CREATED", "cli", {"officer_id": str(officer.id), "role": "officer"})]


def test_every_wrong_field_is_named_at_once(db: Database) -> None:
    with db.begin() as session, pytest.raises(Refused) as refused:
        create_officer(session, email="ada", name=" ", role=Role.ADMIN, password="short", actor="cli")
    assert [problem.where for problem in refused.value.problems] == ["email", "name", "password"]


NO_ADDRESSES = ["", "@", "a@", "@b", "a@b c", "a b@c", "a@b@c", "a\x00@b", "\ud800@b", f"{'x' * 250}@b.de"]


def test_what_is_no_address_is_refused_by_name_and_finds_nobody(db: Database) -> None:
    with db.begin() as session:
        for email in NO_ADDRESSES:
            with pytest.raises(Refused) as refused:
                create_officer(
                    session, email=email, name="Ada", role=Role.ADMIN, password=PASSWORD, actor="cli"
                )
            assert [problem.where for problem in refused.value.problems] == ["email"]
            assert find_officer(session, email) is None


def test_an_address_is_taken_once_and_the_transaction_can_go_on(db: Database) -> None:
    ada(db)
    with db.begin() as session:
        with pytest.raises(Conflict) as conflict:
            create_officer(
                session, email="ADA@example.org", name="A", role=Role.ADMIN, password=PASSWORD, actor="cli"
            )
        assert [problem.where for problem in conflict.value.problems] == ["email"]
        assert "example.org" not in str(conflict.value)
        assert session.scalar(select(func.count()).select_from(Officer)) == 1


def test_only_active_officers_are_got(db: Database) -> None:
    officer = ada(db)
    with db.begin() as session:
        assert get_officer(session, officer.id) is not None
        assert get_officer(session, new_id()) is None
        deactivate_officer(session, session.get_one(Officer, officer.id), actor="cli")
    with db.read() as session:
        assert get_officer(session, officer.id) is None
        assert find_officer(session, officer.email) is not None
    assert trail(db)[-1] == ("OFFICER_DEACTIVATED", "cli", {"officer_id": str(officer.id)})


def test_nobody_is_deactivated_twice(db: Database) -> None:
    officer = ada(db)
    with db.begin() as session:
        mine = session.get_one(Officer, officer.id)
        deactivate_officer(session, mine, actor="cli")
        with pytest.raises(Conflict):
            deactivate_officer(session, mine, actor="cli")


def test_a_new_password_ends_the_open_sessions(db: Database) -> None:
    officer = ada(db)
    with db.begin() as session:
        mine = session.get_one(Officer, officer.id)
        set_password(session, mine, "another good password", actor=f"officer:{officer.id}")
    with db.read() as session:
        mine = session.get_one(Officer, officer.id)
    assert mine.session_epoch == 1
    assert verify_password(mine.password_hash, "another good password")
    assert trail(db)[-1] == (
        "PASSWORD_CHANGED",
        f"officer:{officer.id}",
        {"officer_id": str(officer.id)},
    )


def test_a_short_new_password_changes_nothing(db: Database) -> None:
    officer = ada(db)
    with db.begin() as session:
        mine = session.get_one(Officer, officer.id)
        with pytest.raises(Refused) as refused:
            set_password(session, mine, "short", actor="cli")
        assert [problem.where for problem in refused.value.problems] == ["password"]
        assert (mine.password_hash, mine.session_epoch) == (officer.password_hash, 0)


def test_the_list_has_the_deactivated_last(db: Database) -> None:
    first, second = ada(db, "a@example.org"), ada(db, "b@example.org")
    with db.begin() as session:
        deactivate_officer(session, session.get_one(Officer, first.id), actor="cli")
    with db.read() as session:
        assert [officer.id for officer in list_officers(session)] == [second.id, first.id]
