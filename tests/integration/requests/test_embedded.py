"""`Effaced` in an application: it works on the caller's connection, and needs no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import QueuePool

from effaced.audit.sink import DatabaseAuditSink
from effaced.breakers.advice.tuner import change_policy
from effaced.breakers.listeners import BreakerListener
from effaced.breakers.model import BreakerRole
from effaced.breakers.policy_file import load_policies
from effaced.core.clock import ManualClock
from effaced.core.crypto import new_key
from effaced.core.db import Database
from effaced.core.errors import ConfigurationError, Refused, ResolverError
from effaced.embed import Effaced, Taken
from effaced.model import OutboxStatus, PolicyKind, RequestStatus
from effaced.resolvers.protocols import Erased
from effaced.resolvers.registry import Registered, ResolverRegistry
from effaced.retries.policy import RetryPolicy

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


@pytest.mark.parametrize(
    "take",
    [
        lambda privacy, session: privacy.erase(session, 1),
        lambda privacy, session: privacy.rectify(session, 1, {"city": "Gera"}),
    ],
    ids=["erase", "rectify"],
)
def test_a_person_can_be_named_by_a_number(
    db: Database, map_path: Path, take: Callable[[Effaced, Session], Taken]
) -> None:
    privacy = embedded(db.sessions, map_path)
    with db.sessions.begin() as session:
        assert take(privacy, session).status is RequestStatus.RUNNING


def test_a_person_can_be_named_by_a_uuid(db: Database, tmp_path: Path) -> None:
    person = UUID("0198b7e2-7c5a-7a1e-9d0c-2f6a3c1e4b5d")
    with db.begin() as session:
        session.execute(text("CREATE TABLE customers (id varchar(36) PRIMARY KEY, crm_id text, city text)"))
        session.execute(text(f"INSERT INTO customers VALUES ('{person}', 'c1', 'Ulm')"))
    (path := tmp_path / "datamap.yaml").write_text(MAP)
    privacy = embedded(db.sessions, path)
    with db.sessions.begin() as session:
        assert privacy.erase(session, person).status is RequestStatus.RUNNING


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda privacy, session: privacy.erase(session, 1.5),
            "erase: subject_id must be a str, an int or a",
        ),
        (
            lambda privacy, session: privacy.erase(session, True),
            "erase: subject_id must be a str, an int or a",
        ),
        (lambda privacy, session: privacy.erase(session, None), "erase: subject_id .*, not None"),
        (lambda privacy, session: privacy.erase(None, "1"), "erase: session must be a Session, not None"),
        (
            lambda privacy, session: privacy.erase(session, "1", subject_type=1),
            "subject_type must be a str or",
        ),
        (lambda privacy, session: privacy.erase(session, "1", reason=b"x"), "reason must be a str or None"),
        (lambda privacy, session: privacy.rectify(session, "1", "city"), "corrections must be a Mapping"),
        (
            lambda privacy, session: privacy.rectify(session, "1", {1: "x"}),
            "a key of .*corrections must be a",
        ),
        (lambda privacy, session: privacy.rectify(session, "1", {"city": []}), r"corrections\['city'\] must"),
        (lambda privacy, session: privacy.look_up(session, "x"), "look_up: request_id must be a UUID"),
        (lambda privacy, session: privacy.runner(max_attempts="8"), "runner: max_attempts must be an int"),
        (lambda privacy, session: privacy.runner(backoff=30), "runner: backoff must be a BackoffPolicy"),
        (
            lambda privacy, session: privacy.runner(on_abandoned=print),
            "on_abandoned must be an AbandonedHook",
        ),
        (lambda privacy, session: privacy.outbox.enqueue(session, None), "entries must be an Iterable"),
    ],
)
def test_an_argument_of_another_type_is_refused_by_name(
    db: Database, map_path: Path, call: Callable[[Effaced, Session], object], said: str
) -> None:
    privacy = embedded(db.sessions, map_path)
    with db.sessions.begin() as session, pytest.raises(TypeError, match=said):
        call(privacy, session)


@pytest.mark.parametrize("subject_id", ["1\x00", 10**40, -1, ""])
def test_an_id_that_nobody_can_have_is_refused_like_an_unknown_one(
    db: Database, map_path: Path, subject_id: str | int
) -> None:
    privacy = embedded(db.sessions, map_path)
    with db.sessions.begin() as session, pytest.raises(Refused, match="not known"):
        privacy.erase(session, subject_id)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sessions": None}, "Effaced: sessions must be a sessionmaker, not None"),
        ({"keys": 1}, "keys must be a str"),
        ({"datamap": None}, "datamap must be a str or a Path"),
        ({"resolvers": []}, "resolvers must be a ResolverRegistry, a str or a Path"),
        ({"audit_sink": print}, "audit_sink must be an AuditSink or None"),
        ({"audit_sink": DatabaseAuditSink}, "audit_sink must be an AuditSink or None"),
    ],
)
def test_an_instance_is_not_made_of_arguments_of_another_type(
    db: Database, map_path: Path, wrong: dict[str, Any], said: str
) -> None:
    right = {"keys": new_key(), "datamap": map_path, "resolvers": ResolverRegistry()}
    with pytest.raises(TypeError, match=said):
        Effaced(**{"sessions": db.sessions} | right | wrong)


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


class Obedient:
    async def erase_subject(self, ref, *, key):
        return Erased()


class Looking(Obedient):
    looks = 0

    async def verify_absent(self, ref, *, key):
        self.looks += 1
        return True


def drive_by_hand(privacy: Effaced) -> list[bool]:
    """What an application does that makes the calls itself."""
    return [
        privacy.outbox.mark_succeeded(each, on_subject_complete=lambda: None)
        for each in privacy.outbox.claim_batch()
    ]


def test_a_request_completes_whose_calls_the_application_makes(db: Database, map_path: Path) -> None:
    registry = ResolverRegistry((Registered("crm", "crm_contact", Obedient()),))
    privacy = Effaced(db.sessions, keys=new_key(), datamap=map_path, resolvers=registry)
    with db.sessions.begin() as session:
        taken = privacy.erase(session, "1")
    assert drive_by_hand(privacy) == [True]
    with db.sessions() as session:
        now = privacy.look_up(session, taken.request_id)
    assert now is not None
    assert now.status is RequestStatus.COMPLETED


def test_a_call_that_the_application_made_is_read_back_before_the_request_completes(
    db: Database, map_path: Path, noon: ManualClock
) -> None:
    crm = Looking()
    registry = ResolverRegistry((Registered("crm", "crm_contact", crm),))
    privacy = Effaced(db.sessions, keys=new_key(), datamap=map_path, resolvers=registry)
    with db.sessions.begin() as session:
        taken = privacy.erase(session, "1")
    drive_by_hand(privacy)

    def status() -> RequestStatus | None:
        with db.sessions() as session:
            now = privacy.look_up(session, taken.request_id)
        return now.status if now else None

    assert (crm.looks, status()) == (0, RequestStatus.RUNNING)
    noon.advance(timedelta(hours=1))
    asyncio.run(privacy.runner().run_once())
    assert (crm.looks, status()) == (1, RequestStatus.COMPLETED)


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


class Calls(BreakerListener):
    def __init__(self) -> None:
        self.admitted: list[str] = []

    def before_call(self, service_name: str, role: BreakerRole, calls: int) -> None:
        self.admitted.append(service_name)


def test_a_runner_obeys_breakers_yaml_what_was_changed_at_run_time_and_listeners(
    db: Database, map_path: Path, tmp_path: Path
) -> None:
    (file := tmp_path / "breakers.yaml").write_text("version: 1\nresolvers:\n  crm: {fail_max: 4}\n")
    listener = Calls()
    registry = ResolverRegistry((Registered("crm", "crm_contact", Refusing()),))
    privacy = Effaced(
        db.sessions,
        keys=new_key(),
        datamap=map_path,
        resolvers=registry,
        breakers=file,
        breaker_listeners=[listener],
    )
    assert privacy.breakers.policy("resolver:crm").fail_max == 4
    with db.begin() as session:
        change_policy(
            session, load_policies(file), "resolver:crm", PolicyKind.BREAKER, {"fail_max": 2}, actor="cli"
        )
    privacy.breakers.refresh_policies()
    assert privacy.breakers.policy("resolver:crm").fail_max == 2
    with db.sessions.begin() as session:
        privacy.erase(session, "1")
    assert asyncio.run(privacy.runner().run_once()) == 1
    assert set(listener.admitted) == {"resolver:crm"}


@pytest.mark.parametrize(
    "few", [{"max_attempts": 3}, {"policy": RetryPolicy(max_attempts=3)}], ids=["attempts", "policy"]
)
def test_a_breaker_opens_before_the_attempts_of_any_runner_are_used_up(
    db: Database, map_path: Path, few: dict[str, object]
) -> None:
    privacy = embedded(db.sessions, map_path)
    privacy.runner()
    assert privacy.breakers.policy("resolver:crm").fail_max == 5
    privacy.runner(**few)
    privacy.runner()
    assert privacy.breakers.policy("resolver:crm").fail_max == 2
