"""Where events go. The trail in the same database is the default, and what makes outcome and event one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from sqlalchemy.orm import Session

from effaced.audit.append import Record, append


@runtime_checkable
class AuditSink(Protocol):
    """Takes events in the transaction of what they tell of: what it raises undoes that, too."""

    def append(self, session: Session, records: Sequence[Record]) -> None: ...


class DatabaseAuditSink:
    """The trail of effaced, in the session's own database."""

    def append(self, session: Session, records: Sequence[Record]) -> None:
        append(session, records)
