"""What the library says of arguments it can't use: which one, and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from effaced.library import (
    BackoffPolicy,
    Correction,
    Database,
    DatabaseAuditSink,
    Keyring,
    Limits,
    Outbox,
    OutboxEntry,
    Registered,
    ResolverRegistry,
    SagaRunner,
    SubjectRef,
    new_key,
)
from effaced.model import new_id

REF = SubjectRef("crm_contact", "1")
SESSIONS = sessionmaker(create_engine("sqlite://"))
OUTBOX = Outbox(SESSIONS, keyring=Keyring.parse(new_key()), audit_sink=DatabaseAuditSink())
ENTRY = OutboxEntry("crm", REF, "1")
NOON = datetime(2026, 3, 2, 12, 0)  # noqa: DTZ001


class Deletes:
    async def erase_subject(self, ref, *, key):
        raise NotImplementedError


def enqueue(entry: OutboxEntry) -> None:
    OUTBOX.enqueue(Session(), [entry])


WRONG_TYPES: list[tuple[Callable[[], object], str]] = [
    (lambda: Keyring.parse(1), "Keyring.parse: text must be a str, not int"),
    (lambda: Database(None), "Database: url must be a str or a URL, not None"),
    (lambda: Limits(timeout=30), "Limits: timeout must be a timedelta, not int"),
    (lambda: Limits(concurrency=True), "Limits: concurrency must be an int, not bool"),
    (lambda: BackoffPolicy(lease=5), "BackoffPolicy: lease must be a timedelta, not int"),
    (lambda: Registered(1, "person", Deletes()), "Registered: name must be a str, not int"),
    (lambda: Registered("crm", "person", object()), "Registered: resolver must be a Resolver or a Retention"),
    (lambda: Registered("crm", "person", Deletes), "Registered: resolver must be .*, not type"),
    (lambda: Registered("crm", "person", Deletes(), after="payment"), "after must be a tuple, not str"),
    (lambda: ResolverRegistry(["crm"]), r"ResolverRegistry: registered\[0\] must be a Registered, not str"),
    (lambda: ResolverRegistry().register("crm"), "register: entry must be a Registered, not str"),
    (lambda: Outbox(SESSIONS(), keyring=OUTBOX.keyring), "session_factory must be a sessionmaker, not"),
    (lambda: Outbox(SESSIONS, keyring="k1:x"), "Outbox: keyring must be a Keyring, not str"),
    (lambda: Outbox(SESSIONS, keyring=OUTBOX.keyring, status_counts_source=len), "status_counts_source must"),
    (lambda: OutboxEntry("crm", "1", "1"), "OutboxEntry: ref must be a SubjectRef, not str"),
    (lambda: OutboxEntry("crm", REF, 1), "OutboxEntry: subject_id must be a str, not int"),
    (lambda: OutboxEntry("crm", REF, "1", after="payment"), "after must be a Collection, not str"),
    (lambda: OutboxEntry("crm", REF, "1", entry_id="1"), "entry_id must be a UUID, not str"),
    (lambda: enqueue(OutboxEntry("crm", SubjectRef("crm_contact", 1), "1")), "SubjectRef: value must be a"),
    (
        lambda: enqueue(OutboxEntry("crm", REF, "1", corrections=(Correction("born", NOON),))),
        "Correction: value must be a str, an int, a float, a bool or None, not datetime",
    ),
    (lambda: OUTBOX.enqueue(SESSIONS, []), "enqueue: session must be a Session, not sessionmaker"),
    (lambda: OUTBOX.enqueue(Session(), ENTRY), "enqueue: entries must be an Iterable, not OutboxEntry"),
    (lambda: OUTBOX.claim_batch("5"), "claim_batch: limit must be an int, not str"),
    (lambda: OUTBOX.mark_failed(ENTRY, error=OSError(), next_attempt_at=NOON), "error must be a str, not OS"),
    (
        lambda: OUTBOX.mark_succeeded(ENTRY, on_subject_complete=None),
        "on_subject_complete must be a function",
    ),
    (lambda: OUTBOX.requeue(str(new_id())), "requeue: entry_ids must be an Iterable, not str"),
    (
        lambda: OUTBOX.requeue([str(new_id())]),
        r"requeue: entry_ids\[0\] must be a UUID or an OutboxEntry, not str",
    ),
    (lambda: SagaRunner(Registered("crm", "person", Deletes()), OUTBOX), "registry must be a ResolverRegist"),
    (lambda: SagaRunner(ResolverRegistry(), OUTBOX, DatabaseAuditSink), "audit must be an AuditSink or None"),
    (lambda: SagaRunner(ResolverRegistry(), OUTBOX, on_abandoned=len), "on_abandoned must be an Abandoned"),
    (lambda: SagaRunner(ResolverRegistry(), OUTBOX).drain(1), "SagaRunner.drain: resolver must be a str"),
]


@pytest.mark.parametrize(("call", "said"), WRONG_TYPES, ids=[said for _, said in WRONG_TYPES])
def test_an_argument_of_another_type_is_refused_by_name(call: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


WRONG_VALUES: list[tuple[Callable[[], object], str]] = [
    (lambda: Limits(rate_per_second=float("nan")), "Limits: rate_per_second must be greater than zero"),
    (lambda: Limits(backoff=timedelta(0)), "Limits: backoff must be greater than zero"),
    (lambda: BackoffPolicy(lease=timedelta(0)), "BackoffPolicy: lease must be greater than zero"),
    (lambda: OUTBOX.claim_batch(0), "Outbox.claim_batch: limit must be greater than zero"),
    (lambda: OUTBOX.claim_batch(lease=timedelta(-1)), "Outbox.claim_batch: lease must be greater than zero"),
    (lambda: OUTBOX.list_abandoned(limit=-1), "limit must be greater than zero"),
    (lambda: OUTBOX.mark_failed(ENTRY, error="no 1@x.example", next_attempt_at=NOON), "must be a class name"),
    (lambda: OUTBOX.mark_abandoned(ENTRY, error="x" * 256), "must be a class name"),
    (lambda: OUTBOX.mark_failed(ENTRY, error="E", next_attempt_at=NOON), "next_attempt_at must have a time"),
    (lambda: SagaRunner(ResolverRegistry(), OUTBOX, batch_size=0), "SagaRunner: batch_size must be greater"),
    (
        lambda: SagaRunner(ResolverRegistry(), OUTBOX, crash_limit=0),
        "SagaRunner: crash_limit must be greater",
    ),
    (lambda: SagaRunner(ResolverRegistry(), OUTBOX, max_attempts=0), "max_attempts"),
]


@pytest.mark.parametrize(("call", "said"), WRONG_VALUES, ids=[said for _, said in WRONG_VALUES])
def test_a_value_that_makes_no_sense_is_refused_by_name(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_no_value_is_repeated() -> None:
    with pytest.raises(TypeError) as refused:
        OutboxEntry("crm", "anna@letters.example", "1")  # type: ignore[arg-type]
    assert "anna" not in str(refused.value)


def test_what_is_as_good_as_the_stated_type_is_taken() -> None:
    assert Limits(rate_per_second=5).rate_per_second == 5
    assert len(ResolverRegistry([Registered("crm", "person", Deletes(), after=["payment"])])) == 1  # type: ignore[arg-type]
    OUTBOX.enqueue(scoped_session(SESSIONS), (each for each in ()))  # type: ignore[arg-type]
