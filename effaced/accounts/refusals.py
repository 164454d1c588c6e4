"""Refused sign-ins in the trail, summed up.

The trail can't be shortened, so whoever is refused must not be able to lengthen it at will. Per window
there is an event for the first refusal of an officer's account, for the 10th, the 100th and so on, and one
with the final count when the window is over. All accounts that don't exist are counted as one.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from effaced.accounts.tables import SignInRefusals
from effaced.accounts.throttle import WINDOW
from effaced.audit.append import append_one
from effaced.audit.events import SignInRefused
from effaced.core import clock
from effaced.core.db.sql import insert_missing

_UNKNOWN = "unknown"


def record_refusal(session: Session, officer_id: UUID | None, why: str) -> None:
    """Count a refusal; the first one of a window, and every tenfold, becomes an event."""
    account, now = str(officer_id or _UNKNOWN), clock.now()
    new = {"account": account, "officer_id": officer_id, "why": why, "began_at": now}
    insert_missing(session, SignInRefusals, [{**new, "count": 0, "reported": 0}])
    row = session.get_one(SignInRefusals, account, with_for_update=True, populate_existing=True)
    if row.began_at <= now - WINDOW:
        _report_rest(session, row)
        row.began_at, row.count, row.reported = now, 0, 0
    row.count += 1
    row.why = why
    if _is_power_of_ten(row.count):
        _report(session, row)


def close_refusals(session: Session) -> None:
    """Record the final counts of windows that are over in the trail, and delete their rows."""
    over = SignInRefusals.began_at <= clock.now() - WINDOW
    for row in session.scalars(select(SignInRefusals).where(over).with_for_update(skip_locked=True)):
        _report_rest(session, row)
        session.delete(row)


def _report_rest(session: Session, row: SignInRefusals) -> None:
    if row.count > row.reported:
        _report(session, row)


def _report(session: Session, row: SignInRefusals) -> None:
    since = row.began_at if row.count > 1 else None
    event = SignInRefused(officer_id=row.officer_id, why=row.why, count=row.count, since=since)
    append_one(session, event)
    row.reported = row.count


def _is_power_of_ten(number: int) -> bool:
    return str(number).strip("0") == "1"
