"""Claiming due entries, under a lease and a token.

A claim is an attempt. It sets the gate to the end of the lease and takes the next token; only whoever
holds that token can settle the entry. On PostgreSQL rows that another runner has locked are
skipped, not waited for; on SQLite writers are serial anyway. Leases are written and compared by the
database's clock: see dbtime.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    Select,
    String,
    bindparam,
    case,
    literal_column,
    null,
    select,
    union_all,
    update,
)
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import ReturningUpdate

from effaced.core.db.dbtime import NOW, from_now, moment
from effaced.core.db.pipeline import run_statement
from effaced.model import OutboxOperation, OutboxStatus
from effaced.outbox.entry import COLUMNS, Entry, as_entry
from effaced.outbox.flow import unpaused
from effaced.outbox.tables import outbox

# Statuses stand in these statements as literals: with bound values a generic plan can't use the partial
# indexes, and claiming would slow down with every finished entry.
PENDING, IN_FLIGHT, FAILED, SCHEDULED = (
    literal_column(f"'{status}'", outbox.c.status.type)
    for status in (
        OutboxStatus.PENDING,
        OutboxStatus.IN_FLIGHT,
        OutboxStatus.FAILED,
        OutboxStatus.SCHEDULED,
    )
)
FREE: ColumnElement[bool] = outbox.c.waits_for.is_(null())
FRESH: ColumnElement[bool] = (outbox.c.status == PENDING) & outbox.c.gate.is_(None) & FREE
GATED: ColumnElement[bool] = (
    outbox.c.status.in_([PENDING, FAILED, SCHEDULED]) & outbox.c.gate.is_not(None) & FREE
)
LEASED: ColumnElement[bool] = outbox.c.status == IN_FLIGHT


def claim(session: Session, resolver: str | Collection[str], *, limit: int, lease: timedelta) -> list[Entry]:
    """Claim up to `limit` due entries of one resolver, or of any of several, oldest first."""
    values = {"whose": resolver, "most": limit, **from_now(session, until=lease)}
    if isinstance(resolver, str):
        taken = run_statement(session, _CLAIM, values).rows
    else:
        taken = [tuple(row) for row in session.execute(_CLAIM_ANY, values | {"whose": list(resolver)})]
    entries = [as_entry(row) for row in taken]
    entries.sort(key=lambda entry: (entry.enqueued_at, entry.entry_id.int))
    return entries


def claim_crashed(session: Session, resolver: str, *, lease: timedelta) -> list[Entry]:
    """Claim one entry whose runner died, to be called with no other call beside it.

    If it was claimed with others before, nobody knows whose call killed the runner, so the attempt is
    given back. If it was alone, the crash is its own and counts.
    """
    taken = run_statement(session, _CLAIM_CRASHED, {"whose": resolver, **from_now(session, until=lease)}).rows
    return [as_entry(row) for row in taken]


def claim_trial(
    session: Session, resolver: str, operation: OutboxOperation, *, limit: int, lease: timedelta
) -> list[Entry]:
    """Claim entries to find out whether a system has recovered: those that have waited longest, first.

    One that has just failed is gated and makes way for others: if that entry alone is at fault, the system
    would never be found healthy.
    """
    mine = outbox.c.resolver == resolver, outbox.c.operation == operation
    due = select(outbox.c.entry_id)
    for branch in (
        due.where(*mine, FRESH).order_by(outbox.c.enqueued_at, outbox.c.entry_id),
        due.where(*mine, GATED, outbox.c.gate <= NOW).order_by(outbox.c.gate, outbox.c.entry_id),
    ):
        taking = _take(_first(branch, limit), alone=False)
        taken = [as_entry(row) for row in session.execute(taking, from_now(session, until=lease))]
        if taken:
            return taken
    return []


def claim_crashed_trial(
    session: Session, resolver: str, operation: OutboxOperation, *, lease: timedelta
) -> list[Entry]:
    """`claim_trial` for an entry whose runner died: as with `claim_crashed`, to be run by itself."""
    mine = _CRASHED.where(outbox.c.operation == operation).order_by(outbox.c.gate, outbox.c.entry_id)
    taking = _take(_first(mine, 1), alone=True)
    values = {"whose": resolver, **from_now(session, until=lease)}
    return [as_entry(row) for row in session.execute(taking, values)]


def has_expired_lease(session: Session, resolver: str, operation: OutboxOperation | None = None) -> bool:
    """Whether the lease of a call to this resolver has run out: its runner crashed."""
    values = {"whose": resolver, "operation": operation, **from_now(session)}
    return bool(run_statement(session, _OVERDUE if operation is None else _OVERDUE_OF, values).rows)


def keep_returned(session: Session, entries: Collection[Entry], *, lease: timedelta) -> None:
    """Renew the leases of calls that have returned, and record that they have.

    When such a lease runs out it is not counted as a crash, even if the process dies.
    """
    values = from_now(session, until=lease)
    for entry in entries:
        session.execute(
            update(outbox)
            .where(outbox.c.entry_id == entry.entry_id, LEASED, outbox.c.token == entry.token)
            .values(gate=_UNTIL, waiting_since=NOW, returned_at=NOW),
            values,
        )


def release(session: Session, entries: Collection[Entry]) -> None:
    """Release entries that were claimed but never called; the attempt is not counted."""
    for entry in entries:
        session.execute(
            update(outbox)
            .where(outbox.c.entry_id == entry.entry_id, LEASED, outbox.c.token == entry.token)
            .values(
                status=OutboxStatus.PENDING,
                gate=None,
                waiting_since=None,
                attempts=outbox.c.attempts - 1,
                claimed_alone=False,
            )
        )


# --- read-backs: their lease is `verify_due_at` while `verifying` is set ---


def claim_read_back(
    session: Session, resolver: str, *, lease: timedelta, crashed: bool = False
) -> Entry | None:
    """Claim one succeeded entry whose read-back is still to be made. Its status stays what it is.

    `crashed` claims one whose runner died over it, to be run with nothing else beside it: from then on
    its crashes count, and at the limit it is given up.
    """
    due = _due_read_backs(resolver, crashed=crashed).order_by(outbox.c.verify_due_at)
    own_crash = case((outbox.c.verifying & outbox.c.claimed_alone, 1), else_=0)
    taken = session.execute(
        update(outbox)
        .where(_first(due, 1), unpaused(outbox.c.resolver))
        .values(
            verify_due_at=_UNTIL,
            waiting_since=NOW,
            token=outbox.c.token + 1,
            crashes=outbox.c.crashes + own_crash,
            verifying=True,
            claimed_alone=crashed,
        )
        .returning(*COLUMNS),
        from_now(session, until=lease),
    ).first()
    return as_entry(taken) if taken else None


def has_expired_read_back(session: Session, resolver: str) -> bool:
    """Whether the lease of a read-back of this resolver has run out."""
    overdue = _due_read_backs(resolver, crashed=True)
    return session.execute(overdue.limit(1), from_now(session)).first() is not None


def release_read_back(session: Session, entry: Entry, *, wait: timedelta) -> None:
    """Release a read-back whose result is not known."""
    session.execute(
        update(outbox)
        .where(outbox.c.entry_id == entry.entry_id, outbox.c.verifying, outbox.c.token == entry.token)
        .values(verify_due_at=_UNTIL, waiting_since=NOW, verifying=False, claimed_alone=False),
        from_now(session, until=wait),
    )


def _due_read_backs(resolver: str, *, crashed: bool) -> Select[*tuple[Any, ...]]:
    return select(outbox.c.entry_id).where(
        outbox.c.resolver == resolver, outbox.c.verify_due_at <= NOW, outbox.c.verifying.is_(crashed)
    )


def _lockable(
    statement: Select[*tuple[Any, ...]], limit: int | BindParameter[int]
) -> Select[*tuple[Any, ...]]:
    return statement.limit(limit).with_for_update(skip_locked=True)


def _first(statement: Select[*tuple[Any, ...]], limit: int) -> ColumnElement[bool]:
    # Through a CTE, which is evaluated once: a plain subquery with SKIP LOCKED may be run again for every
    # row of a small table, and picks another row each time.
    picked = _lockable(statement, limit).cte("picked")
    return outbox.c.entry_id.in_(select(picked.c.entry_id))


def _due(mine: ColumnElement[bool]) -> ColumnElement[bool]:
    most = bindparam("most", type_=Integer())
    fresh = _lockable(select(outbox.c.entry_id, outbox.c.enqueued_at).where(mine, FRESH), most).order_by(
        outbox.c.enqueued_at, outbox.c.entry_id
    )
    gated = _lockable(
        select(outbox.c.entry_id, outbox.c.enqueued_at).where(mine, GATED, outbox.c.gate <= NOW), most
    ).order_by(outbox.c.gate, outbox.c.entry_id)
    both = union_all(select(fresh.cte("fresh")), select(gated.cte("gated"))).subquery()
    return outbox.c.entry_id.in_(
        select(both.c.entry_id).order_by(both.c.enqueued_at, both.c.entry_id).limit(most)
    )


def _take(
    which: ColumnElement[bool], *, alone: bool, resolver: ColumnElement[str] = outbox.c.resolver
) -> ReturningUpdate[*tuple[Any, ...]]:
    # With one `resolver` for all rows, whether it is paused is looked up once and not for each of them.
    # Only who died alone died of its own call. One that had returned did not die at all.
    died_alone = LEASED & outbox.c.claimed_alone.is_(True) & outbox.c.returned_at.is_(None)
    own_crash = case((died_alone, 1), else_=0)
    given_back = case((LEASED & ~died_alone, 1), else_=0)
    return (
        update(outbox)
        .where(which, unpaused(resolver))
        .values(
            status=IN_FLIGHT,
            attempts=outbox.c.attempts + 1 - given_back,
            crashes=outbox.c.crashes + own_crash,
            token=outbox.c.token + 1,
            claimed_alone=alone,
            returned_at=null(),
            gate=_UNTIL,
            waiting_since=NOW,
            last_attempt_at=NOW,
        )
        .returning(*COLUMNS)
    )


# Built once: putting such a statement together takes longer than the database takes to run it.
_UNTIL = moment("until")
_WHOSE = bindparam("whose", type_=String())
_MINE = outbox.c.resolver == _WHOSE
_ANY = outbox.c.resolver.in_(bindparam("whose", type_=String(), expanding=True))
_CRASHED = select(outbox.c.entry_id).where(_MINE, LEASED, outbox.c.gate <= NOW)
_OVERDUE = _CRASHED.limit(literal_column("1"))
_OVERDUE_OF = _OVERDUE.where(outbox.c.operation == bindparam("operation", type_=outbox.c.operation.type))
_CLAIM = _take(_due(_MINE), alone=False, resolver=_WHOSE)
_CLAIM_ANY = _take(_due(_ANY), alone=False)
_CLAIM_CRASHED = _take(
    _first(_CRASHED.order_by(outbox.c.gate, outbox.c.entry_id), 1), alone=True, resolver=_WHOSE
)
