"""Taking a request in: who asks what for whom, when it is due, and how many approvals it needs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import inspect
from sqlalchemy.orm import Session, make_transient_to_detached
from sqlalchemy.orm.attributes import set_committed_value

from effaced.accounts.tables import ApiKey
from effaced.audit.append import SYSTEM, append_one
from effaced.audit.events import RequestDuplicate, RequestReceived, RequestRepeated
from effaced.audit.notes import write_note
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.db import dbtime
from effaced.core.db.pipeline import Pipeline
from effaced.core.db.sql import insert_rows
from effaced.core.errors import Problem, Refused
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.subject import Subject, find_subject
from effaced.model import (
    Correction,
    PolicyKind,
    PolicyScope,
    RequestKind,
    SubjectKey,
    new_id,
)
from effaced.outbox.entry import seal_corrections
from effaced.requests.correct import erased_since, validate_corrections
from effaced.requests.deadline import due_date
from effaced.requests.duplicates import find_original, lock_and_look_for_erasures, may_reveal
from effaced.requests.identifiers import SUBJECT_ID, add_identifiers
from effaced.requests.stages import announce_received
from effaced.requests.status import RequestEvent, transition
from effaced.requests.subject import seal_subject
from effaced.requests.tables import Request
from effaced.retries.overrides import Target, set_override
from effaced.retries.policy import check_changes

_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # nothing that is misread over the telephone
_UTC = ZoneInfo("UTC")
_check_retry = partial(check_changes, under="retry")


@dataclass(frozen=True, slots=True)
class Intake:
    """The request that was taken in, and the one that it is a duplicate of, if any."""

    request: Request
    original: Request | None = None

    @property
    def duplicate(self) -> bool:
        return self.original is not None

    @property
    def visible_original(self) -> Request | None:
        """The original, if it may be named to whoever sent this request: only to the same API key."""
        return self.original if self.original and may_reveal(self.request, self.original) else None


@dataclass(frozen=True, slots=True)
class IntakeRequest:
    """A request to be taken in: what, for whom, and by an API key, an officer or an embedding application.

    `subject_type` says of which kind of people the person is, where the map has several. `approvals` is how
    many are needed; without it the API key says. `retry` are the fields of the retry policy that differ for
    this request's calls.
    """

    kind: RequestKind
    subject_id: str = field(repr=False)
    subject_type: str | None = None
    api_key: ApiKey | None = None
    entered_by: UUID | None = None
    corrections: Sequence[Correction] = ()
    approvals: int | None = None
    reason: str | None = field(default=None, repr=False)
    retry: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def actor(self) -> str:
        if self.api_key is not None:
            return f"api_key:{self.api_key.id}"
        return f"officer:{self.entered_by}" if self.entered_by is not None else SYSTEM

    @property
    def officer_id(self) -> UUID | None:
        """The officer who enters it, be it through an API key of theirs: they can't approve it."""
        return self.entered_by or (self.api_key.officer_id if self.api_key is not None else None)

    @property
    def approvals_needed(self) -> int:
        if self.approvals is not None:
            return self.approvals
        return self.api_key.approvals_needed if self.api_key is not None else 1


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request that can be taken in: its corrections, the person with their keys, the original if any."""

    corrections: tuple[Correction, ...]
    subject: Subject
    keys: list[SubjectKey]
    original: Request | None


def receive(
    session: Session, keyring: Keyring, plan: ErasurePlan, asked: IntakeRequest, *, zone: ZoneInfo = _UTC
) -> Intake:
    """Take a request in. Refuses an unknown person, corrections that can't be made, and a sandbox key.

    An erasure that an open one of the same person answers already is taken in as its duplicate.
    """
    if asked.api_key is not None and asked.api_key.sandbox:
        raise Refused("A sandbox key sends nothing that is executed.")
    plan = plan.for_people(asked.subject_type)
    checked = check_request(session, keyring, plan, asked)
    corrections, subject, keys = checked.corrections, checked.subject, checked.keys
    original, database_now = checked.original, dbtime.now(session)
    request_id, now, actor, approvals = new_id(), clock.now(), asked.actor, asked.approvals_needed
    request = Request(
        id=request_id,
        ref=new_ref(),
        kind=asked.kind,
        api_key_id=asked.api_key.id if asked.api_key else None,
        entered_by=asked.officer_id,
        duplicate_of=original.id if original else None,
        subject_type=asked.subject_type,
        subject_key_id=keys[0].key_id,
        subject_hmac=keys[0].hmac,
        subject_sealed=seal_subject(keyring, request_id, subject.subject_id, subject.refs),
        corrections_sealed=seal_corrections(keyring, corrections, context=request_id)
        if corrections
        else None,
        correction_fields=sorted(each.column for each in corrections) or None,
        datamap_hash=plan.data_map.hash,
        approvals_needed=approvals,
        metadata_values=dict(asked.metadata) or None,
        received_at=now,
        due_at=due_date(now, zone),
        execute_at=None if approvals or original else database_now,
        execute_attempts=0,
    )
    transition(session, request, _how_received(original, approvals), by=actor)
    received = RequestReceived(
        kind=asked.kind, approvals_needed=approvals, due_at=request.due_at, datamap_hash=plan.data_map.hash
    )
    with Pipeline(session):
        _insert_request(session, request)
        identifiers = {SUBJECT_ID: subject.subject_id, **subject.identifiers}
        add_identifiers(session, keyring, request_id, identifiers)
        append_one(session, received, actor=actor, request_id=request_id, subject=request.subject)
    # From here on it is as if the session had loaded it.
    make_transient_to_detached(request)
    session.add(request)
    if asked.reason:
        write_note(session, keyring, asked.reason, author=actor, request_id=request_id)
    if original:
        append_one(session, RequestRepeated(), actor=actor, request_id=original.id, subject=original.subject)
        append_one(session, RequestDuplicate(), request_id=request_id, subject=request.subject)
    announce_received(session, request, original)
    if asked.retry:
        target = Target(PolicyKind.RETRY, PolicyScope.REQUEST, str(request_id), subject=request.subject)
        set_override(session, target, asked.retry, check=_check_retry, actor=actor)
    return Intake(request, original)


def check_request(
    session: Session, keyring: Keyring, plan: ErasurePlan, asked: IntakeRequest
) -> CheckedRequest:
    """Whether the request could be taken in, and what it is about. `plan` is that of the person's kind."""
    _check_retry(asked.retry)
    corrections = validate_corrections(plan, asked.kind, asked.corrections)
    subject, keys, original = _find_person(session, keyring, plan, asked)
    if asked.kind is RequestKind.RECTIFICATION and erased_since(session, plan, keys, clock.now()):
        said = "this person was erased; there is nothing left to correct"
        raise Refused("The subject was erased.", problems=[Problem("subject.id", said, code="erased")])
    return CheckedRequest(tuple(corrections), subject, keys, original)


