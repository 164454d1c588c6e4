"""Counting attempts in the database: a few grouped statements, however many attempts there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Integer, and_, case, distinct, false, func, literal_column, null, select
from sqlalchemy.orm import Session

from effaced.model import AttemptOutcome
from effaced.retries.figures import LATENCY_BOUNDS, WAIT_BOUNDS, Figures
from effaced.retries.overrides import ALL
from effaced.retries.tables import attempts

HOUR = timedelta(hours=1)


def known_resolvers(session: Session) -> list[str]:
    """The resolvers with attempts. Goes from name to name along the index: DISTINCT would read every row."""
    names: list[str] = []
    last: str | None = None
    while True:
        beyond = attempts.c.resolver > (last or "")
        last = session.scalar(select(func.min(attempts.c.resolver)).where(beyond))
        if last is None:
            return names
        names.append(last)


def hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)


def count_hour(session: Session, hour: datetime, resolvers: Sequence[str]) -> dict[str, Figures]:
    """The figures of attempts that began within that hour, by resolver; `*` is all of them."""
    # With the names, so that the index on resolver and time serves; there is none on time alone.
    within = and_(attempts.c.resolver.in_(resolvers), attempts.c.at >= hour, attempts.c.at < hour + HOUR)
    found = count(session, within)
    everything = Figures()
    if found:
        for name, entries, requests in session.execute(_DIFFERENT.where(within)):
            if name in found:  # another statement, so it may see somebody that the first one did not
                found[name].entries, found[name].requests = entries, requests
        for each in found.values():
            everything.merge(each)
        everything.requests = session.scalar(select(_REQUESTS).where(within)) or 0
    return {**found, ALL: everything}


def count(session: Session, which: ColumnElement[bool]) -> dict[str, Figures]:
    """Figures by resolver, without the numbers of different entries and requests."""
    found: dict[str, Figures] = defaultdict(Figures)
    for row in session.execute(_ALIKE.where(which)):
        name, outcome, number, first, looks, status, error, latency, wait, many, *sums = row
        latency_ms, wait_ms, last_id = sums
        figures = found[name]
        figures.attempts += many
        # An attempt that was given back has the number of the next one.
        figures.retries += many if not looks and (number > 1 or not first) else 0
        figures.outcomes[outcome.value] += many
        figures.last_id = max(figures.last_id, last_id)
        if outcome is AttemptOutcome.SUCCESS:
            # A read-back is a call of its own, but not one of the entry's numbered attempts.
            figures.success_by_attempt[number] += 0 if looks else many
        elif outcome is not AttemptOutcome.SCHEDULED:
            figures.failure_by_reason[reason(outcome, status, error)] += many
        if outcome is not AttemptOutcome.CIRCUIT_OPEN:
            figures.latency.add(latency, many, int(latency_ms))
        if wait is not None:
            figures.wait.add(wait, many, int(wait_ms))
    return dict(found)


def reason(outcome: AttemptOutcome, status: int | None, error: str | None) -> str:
    """Why an attempt failed, in one word: the status if there was an answer, else the error's class."""
    return f"http_{status}" if status is not None else error or outcome.value


def _bucket(value: ColumnElement[int], bounds: tuple[int, ...]) -> ColumnElement[int | None]:
    # Literals: a bound value would make the same expression another one in the grouping.
    number = [
        (value <= literal_column(str(bound)), literal_column(str(at), Integer))
        for at, bound in enumerate(bounds)
    ]
    beyond = (value.is_not(None), literal_column(str(len(bounds)), Integer))
    return case(*number, beyond, else_=null())


# Built once: putting them together takes longer than the database takes to count a quiet hour.
_WAIT = case((attempts.c.first, attempts.c.delay_before_ms), else_=null())
_LOOKS = func.coalesce(attempts.c.role == literal_column("'verify'"), false())
_KINDS: tuple[ColumnElement[Any], ...] = (
    attempts.c.resolver, attempts.c.outcome, attempts.c.number, attempts.c.first, _LOOKS,
    attempts.c.status_code, attempts.c.error, _bucket(attempts.c.latency_ms, LATENCY_BOUNDS),
    _bucket(_WAIT, WAIT_BOUNDS),
)  # fmt: skip
_ALIKE = select(
    *_KINDS,
    func.count(),
    func.sum(attempts.c.latency_ms),
    func.sum(_WAIT),
    func.max(attempts.c.id),
).group_by(*_KINDS)
_REQUESTS = func.count(distinct(attempts.c.request_id))
_DIFFERENT = select(attempts.c.resolver, func.count(distinct(attempts.c.entry_id)), _REQUESTS).group_by(
    attempts.c.resolver
)
