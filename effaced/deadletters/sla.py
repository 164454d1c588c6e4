"""How long a letter may stay open before somebody must be asked why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, or_

from effaced.deadletters.rules import OPEN
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain

DEFAULT = timedelta(hours=24)
# Nothing of a request happens before its local execution, so that one is asked for sooner.
THRESHOLDS: Mapping[str, timedelta] = {
    DeadLetterDomain.EXTERNAL_CALL: DEFAULT,
    DeadLetterDomain.VERIFICATION: DEFAULT,
    DeadLetterDomain.LOCAL_EXECUTION: timedelta(hours=4),
    DeadLetterDomain.ATTESTATION: timedelta(hours=72),
    DeadLetterDomain.MESSAGE: DEFAULT,
}


def breached(now: datetime, thresholds: Mapping[str, timedelta] = THRESHOLDS) -> ColumnElement[bool]:
    """The condition for open letters that have waited as long as their domain allows, or longer."""
    late = [
        and_(DeadLetter.domain == domain, DeadLetter.created_at <= now - thresholds.get(domain, DEFAULT))
        for domain in DeadLetterDomain
    ]
    return DeadLetter.status.in_(OPEN) & or_(*late)


def is_breached(
    domain: str, created_at: datetime, now: datetime, thresholds: Mapping[str, timedelta]
) -> bool:
    """The same of one letter that is open."""
    return created_at <= now - thresholds.get(domain, DEFAULT)