def _find_person(
    session: Session, keyring: Keyring, plan: ErasurePlan, asked: IntakeRequest
) -> tuple[Subject, list[SubjectKey], Request | None]:
    """The person, their keyed hashes, and the open erasure that this one would be a duplicate of."""
    subject = find_subject(session, plan, asked.subject_id)
    gone = Subject(asked.subject_id, {}, {})
    keys = keyring.fingerprints(plan.hash_input((subject or gone).subject_id), purpose="subject")
    original = None
    if asked.kind is RequestKind.ERASURE and lock_and_look_for_erasures(session, keys):
        original = find_original(session, keyring, plan, keys, subject or gone)
        # Somebody whose own row is gone may have an open erasure, and other rows left.
        subject = subject or gone
    if subject is None:
        said = f"no such person in table {plan.data_map.subject}"
        problem = Problem("subject.id", said, code="unknown_person")
        raise Refused("The subject is not known.", problems=[problem])
    return subject, keys, original


def _insert_request(session: Session, request: Request) -> None:
    """Write a new request, all of whose columns are set. The unit of work would take three times as long."""
    values = {name: getattr(request, key) for name, key in _columns().items()}
    insert_rows(session, Request, [values])
    for name, key in _columns().items():
        set_committed_value(request, key, values[name])


@cache
def _columns() -> dict[str, str]:
    """The attribute of each column."""
    return {attribute.columns[0].name: attribute.key for attribute in inspect(Request).column_attrs}


def _how_received(original: Request | None, approvals: int) -> RequestEvent:
    if original is not None:
        return RequestEvent.RECEIVED_AS_DUPLICATE
    return RequestEvent.RECEIVED_FOR_REVIEW if approvals else RequestEvent.RECEIVED_AS_APPROVED


def new_ref() -> str:
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    return f"ER-{letters[:4]}-{letters[4:]}"
