"""People for whom requests were sent, by the keyed hashes that stand for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from effaced.core.crypto import Keyring
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.subject import find_subject
from effaced.model import SubjectKey
from effaced.requests.identifiers import identifier_matches
from effaced.requests.tables import Request


@dataclass(frozen=True, slots=True)
class SubjectLine:
    """One person, or what of their history is under one key of the ring, with how many requests."""

    key: SubjectKey
    requests: int
    open: int
    last_received_at: datetime


def find_by_id(
    session: Session, keyring: Keyring, plan: ErasurePlan, subject_id: str, *, sent_by: UUID | None = None
) -> list[SubjectLine]:
    """The person with this key in the database, if there are requests for them, from before a rotation too.

    `plan` is that of their kind of people. `sent_by`: only requests that this API key has sent count.
    """
    subject = find_subject(session, plan, subject_id)
    # As the database spells it, and as it was sent: the row may be erased.
    spellings = {subject_id, subject.subject_id} if subject else {subject_id}
    hmacs = [
        each.hmac
        for spelling in sorted(spellings)
        for each in keyring.fingerprints(plan.hash_input(spelling), purpose="subject")
    ]
    return _lines(session, Request.subject_hmac.in_(hmacs), sent_by)


def find_by_identifier(
    session: Session, keyring: Keyring, kind: str, value: str, *, sent_by: UUID | None = None
) -> list[SubjectLine]:
    """Whoever has this identifier, or had it when a request came in; see `find_by_id`."""
    return _lines(session, Request.id.in_(identifier_matches(keyring, kind, value)), sent_by)


def _lines(session: Session, condition: ColumnElement[bool], sent_by: UUID | None) -> list[SubjectLine]:
    last = func.max(Request.received_at, type_=Request.received_at.type)
    query = (
        select(
            Request.subject_key_id,
            Request.subject_hmac,
            func.count(),
            func.count().filter(Request.closed_at.is_(None)),
            last,
        )
        .where(condition)
        .group_by(Request.subject_key_id, Request.subject_hmac)
        .order_by(last.desc(), Request.subject_hmac)
    )
    if sent_by is not None:
        query = query.where(Request.api_key_id == sent_by)
    return [
        SubjectLine(SubjectKey(key_id, hmac), requests, open_, last_at)
        for key_id, hmac, requests, open_, last_at in session.execute(query)
    ]
