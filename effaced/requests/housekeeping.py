"""Deleting what is no longer needed: stored answers, what was tried out, and policies of closed requests."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from effaced.core import clock
from effaced.model import PolicyScope
from effaced.requests.tables import IdempotentAnswer, Request, SandboxRequest
from effaced.retries.tables import PolicyOverride

ANSWERS_KEPT = timedelta(days=30)
SANDBOX_KEPT = timedelta(days=30)
_BATCH = 1_000


def delete_old_answers(session: Session) -> int:
    """Delete stored answers to Idempotency-Keys after 30 days. Returns how many."""
    gone = session.execute(
        delete(IdempotentAnswer)
        .where(IdempotentAnswer.created_at < clock.now() - ANSWERS_KEPT)
        .returning(IdempotentAnswer.key_hmac)
    )
    return len(gone.all())


def delete_old_sandbox_requests(session: Session) -> int:
    """Delete what sandbox keys have tried out, after 30 days. Returns how many."""
    old = SandboxRequest.created_at < clock.now() - SANDBOX_KEPT
    return len(session.execute(delete(SandboxRequest).where(old).returning(SandboxRequest.id)).all())


def delete_policies_of_closed_requests(session: Session) -> int:
    """Delete the policy overrides of single requests that have ended. Returns how many."""
    mine = PolicyOverride.scope == PolicyScope.REQUEST
    gone, last = 0, ""
    while True:
        query = select(PolicyOverride.key).where(mine, PolicyOverride.key > last).distinct()
        keys = list(session.scalars(query.order_by(PolicyOverride.key).limit(_BATCH)))
        if not keys:
            return gone
        last = keys[-1]
        open_ = select(Request.id).where(
            Request.id.in_([UUID(key) for key in keys]), Request.closed_at.is_(None)
        )
        ended = set(keys) - {str(each) for each in session.scalars(open_)}
        removed = delete(PolicyOverride).where(mine, PolicyOverride.key.in_(ended))
        gone += len(session.execute(removed.returning(PolicyOverride.key)).all())
