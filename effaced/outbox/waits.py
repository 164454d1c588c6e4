"""The waits of the outbox after the clock was set back: retries, leases and read-backs."""

from __future__ import annotations

from sqlalchemy import null
from sqlalchemy.orm import Session

from effaced.core.db.waits import restart
from effaced.outbox.claim import IN_FLIGHT, LEASED
from effaced.outbox.tables import outbox

# As in the partial index. Those in flight are few and have an index of their own.
_WAITING = outbox.c.waiting_since.is_not(null()) & (outbox.c.status != IN_FLIGHT)


def restart_waits(session: Session) -> int:
    """Restart waits that began in the future, with the length they had. Returns how many."""
    ends = (outbox.c.gate, outbox.c.verify_due_at)
    return sum(restart(session, outbox.c.waiting_since, ends, which) for which in (_WAITING, LEASED))
