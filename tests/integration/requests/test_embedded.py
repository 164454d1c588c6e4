"""`Effaced` in an application: it works on the caller's connection, and needs no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import QueuePool

from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.errors import ConfigurationError, ResolverError
from effaced.embed import Effaced, Taken
from effaced.model import OutboxStatus, RequestStatus
from effaced.resolvers.registry import Registered, ResolverRegistry

MAP = """
version: 1
subject: {table: customers, key: id}
refs: {crm_contact: {column: crm_id}}
rectify: {city: customers.city}
tables:
  customers: {columns: {id: delete, crm_id: delete, city: delete}}
"""


class Refusing:
    async def erase_subject(self, ref, *, key):
        raise ResolverError("no", code="no")

    async def rectify_subject(self, ref, corrections, *, key):
        raise ResolverError("no", code="no")


@pytest.fixture
def map_path(db: Database, tmp_path: Path) -> Path:
    with db.begin() as session:
        session.execute(text("CREATE TABLE customers (id integer PRIMARY KEY, crm_id text, city text)"))
        session.execute(text("INSERT INTO customers VALUES (1, 'c1', 'Ulm')"))
    (path := tmp_path / "datamap.yaml").write_text(MAP)
    return path


def embedded(sessions: sessionmaker[Session], map_path: Path) -> Effaced:
    registry = ResolverRegistry((Registered("crm", "crm_contact", Refusing()),))
    return Effaced(sessions, keys=new_key(), datamap=map_path, resolvers=registry)


@pytest.fixture
def one_connection(db: Database, map_path: Path) -> Iterator[sessionmaker[Session]]:
    """Sessions of an application whose pool has one connection; whoever wants a second gets an error."""
    engine = create_engine(db.engine.url, poolclass=QueuePool, pool_size=1, max_overflow=0, pool_timeout=0.1)
    yield sessionmaker(engine)
    engine.dispose()


TAKE = pytest.mark.parametrize(
    "take",
    [
        lambda privacy, session: privacy.erase(session, "1"),
        lambda privacy, session: privacy.rectify(session, "1", {"city": "Gera"}),
    ],
    ids=["erase", "rectify"],
)


@TAKE
def test_the_first_call_needs_no_second_connection(
    one_connection: sessionmaker[Session], map_path: Path, take: Callable[[Effaced, Session], Taken]
) -> None:
    privacy = embedded(one_connection, map_path)
    with one_connection.begin() as session:
        taken = take(privacy, session)
        assert privacy.look_up(session, taken.request_id) == taken
    assert taken.status is RequestStatus.RUNNING


@TAKE
def test_the_first_call_works_while_the_caller_holds_the_write_lock(
    db: Database, map_path: Path, take: Callable[[Effaced, Session], Taken]
) -> None:
    privacy = embedded(db.sessions, map_path)  # whose transactions BEGIN IMMEDIATE on SQLite
    with db.sessions.begin() as session:
        session.execute(text("UPDATE customers SET city = 'Bonn'"))
        assert take(privacy, session).status is RequestStatus.RUNNING


def test_the_plan_can_be_made_before_any_transaction(
    one_connection: sessionmaker[Session], map_path: Path
) -> None:
    privacy = embedded(one_connection, map_path)
    plan = privacy.plan
    with one_connection.begin() as session:
        privacy.erase(session, "1")
    assert privacy.plan is plan


def test_what_was_given_up_can_be_tried_again_and_the_trail_says_who_did_it(
    db: Database, map_path: Path
) -> None:
    privacy = embedded(db.sessions, map_path)
    with db.sessions.begin() as session:
        privacy.erase(session, "1")
    asyncio.run(privacy.runner().run_once())
    (abandoned,) = privacy.outbox.list_abandoned()
    (again,) = privacy.outbox.requeue([abandoned.entry_id], actor="officer:ada")
    assert (again.entry_id, again.status) == (abandoned.entry_id, OutboxStatus.PENDING)
    with db.read() as session:
        actors = session.scalars(text("SELECT actor FROM effaced_audit_events WHERE actor LIKE 'officer:%'"))
        assert list(actors) == ["officer:ada"]


@pytest.mark.parametrize("ref", ["crm_contct", ""])
def test_a_resolver_whose_reference_the_map_does_not_have_is_refused(
    db: Database, map_path: Path, ref: str
) -> None:
    """It would never be called, and the request would be completed without it."""
    registry = ResolverRegistry((Registered("crm", ref, Refusing()),))
    privacy = Effaced(db.sessions, keys=new_key(), datamap=map_path, resolvers=registry)
    with pytest.raises(ConfigurationError, match="crm_contact"), db.begin() as session:
        privacy.erase(session, "1")
    with db.read() as session:
        assert session.scalar(text("SELECT count(*) FROM customers")) == 1


def test_two_resolvers_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="'crm'"):
        ResolverRegistry((Registered("crm", "a", Refusing()), Registered("crm", "b", Refusing())))
