"""Writing down what has to be told, in the caller's transaction: it is told exactly if it has happened.

Whom to tell is found out later, by whoever delivers. So writing needs no configuration, waits for nobody
and can't fail over a mail server.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.orm import Session

from effaced.core.db import dbtime
from effaced.core.db.sql import insert_rows
from effaced.model import new_id
from effaced.notify.notices import Notice
from effaced.notify.tables import Message


def announce(session: Session, notices: Iterable[Notice]) -> None:
    """Record these notices, to be delivered once this transaction has committed."""
    now = dbtime.now(session)
    rows = []
    for notice in notices:
        if not isinstance(notice, Notice):
            raise TypeError(f"{type(notice).__name__} is not a notice")
        rows.append(
            {
                "id": new_id(),
                "type": notice.type,
                "payload": notice.model_dump(mode="json", exclude_none=True, exclude={"request_id"}),
                "request_id": notice.request_id,
                "created_at": now,
            }
        )
    insert_rows(session, Message, rows)
