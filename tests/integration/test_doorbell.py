"""The bell rings after the commit, never before, and a broken bell harms nobody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from effaced import doorbell
from effaced.core.db import Database


@pytest.fixture
def rung() -> Iterator[list[frozenset[str]]]:
    heard: list[frozenset[str]] = []
    doorbell.install(heard.append)
    yield heard
    doorbell.install(None)


class Undone(Exception):
    pass


def test_rings_once_after_the_commit_for_all_that_was_asked(db: Database, rung: list[frozenset[str]]) -> None:
    with db.begin() as session:
        doorbell.ring_after_commit(session, ["crm"])
        doorbell.ring_after_commit(session, ["mail", "crm"])
        assert rung == []
    assert rung == [{"crm", "mail"}]


def test_the_release_of_a_savepoint_is_no_commit(db: Database, rung: list[frozenset[str]]) -> None:
    with db.begin() as session:
        with session.begin_nested():
            session.execute(text("SELECT 1"))
            doorbell.ring_after_commit(session, ["crm"])
        assert rung == []
    assert rung == [{"crm"}]


def test_a_rollback_rings_nothing(db: Database, rung: list[frozenset[str]]) -> None:
    def ring_and_fail() -> None:
        with db.begin() as session:
            session.execute(text("SELECT 1"))
            doorbell.ring_after_commit(session, ["crm"])
            raise Undone

    with pytest.raises(Undone):
        ring_and_fail()
    assert rung == []


def test_a_ring_is_not_heard_again_with_the_next_commit(db: Database, rung: list[frozenset[str]]) -> None:
    with db.sessions() as session:
        doorbell.ring_after_commit(session, ["crm"])
        session.execute(text("SELECT 1"))
        session.commit()
        session.execute(text("SELECT 1"))
        session.commit()
    assert rung == [{"crm"}]


def test_a_bell_that_breaks_leaves_the_commit_alone(db: Database) -> None:
    def broken(_names: frozenset[str]) -> None:
        raise ConnectionError

    doorbell.install(broken)
    try:
        with db.begin() as session:
            session.execute(text("CREATE TABLE kept (id integer)"))
            doorbell.ring_after_commit(session, ["crm"])
    finally:
        doorbell.install(None)
    with db.read() as session:
        assert session.execute(text("SELECT * FROM kept")).all() == []
