"""How long a letter may stay open before somebody must be asked why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, or_

from effaced.deadletters.rules import OPEN
from effaced.deadletters.tables import DeadLetter
from effaced.model import DeadLetterDomain

Sla = Mapping[str, timedelta]
DEFAULT = timedelta(hours=24)
# Nothing of a request happens before its local execution, so that one is asked for sooner.
THRESHOLDS: Sla = {
    DeadLetterDomain.EXTERNAL_CALL: DEFAULT,
    DeadLetterDomain.VERIFICATION: DEFAULT,
    DeadLetterDomain.LOCAL_EXECUTION: timedelta(hours=4),
    DeadLetterDomain.ATTESTATION: timedelta(hours=72),
    DeadLetterDomain.MESSAGE: DEFAULT,
}


def thresholds(hours: Mapping[DeadLetterDomain, float] | None) -> Sla:
    """What the settings make of it: those they name, and for the others the usual."""
    return {**THRESHOLDS, **{domain: timedelta(hours=each) for domain, each in (hours or {}).items()}}


def breached(now: datetime, thresholds: Sla) -> ColumnElement[bool]:
    """The condition for open letters that have waited as long as their domain allows, or longer."""
    late = [
        and_(DeadLetter.domain == domain, DeadLetter.created_at <= now - thresholds.get(domain, DEFAULT))
        for domain in DeadLetterDomain
    ]
    return DeadLetter.status.in_(OPEN) & or_(*late)


def late_at(domain: str, created_at: datetime, thresholds: Sla) -> datetime:
    """From when on one letter is late, if it is open then."""
    return created_at + thresholds.get(domain, DEFAULT)
