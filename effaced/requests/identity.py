"""Checking that the row under a person's key still belongs to the person who sent the request.

Databases reuse keys: SQLite gives the id of a deleted row to the next one. So the key alone does not make
a row the person's; at least one identifier or reference besides the key has to agree with what was
recorded when the request came in, or an officer has to confirm the row.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Uuid, bindparam, select
from sqlalchemy.orm import Session

from effaced.core.crypto import Keyring
from effaced.core.errors import Conflict
from effaced.datamap.plan.erasure import ErasurePlan
from effaced.datamap.run.subject import Subject
from effaced.model import SubjectKey
from effaced.requests.identifiers import SUBJECT_ID, is_placeholder, normalise
from effaced.requests.subject import unseal_subject
from effaced.requests.tables import Identifier, Request

# Of a confirmed row, with the request's id behind it. No data map can declare a kind with a colon.
_CONFIRMED = "confirmed"

recorded_query = select(Identifier.kind, Identifier.hmac).where(
    Identifier.request_id == bindparam("request_id", type_=Uuid())
)


V = TypeVar("V")


class SubjectChanged(Conflict):
    """The row under the person's key agrees in nothing with what was recorded at intake."""

    def __init__(self) -> None:
        super().__init__(
            "The row under the person's key has none of the identifiers that were recorded when the request"
            " came in. An officer has to confirm that it is the same person, or cancel the request."
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a request knew of its person: keyed hashes of identifiers by kind, and references."""

    request_id: UUID
    hmacs: Mapping[str, frozenset[str]] = field(repr=False)
    refs: Mapping[str, str] = field(repr=False)


def recorded_from(request_id: UUID, rows: Iterable[Sequence[Any]], refs: Mapping[str, str]) -> Recorded:
    """From rows of `recorded_query` and the request's sealed references."""
    hmacs: dict[str, set[str]] = defaultdict(set)
    for kind, hmac in rows:
        if kind != SUBJECT_ID and not kind.startswith(f"{_CONFIRMED}:"):
            hmacs[kind].add(hmac)
    return Recorded(request_id, {kind: frozenset(found) for kind, found in hmacs.items()}, refs)


def read_recorded(session: Session, request_id: UUID, refs: Mapping[str, str]) -> Recorded:
    rows = session.execute(recorded_query, {"request_id": request_id})
    return recorded_from(request_id, [tuple(row) for row in rows], refs)


def require_same_person(
    session: Session, keyring: Keyring, plan: ErasurePlan, recorded: Recorded, subject: Subject | None
) -> None:
    """SubjectChanged if the row is somebody else's. A row that is gone is nobody else's."""
    if subject is not None and not is_same_person(session, keyring, plan, recorded, subject):
        raise SubjectChanged


def is_same_person(
    session: Session, keyring: Keyring, plan: ErasurePlan, recorded: Recorded, subject: Subject
) -> bool:
    """Whether anything besides the key agrees, or the row was confirmed as it is now.

    Where neither side has anything besides the key, the key is all there is to go by.
    """
    return _has_something_in_common(keyring, plan, recorded, subject) or _is_confirmed(
        session, keyring, recorded.request_id, subject
    )


def _has_something_in_common(
    keyring: Keyring, plan: ErasurePlan, recorded: Recorded, subject: Subject
) -> bool:
    identifiers, refs = _without_key_columns(plan, subject.identifiers, subject.refs)
    known_hmacs, known_refs = _without_key_columns(plan, recorded.hmacs, recorded.refs)
    if not (identifiers or refs or known_hmacs or known_refs):
        return True
    return any(
        refs[kind] == value and not is_placeholder(value)
        for kind, value in known_refs.items()
        if kind in refs
    ) or any(
        known_hmacs[kind] & _hmacs(keyring, f"identifier:{kind}", normalise(kind, value))
        for kind, value in identifiers.items()
        if kind in known_hmacs and not is_placeholder(value)
    )


def confirm_row(session: Session, keyring: Keyring, request_id: UUID, subject: Subject, *, by: UUID) -> None:
    """Record that this row, as it is now, is the person's who sent the request.

    The record belongs to the request `by`, which the caller has locked: the one that is confirmed, or the
    correction that has just been made. Written under the other one, its foreign key would wait for whoever
    is about to execute that one, who waits for us.
    """
    key = keyring.fingerprint(_row_as_text(subject), purpose=_CONFIRMED)
    kind = f"{_CONFIRMED}:{request_id}"
    session.merge(Identifier(request_id=by, kind=kind, key_id=key.key_id, hmac=key.hmac))


def _is_confirmed(session: Session, keyring: Keyring, request_id: UUID, subject: Subject) -> bool:
    return bool(_confirmed_by(session, keyring, request_id, subject))


def is_as_corrected(session: Session, keyring: Keyring, request_id: UUID, subject: Subject) -> bool:
    """Whether the row is as a correction of ours has left it since the request came in."""
    return bool(_confirmed_by(session, keyring, request_id, subject) - {request_id})


def _confirmed_by(session: Session, keyring: Keyring, request_id: UUID, subject: Subject) -> set[UUID]:
    """Ids of the requests that recorded this row, unchanged since, as the person of `request_id`."""
    found = select(Identifier.request_id).where(
        Identifier.hmac.in_(_hmacs(keyring, _CONFIRMED, _row_as_text(subject))),
        Identifier.kind == f"{_CONFIRMED}:{request_id}",
    )
    return set(session.scalars(found))


def other_requests_of(
    session: Session, keyring: Keyring, plan: ErasurePlan, keys: Sequence[SubjectKey], subject: Subject
) -> list[UUID]:
    """The requests that are still to be executed and that this row, as it is now, belongs to."""
    waiting = session.scalars(
        select(Request).where(
            Request.subject_hmac.in_([each.hmac for each in keys]),
            Request.closed_at.is_(None),
            Request.executed_at.is_(None),
        )
    )
    sealed = [(request.id, unseal_subject(keyring, request)) for request in waiting]
    recorded = {each: read_recorded(session, each, known.refs) for each, known in sealed if known}
    return [
        each for each, known in recorded.items() if is_same_person(session, keyring, plan, known, subject)
    ]


def _without_key_columns(
    plan: ErasurePlan, identifiers: Mapping[str, V], refs: Mapping[str, str]
) -> tuple[dict[str, V], dict[str, str]]:
    """Identifiers and references without those that only repeat the key."""
    key = set(plan.data_map.key)
    repeats = {rule.kind for rule in plan.data_map.identifiers if rule.column in key}
    made_of_it = {rule.kind for rule in plan.data_map.refs if set(rule.columns) <= key}
    return (
        {kind: value for kind, value in identifiers.items() if kind not in repeats},
        {kind: value for kind, value in refs.items() if kind not in made_of_it},
    )


def _hmacs(keyring: Keyring, purpose: str, value: str) -> frozenset[str]:
    """Under every key of the ring, so that a person is found again after a key rotation."""
    return frozenset(each.hmac for each in keyring.fingerprints(value, purpose=purpose))


def _row_as_text(subject: Subject) -> str:
    return json.dumps([sorted(subject.identifiers.items()), sorted(subject.refs.items())])
