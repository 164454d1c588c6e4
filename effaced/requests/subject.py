"""The person a request is about, sealed for as long as the request is open."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from effaced.core.crypto import Keyring
from effaced.core.errors import Unavailable
from effaced.model import Correction, SubjectRef
from effaced.outbox.entry import unseal_corrections
from effaced.requests.tables import Request


@dataclass(frozen=True, slots=True)
class SealedSubject:
    """What was known of the person when the request came in."""

    subject_id: str = field(repr=False)
    refs: Mapping[str, str] = field(repr=False)
    called: frozenset[SubjectRef] | None = field(default=None, repr=False)
    """The references that other systems are called with; None until the erasure is executed."""


def seal_subject(
    keyring: Keyring,
    request_id: UUID,
    subject_id: str,
    refs: Mapping[str, str],
    called: Iterable[SubjectRef] | None = None,
) -> bytes:
    content: dict[str, object] = {"id": subject_id, "refs": dict(refs)}
    if called is not None:
        content["called"] = sorted({(each.kind, each.value) for each in called})
    return keyring.seal(json.dumps(content).encode(), purpose="subject", context=str(request_id))


def unseal_subject(keyring: Keyring, request: Request) -> SealedSubject | None:
    """The person, or None once the request is closed."""
    if request.subject_sealed is None:
        return None
    return open_sealed(keyring, request.subject_sealed, request.id)


def open_sealed(keyring: Keyring, sealed: bytes, context: UUID) -> SealedSubject:
    """Open what `seal_subject` sealed for the row of that id."""
    content = json.loads(keyring.open(sealed, purpose="subject", context=str(context)))
    called = content.get("called")
    refs = None if called is None else frozenset(SubjectRef(kind, value) for kind, value in called)
    return SealedSubject(content["id"], content["refs"], refs)


def open_corrections(keyring: Keyring, request: Request) -> tuple[Correction, ...]:
    """The values to correct. They are deleted when the request has been executed."""
    if request.corrections_sealed is None:
        raise Unavailable("The request no longer has its corrections.")
    return unseal_corrections(keyring, request.corrections_sealed, context=request.id)


def open_subject(keyring: Keyring, request: Request) -> str | None:
    """The person's key in the company's database, or None once the request is closed."""
    sealed = unseal_subject(keyring, request)
    return sealed.subject_id if sealed else None
