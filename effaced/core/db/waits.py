"""Waits that keep their length when somebody sets the clock back.

A wait is stored as two moments: when it began and when it ends. If it began in the future, the clock was set
back meanwhile, and the wait would take that much longer. So it is begun anew, once, and takes as long as it
was meant to. A date that somebody else has named, such as a vendor's horizon, has no beginning and stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Column, ColumnElement, select, update
from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.core.log import get_logger

_log = get_logger(__name__)
# Less is not worth a write.
_NOTICED = timedelta(seconds=1)
_BATCH = 1_000
_AT_MOST = dbtime.moment("at_most")


def restart(
    session: Session, began: Column[Any], ends: Sequence[Column[Any]], which: ColumnElement[bool]
) -> int:
    """Restart a batch of the waits that began in the future. Returns how many.

    Where there are many rows, `which` is the condition of a partial index on `began`: then a look is cheap.
    """
    table = began.table
    (key,) = table.primary_key
    found = select(key, began, *ends).where(which, began > _AT_MOST).limit(_BATCH)
    values = dbtime.from_now(session, at_most=_NOTICED)
    rows = session.execute(found.with_for_update(skip_locked=True), values).all()
    now = dbtime.now(session)
    for row in rows:
        set_back = row._mapping[began] - now
        moved = {each.name: row._mapping[each] - set_back for each in ends if row._mapping[each] is not None}
        session.execute(
            update(table).where(key == row._mapping[key]).values({began.name: now, **moved}),
        )
    if rows:
        _log.warning("clock_set_back", table=table.name, waits_restarted=len(rows))
    return len(rows)
