"""`Idempotency-Key`: the same call twice has one effect and one answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from uuid import UUID

from flask import request
from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.api.models import Body
from effaced.api.operations.problems import KEY_REUSED, ApiProblem
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.errors import Problem, Refused
from effaced.requests.tables import IdempotentAnswer

HEADER = "Idempotency-Key"
_VISIBLE = re.compile(r"[\x21-\x7e]{1,200}")
_PURPOSE = "idempotency"


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What was answered, as it is kept."""

    status: int
    body: dict[str, Any] | None
    """None where the answer has no content."""
    headers: Mapping[str, str] = field(default_factory=dict)
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class RepeatableCall:
    """A call that may come again: by whom, under which key, and what was asked for."""

    api_key_id: UUID
    key: str
    content: str = field(repr=False)

    def earlier_answer(self, session: Session, keyring: Keyring) -> StoredAnswer | None:
        """What this call was answered before. Refuses a key that was used for another call."""
        # Under every key of the ring: a rotation must not make a repeated call a new one.
        keys = [each.hmac for each in keyring.fingerprints(self.key, purpose=_PURPOSE)]
        stored = session.scalars(
            select(IdempotentAnswer).where(
                IdempotentAnswer.api_key_id == self.api_key_id, IdempotentAnswer.key_hmac.in_(keys)
            )
        ).first()
        if stored is None:
            return None
        known = [each.hmac for each in keyring.fingerprints(self.content, purpose=_PURPOSE)]
        if stored.body_hmac not in known:
            raise ApiProblem(
                KEY_REUSED,
                f"This {HEADER} was sent with another call or body before. A new call needs its own key.",
            )
        body = None if stored.status_code == HTTPStatus.NO_CONTENT else stored.answer
        return StoredAnswer(stored.status_code, body, stored.headers or {}, replayed=True)

    def remember(self, session: Session, keyring: Keyring, answer: StoredAnswer) -> None:
        """Keep the answer, in the transaction of what it tells of."""
        session.add(
            IdempotentAnswer(
                api_key_id=self.api_key_id,
                key_hmac=keyring.fingerprint(self.key, purpose=_PURPOSE).hmac,
                body_hmac=keyring.fingerprint(self.content, purpose=_PURPOSE).hmac,
                status_code=answer.status,
                answer=answer.body or {},
                headers=dict(answer.headers) or None,
                created_at=clock.now(),
            )
        )


def repeatable_call(api_key_id: UUID, body: Body | None) -> RepeatableCall | None:
    """The call, if it names an Idempotency-Key."""
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not _VISIBLE.fullmatch(key):
        said = "must have 1 to 200 visible ASCII characters"
        problem = Problem(HEADER, said, code="malformed")
        raise Refused(f"The header {HEADER} {said}.", problems=[problem])
    # As it was understood: the order of names and the space between them mean nothing.
    sent = None if body is None else body.model_dump(mode="json", exclude_unset=True)
    content = [request.path, sorted(request.args.items(multi=True)), sent]
    return RepeatableCall(api_key_id, key, json.dumps(content, sort_keys=True))
