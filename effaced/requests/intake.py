"""A request comes in: who asks what for whom, by when, and who has to say yes."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from effaced.accounts.tables import ApiKey
from effaced.audit.append import SYSTEM, append_one
from effaced.audit.events import RequestDuplicate, RequestReceived, RequestRepeated
from effaced.audit.notes import write_note
from effaced.core import clock, dbtime
from effaced.core.crypto import Keyring
from effaced.core.errors import Problem, Refused
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.rectify import check_corrections
from effaced.datamap.run.subject import Subject, find_subject
from effaced.model import (
    Correction,
    PolicyKind,
    PolicyScope,
    RequestKind,
    RequestStatus,
    new_id,
)
from effaced.outbox.entry import seal_corrections
from effaced.requests.correct import erased_since, name_by_category
from effaced.requests.deadline import due_date
from effaced.requests.duplicates import find_original, has_open_erasure, may_name
from effaced.requests.identifiers import SUBJECT_ID, add_identifiers
from effaced.requests.lock import lock_person
from effaced.requests.subject import seal_subject
from effaced.requests.tables import Request
from effaced.retries.overrides import Target, put
from effaced.retries.policy import check_changes

_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # nothing that is misread over the telephone
_UTC = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class Intake:
    """The request that was taken in, and the one that it is a duplicate of, if any."""

    request: Request
    original: Request | None = None

    @property
    def duplicate(self) -> bool:
        return self.original is not None

    @property
    def told_original(self) -> Request | None:
        """The original, if it may be named to whoever sent this request: only to the same API key."""
        return self.original if self.original and may_name(self.request, self.original) else None


def receive(
    session: Session,
    keyring: Keyring,
    plan: ErasurePlan,
    *,
    kind: RequestKind,
    subject_id: str,
    subject_type: str | None = None,
    api_key: ApiKey | None,
    entered_by: UUID | None = None,
    corrections: Sequence[Correction] = (),
    approvals: int | None = None,
    reason: str | None = None,
    retry: Mapping[str, Any] | None = None,
    zone: ZoneInfo = _UTC,
) -> Intake:
    """Take a request in. Refuses an unknown person, and corrections that can't be made.

    `subject_type` says of which kind of people the person is, where the map has several.
    An erasure that an open one of the same person answers already is taken in as its duplicate. `retry` are
    the fields of the retry policy that differ for this request's calls.
    """
    check_retry = partial(check_changes, under="retry")
    check_retry(retry or {})
    if bool(corrections) != (kind is RequestKind.RECTIFICATION):
        said = "goes with a rectification only" if corrections else "is missing: what is to be corrected?"
        raise Refused("The request is not as it must be.", problems=[Problem("corrections", said)])
    plan = plan.named(subject_type)
    subject = find_subject(session, plan, subject_id)
    actor = f"api_key:{api_key.id}" if api_key else f"officer:{entered_by}" if entered_by else SYSTEM
    gone = Subject(subject_id, {}, {})
    keys = keyring.fingerprints(plan.hashed((subject or gone).subject_id), purpose="subject")
    original = None
    if kind is RequestKind.ERASURE:
        lock_person(session, [key.hmac for key in keys])
        original = find_original(session, keyring, plan, keys, subject or gone)
        # Somebody whose own row is gone may have an open erasure, and other rows left.
        subject = subject or (gone if has_open_erasure(session, keys) else None)
    if subject is None:
        problem = Problem("subject.id", f"no such person in table {plan.data_map.subject}")
        raise Refused("The subject is not known.", problems=[problem])
    request_id, now = new_id(), clock.now()
    if kind is RequestKind.RECTIFICATION:
        corrections = name_by_category(plan.data_map, corrections)
        check_corrections(plan, corrections)
        if erased_since(session, plan, keys, now):
            problem = Problem("subject.id", "this person was erased; there is nothing left to correct")
            raise Refused("The subject was erased.", problems=[problem])

    if approvals is None:
        approvals = api_key.approvals_needed if api_key else 1
    request = Request(
        id=request_id,
        ref=_new_ref(),
        kind=kind,
        status=_first_status(original, approvals),
        api_key_id=api_key.id if api_key else None,
        entered_by=entered_by,
        duplicate_of=original.id if original else None,
        subject_type=subject_type,
        subject_key_id=keys[0].key_id,
        subject_hmac=keys[0].hmac,
        subject_sealed=seal_subject(keyring, request_id, subject.subject_id, subject.refs),
        corrections_sealed=seal_corrections(keyring, corrections, context=request_id)
        if corrections
        else None,
        correction_fields=sorted(each.column for each in corrections) or None,
        datamap_hash=plan.data_map.hash,
        approvals_needed=approvals,
        received_at=now,
        due_at=due_date(now, zone),
        execute_at=None if approvals or original else dbtime.now(session),
        execute_attempts=0,
    )
    session.add(request)
    session.flush()
    add_identifiers(session, keyring, request_id, {SUBJECT_ID: subject.subject_id, **subject.identifiers})
    if reason:
        write_note(session, keyring, reason, author=actor, request_id=request_id)
    received = RequestReceived(
        kind=kind, approvals_needed=approvals, due_at=request.due_at, datamap_hash=plan.data_map.hash
    )
    append_one(session, received, actor=actor, request_id=request_id, subject=request.subject)
    if original:
        append_one(session, RequestRepeated(), actor=actor, request_id=original.id, subject=original.subject)
        append_one(session, RequestDuplicate(), request_id=request_id, subject=request.subject)
    if retry:
        target = Target(PolicyKind.RETRY, PolicyScope.REQUEST, str(request_id))
        put(session, target, retry, check=check_retry, actor=actor, subject=request.subject)
    return Intake(request, original)


def _first_status(original: Request | None, approvals: int) -> RequestStatus:
    if original is not None:
        return RequestStatus.RECEIVED
    return RequestStatus.REVIEW if approvals else RequestStatus.APPROVED


def _new_ref() -> str:
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    return f"ER-{letters[:4]}-{letters[4:]}"
