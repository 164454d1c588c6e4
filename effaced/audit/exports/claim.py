"""Claiming an export under a lease and a token, and everything that counts under that token only.

A claim is an attempt. An export whose maker was killed is made anew when the lease ends: its events have to
come from one snapshot, and that is gone with the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from sqlalchemy import CursorResult, Table, select, update
from sqlalchemy.orm import Session

from effaced.audit.exports.read import FILE_KEPT
from effaced.audit.tables import AuditExport
from effaced.core.db import dbtime
from effaced.core.db.waits import restart
from effaced.model import ExportFormat, ExportStatus

LEASE = timedelta(minutes=5)
"""Renewed with every chunk; so it has to last as long as the slowest query between two of them."""
MOST_ATTEMPTS = 5
_BACKOFF = timedelta(minutes=1)
_OPEN = AuditExport.status.in_((ExportStatus.PENDING, ExportStatus.RUNNING))
_GATE = dbtime.moment("new_gate")


@dataclass(frozen=True, slots=True)
class Claimed:
    """An export that is ours until the lease ends, and what was asked for."""

    id: UUID
    token: int
    attempts: int
    api_key_id: UUID
    own_request_only: bool
    format: ExportFormat
    request_id: UUID | None
    type: str | None
    actor: str | None
    since: datetime | None
    until: datetime | None

    @property
    def actor_of_export(self) -> str:
        """Whom the trail names."""
        return f"api_key:{self.api_key_id}"


class LostClaim(Exception):
    """The lease ended and somebody else claimed the export, or it was deleted."""


def claim(session: Session) -> Claimed | None:
    """Claim the export that has been due for longest."""
    due = select(AuditExport.id).where(_OPEN, AuditExport.gate <= dbtime.NOW)
    due = due.order_by(AuditExport.gate, AuditExport.id).limit(1)
    # Through a CTE, which is evaluated once: a plain subquery with SKIP LOCKED may be run for every row.
    picked = due.with_for_update(skip_locked=True).cte("picked")
    taken = session.execute(
        update(AuditExport)
        .where(AuditExport.id.in_(select(picked.c.id)))
        .execution_options(synchronize_session=False)
        .values(
            status=ExportStatus.RUNNING,
            attempts=AuditExport.attempts + 1,
            token=AuditExport.token + 1,
            gate=_GATE,
            waiting_since=dbtime.NOW,
            total=None,
            events=0,
            size=0,
            chunks=0,
        )
        .returning(AuditExport),
        dbtime.from_now(session, new_gate=LEASE),
    ).scalar_one_or_none()
    if taken is None:
        return None
    return Claimed(**{name: getattr(taken, name) for name in Claimed.__dataclass_fields__})


def record_progress(session: Session, claimed: Claimed, **progress: int) -> None:
    """Write how far it is, and renew the lease."""
    _write(session, claimed, LEASE, waiting_since=dbtime.NOW, **progress)


def record_ready(session: Session, claimed: Claimed, sha256: str, **progress: int) -> None:
    now = dbtime.now(session)
    ready = {"status": ExportStatus.READY, "ready_at": now, "expires_at": now + FILE_KEPT}
    _write(session, claimed, timedelta(0), waiting_since=None, sha256=sha256, **ready, **progress)


def record_failure(session: Session, claimed: Claimed, error: str) -> None:
    """Try again after a while, or give up. `error` is a class name or a code."""
    last = claimed.attempts >= MOST_ATTEMPTS
    _write(
        session,
        claimed,
        _BACKOFF * claimed.attempts,
        status=ExportStatus.FAILED if last else ExportStatus.PENDING,
        waiting_since=None if last else dbtime.NOW,
        last_error=error,
    )


def release(session: Session, claimed: Claimed) -> None:
    """Leave it to others, at once: this process was told to stop, which is no attempt."""
    attempts = claimed.attempts - 1
    _write(
        session,
        claimed,
        timedelta(0),
        status=ExportStatus.PENDING,
        attempts=attempts,
        waiting_since=None,
    )


def is_due(session: Session) -> bool:
    due = select(AuditExport.id).where(_OPEN, AuditExport.gate <= dbtime.now(session)).limit(1)
    return session.execute(due).first() is not None


def restart_waits(session: Session) -> int:
    """Restart waits that began in the future, with the length they had. Returns how many."""
    table = cast(Table, AuditExport.__table__)
    waiting = _OPEN & table.c.waiting_since.is_not(None)
    return restart(session, table.c.waiting_since, (table.c.gate,), waiting)


def _write(session: Session, claimed: Claimed, gate: timedelta, **values: Any) -> None:
    """Change the export, if it is still ours: else LostClaim, and nothing is written."""
    written = cast(
        CursorResult[Any],
        session.execute(
            update(AuditExport)
            .where(
                AuditExport.id == claimed.id,
                AuditExport.token == claimed.token,
                AuditExport.status == ExportStatus.RUNNING,
            )
            .values(gate=_GATE, **values)
            .execution_options(synchronize_session=False),
            dbtime.from_now(session, new_gate=gate),
        ),
    )
    if written.rowcount != 1:
        raise LostClaim
