from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from effaced.accounts.api_keys import (
    authenticate,
    create_api_key,
    find_api_key,
    list_api_keys,
    record_use,
    revoke_api_key,
    use_is_due,
)
from effaced.accounts.key_rules import NewApiKey
from effaced.accounts.scopes import Scope, has_scope
from effaced.accounts.tables import ApiKey
from effaced.audit.tables import AuditEvent
from effaced.core import clock
from effaced.core.crypto import token_hash
from effaced.core.db import Database
from effaced.core.errors import Conflict, Refused

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
SCOPES = ["requests:read", "requests:write"]


def make(db: Database, name: str = "shop", approvals_needed: int = 1) -> tuple[ApiKey, str]:
    with db.begin() as session:
        return create_api_key(session, NewApiKey(name=name, approvals_needed=approvals_needed), actor="cli")


def check(db: Database, token: str) -> ApiKey | None:
    with db.read() as session:
        return authenticate(session, token)


def test_a_token_names_its_key(db: Database) -> None:
    make(db, "crm")
    key, token = make(db, "shop")
    found = check(db, token)
    assert found is not None
    assert found.id == key.id


def test_the_token_shows_its_prefix_and_is_kept_as_a_hash_only(db: Database) -> None:
    key, token = make(db)
    assert token.startswith(f"eff_{key.prefix}_")
    with db.read() as session:
        row = session.execute(select(ApiKey.__table__)).mappings().one()
    assert row["token_hash"] == token_hash(token)
    assert token.removeprefix(f"eff_{key.prefix}_") not in str(dict(row))


def test_what_is_no_token_names_nobody(db: Database) -> None:
    make(db)
    none = ["", "eff_", f"eff_aaaaaaaa_{'a' * 32}", f"eff_aaaaaaaa_\x00{'a' * 31}", "\ud800", "é" * 45]
    assert [check(db, token) for token in none] == [None] * len(none)


def test_the_right_token_in_capitals_is_another_token(db: Database) -> None:
    _, token = make(db)
    assert check(db, token.upper()) is None


def test_a_revoked_key_is_nobodys(db: Database) -> None:
    key, token = make(db)
    with db.begin() as session:
        revoke_api_key(session, session.get_one(ApiKey, key.id), actor="cli")
    assert check(db, token) is None


def test_no_key_is_revoked_twice(db: Database) -> None:
    key, _ = make(db)
    with db.begin() as session:
        mine = session.get_one(ApiKey, key.id)
        revoke_api_key(session, mine, actor="cli")
        with pytest.raises(Conflict):
            revoke_api_key(session, mine, actor="cli")


def test_the_trail_tells_of_a_key_by_its_id(db: Database) -> None:
    key, _ = make(db, approvals_needed=0)
    with db.begin() as session:
        revoke_api_key(session, session.get_one(ApiKey, key.id), actor="cli")
    with db.read() as session:
        events = session.scalars(select(AuditEvent).order_by(AuditEvent.id)).all()
    assert [(event.type, event.actor, event.payload) for event in events] == [
        ("API_KEY_CREATED", "cli", {"api_key_id": str(key.id), "approvals_needed": 0, "scopes": SCOPES}),
        ("API_KEY_REVOKED", "cli", {"api_key_id": str(key.id)}),
    ]


def test_every_wrong_field_is_named_and_nothing_is_made(db: Database) -> None:
    wrong = [
        ("", 1, ["name"]),
        ("x" * 81, 1, ["name"]),
        ("a\nb", 1, ["name"]),
        ("shop", 2, ["approvals_needed"]),
        (" ", -1, ["name", "approvals_needed"]),
    ]
    with db.begin() as session:
        for name, approvals, fields in wrong:
            with pytest.raises(Refused) as refused:
                create_api_key(session, NewApiKey(name=name, approvals_needed=approvals), actor="cli")
            assert [problem.where for problem in refused.value.problems] == fields
        assert session.scalar(select(func.count()).select_from(ApiKey)) == 0


def test_a_name_is_taken_once(db: Database) -> None:
    make(db)
    with pytest.raises(Conflict) as conflict:
        make(db)
    assert [problem.where for problem in conflict.value.problems] == ["name"]


def test_use_is_noted_once_a_minute(db: Database) -> None:
    with clock.pretend(START) as at:
        key, token = make(db)
        assert use_is_due(key)
        for seconds, expected in ((0, START), (59, START), (1, START + timedelta(minutes=1))):
            at.advance(timedelta(seconds=seconds))
            with db.begin() as session:
                record_use(session, key.id)
            found = check(db, token)
            assert found is not None
            assert found.last_used_at == expected
            assert not use_is_due(found)


def test_a_key_is_found_by_name_or_prefix(db: Database) -> None:
    key, _ = make(db)
    with db.read() as session:
        for wanted in ("shop", key.prefix, f"eff_{key.prefix}"):
            found = find_api_key(session, wanted)
            assert found is not None
            assert found.id == key.id
        assert find_api_key(session, "other") is None
        assert find_api_key(session, "\x00") is None


def test_the_list_has_the_revoked_last(db: Database) -> None:
    first, _ = make(db, "a")
    second, _ = make(db, "b")
    with db.begin() as session:
        revoke_api_key(session, session.get_one(ApiKey, first.id), actor="cli")
    with db.read() as session:
        assert [key.id for key in list_api_keys(session)] == [second.id, first.id]


def test_scopes_are_kept_and_told(db: Database) -> None:
    with db.begin() as session:
        key, _ = create_api_key(
            session,
            NewApiKey(name="pager", approvals_needed=1, scopes=["operate:write", "operate:read"]),
            actor="cli",
        )
    assert key.scopes == ["operate:read", "operate:write"]


@pytest.mark.parametrize("scopes", [[], ["everything"], ["requests:read", "operate"]])
def test_scopes_that_do_not_exist_are_refused_with_those_that_do(db: Database, scopes: list[str]) -> None:
    with pytest.raises(Refused) as refused, db.begin() as session:
        create_api_key(session, NewApiKey(name="pager", approvals_needed=1, scopes=scopes), actor="cli")
    assert [each.where for each in refused.value.problems] == ["scopes"]
    assert "operate:write" in str(refused.value)


@pytest.mark.parametrize(
    ("stored", "needed", "may"),
    [
        (None, "requests:write", True),
        (None, "operate:read", False),
        (["requests:write"], "requests:read", True),
        (["operate:write"], "operate:read", True),
        (["operate:read"], "operate:write", False),
        ([], "requests:read", False),
    ],
)
def test_a_key_may_do_what_its_scopes_say(stored: list[str] | None, needed: str, may: bool) -> None:
    """A key from before there were scopes goes on sending requests, and nothing else."""
    assert has_scope(stored, Scope(needed)) is may
