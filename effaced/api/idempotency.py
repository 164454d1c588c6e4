"""`Idempotency-Key`: the same call twice has one effect and one answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask import request
from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.api.problems import KEY_REUSED, ApiProblem
from effaced.core import clock
from effaced.core.crypto import Keyring
from effaced.core.errors import Problem, Refused
from effaced.requests.tables import IdempotentAnswer

HEADER = "Idempotency-Key"
_VISIBLE = re.compile(r"[\x21-\x7e]{1,200}")
_PURPOSE = "idempotency"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the caller gets; `replayed` when it was given before."""

    status: int
    body: dict[str, Any]
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call that may come again: by whom, under which key, with which body."""

    api_key_id: UUID
    key: str
    body: str

    def earlier_answer(self, session: Session, keyring: Keyring) -> Answer | None:
        """What this call was answered before. Refuses a key that was used for another body."""
        # Under every key of the ring: a rotation must not make a repeated call a new one.
        keys = [each.hmac for each in keyring.fingerprints(self.key, purpose=_PURPOSE)]
        stored = session.scalars(
            select(IdempotentAnswer).where(
                IdempotentAnswer.api_key_id == self.api_key_id, IdempotentAnswer.key_hmac.in_(keys)
            )
        ).first()
        if stored is None:
            return None
        if stored.body_hmac not in [each.hmac for each in keyring.fingerprints(self.body, purpose=_PURPOSE)]:
            raise ApiProblem(
                KEY_REUSED,
                f"This {HEADER} was sent before with another body. A new request needs a key of its own.",
            )
        return Answer(stored.status_code, stored.answer, replayed=True)

    def remember(self, session: Session, keyring: Keyring, answer: Answer) -> None:
        """Keep the answer, in the transaction of what it tells of."""
        session.add(
            IdempotentAnswer(
                api_key_id=self.api_key_id,
                key_hmac=keyring.fingerprint(self.key, purpose=_PURPOSE).hmac,
                body_hmac=keyring.fingerprint(self.body, purpose=_PURPOSE).hmac,
                status_code=answer.status,
                answer=answer.body,
                created_at=clock.now(),
            )
        )


def key_of_call() -> str | None:
    """The header's value, if it was sent."""
    key = request.headers.get(HEADER)
    if key is not None and not _VISIBLE.fullmatch(key):
        said = "must have 1 to 200 visible ASCII characters"
        raise Refused(f"The header {HEADER} {said}.", problems=[Problem(HEADER, said)])
    return key
