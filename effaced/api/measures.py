"""What Prometheus is told. A measure is a function that looks into the database; add yours to MEASURES."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from effaced.breakers.admission import effective_state
from effaced.breakers.model import BreakerState, CircuitBreakerStateData, StoreUnavailable
from effaced.breakers.stores.base import new_row
from effaced.breakers.telemetry import names_of_all, summary
from effaced.core import clock
from effaced.deadletters.rules import OPEN
from effaced.deadletters.tables import DeadLetter
from effaced.model import AttemptOutcome, DeadLetterDomain, OutboxStatus
from effaced.outbox.due import counts_by_resolver, oldest_due
from effaced.outbox.flow import pauses
from effaced.requests.read import Due, OpenState, RequestFilter, count_requests
from effaced.retries.figures import Figures, Histogram
from effaced.retries.totals import read_totals
from effaced.runtime import Runtime

Measure = Callable[[Session, Runtime], Iterator[Metric]]
# Without those that succeeded: counting all that ever did would take longer every month.
_COUNTED = tuple(status for status in OutboxStatus if status is not OutboxStatus.SUCCEEDED)


def entries(session: Session, runtime: Runtime) -> Iterator[Metric]:
    counts = counts_by_resolver(session, _COUNTED)
    gauge = GaugeMetricFamily(
        "effaced_entries",
        "External calls by where they stand now. Those that succeeded are attempts with outcome success.",
        labels=["resolver", "status"],
    )
    for name in sorted(_names(runtime) | {name for name, _ in counts}):
        for status in _COUNTED:
            gauge.add_metric([name, status.value], counts.get((name, status), 0))
    yield gauge


def oldest(session: Session, runtime: Runtime) -> Iterator[Metric]:
    now, found = clock.now(), oldest_due(session)
    gauge = GaugeMetricFamily(
        "effaced_oldest_due_entry_seconds",
        "For how long the longest waiting external call could have been made; 0 if none is due.",
        labels=["resolver"],
    )
    for name in sorted(_names(runtime) | found.keys()):
        gauge.add_metric([name], max(0.0, (now - found[name]).total_seconds()) if name in found else 0.0)
    yield gauge


def paused(session: Session, runtime: Runtime) -> Iterator[Metric]:
    held = pauses(session)
    gauge = GaugeMetricFamily(
        "effaced_resolver_paused", "1 while nothing of a resolver is called; * is all.", labels=["resolver"]
    )
    for name in sorted(_names(runtime) | held.keys() | {"*"}):
        gauge.add_metric([name], float(name in held))
    yield gauge


def breakers(_session: Session, runtime: Runtime) -> Iterator[Metric]:
    """As calls meet them: a pin's state, open while a cooldown holds."""
    gauge = GaugeMetricFamily(
        "effaced_breaker_state",
        "1 for the state that a breaker is in; open while a cooldown holds.",
        labels=["breaker", "state"],
    )
    cooldown = GaugeMetricFamily(
        "effaced_breaker_cooldown_seconds",
        "For how long a vendor still asks not to be called; 0 if it does not.",
        labels=["breaker"],
    )
    away = GaugeMetricFamily(
        "effaced_breaker_store_away",
        "1 while the breaker store does not answer.",
    )
    try:
        stored = {each.service_name: each for each in runtime.breakers.store.load_all()}
        now = runtime.breakers.store.now()
    except StoreUnavailable:
        away.add_metric([], 1.0)
        yield away
        return
    away.add_metric([], float(runtime.breakers.store.is_away))
    for name in sorted(set(names_of_all(runtime.called)) | stored.keys()):
        row = stored.get(name) or new_row(name)
        current = BreakerState.OPEN if _holds_calls(row, now) else effective_state(row, now)
        for state in BreakerState:
            gauge.add_metric([name, state.value], float(state is current))
        left = row.cooldown_until - now if row.cooldown_until else timedelta(0)
        cooldown.add_metric([name], max(0.0, left.total_seconds()))
    yield from (gauge, cooldown, away)


def _holds_calls(row: CircuitBreakerStateData, now: datetime) -> bool:
    return row.is_cooling(now) and not row.is_pinned(now)


def breaker_summary(session: Session, runtime: Runtime) -> Iterator[Metric]:
    """Figures of the last day, as `effaced breaker summary` has them."""
    opens = GaugeMetricFamily(
        "effaced_breaker_opens_last_day", "Openings and Retry-After holds.", labels=["breaker", "reason"]
    )
    held = GaugeMetricFamily(
        "effaced_breaker_held_back_seconds_last_day",
        "For how long no call was let through.",
        labels=["breaker"],
    )
    saved = GaugeMetricFamily(
        "effaced_breaker_time_saved_seconds_last_day", "An estimate.", labels=["breaker"]
    )
    for each in summary(session, runtime.called):
        for reason, count in each.reasons.items():
            opens.add_metric([each.breaker, reason], count)
        held.add_metric([each.breaker], each.held_back_s)
        saved.add_metric([each.breaker], each.time_saved_ms_estimate / 1000)
    yield from (opens, held, saved)


def letters(session: Session, _runtime: Runtime) -> Iterator[Metric]:
    query = (
        select(DeadLetter.domain, func.count()).where(DeadLetter.status.in_(OPEN)).group_by(DeadLetter.domain)
    )
    counts = dict(session.execute(query).all())
    gauge = GaugeMetricFamily(
        "effaced_dead_letters_open", "Dead letters that wait for a person.", labels=["domain"]
    )
    for domain in DeadLetterDomain:
        gauge.add_metric([domain.value], counts.get(domain, 0))
    yield gauge


def overdue(session: Session, _runtime: Runtime) -> Iterator[Metric]:
    count = count_requests(session, RequestFilter(due=Due.OVERDUE), clock.now())
    said = "Open requests past their legal deadline; 10,001 stands for more than 10,000."
    yield GaugeMetricFamily("effaced_requests_overdue", said, value=count)


def not_verified(session: Session, _runtime: Runtime) -> Iterator[Metric]:
    count = count_requests(session, RequestFilter(status=OpenState.NOT_VERIFIED), clock.now())
    said = "Open requests whose calls have all succeeded but are not all verified; at most 10,001."
    yield GaugeMetricFamily("effaced_requests_not_verified", said, value=count)


def attempts(session: Session, runtime: Runtime) -> Iterator[Metric]:
    found = read_totals(session)
    tries = CounterMetricFamily(
        "effaced_attempts", "Attempts at external calls.", labels=["resolver", "outcome"]
    )
    again = CounterMetricFamily("effaced_retries", "Attempts after the first one.", labels=["resolver"])
    latency = HistogramMetricFamily(
        "effaced_call_latency_seconds", "How long external calls took.", labels=["resolver"]
    )
    wait = HistogramMetricFamily(
        "effaced_drain_latency_seconds",
        "From when an external call could be made (its commit, most often) to its first attempt.",
        labels=["resolver"],
    )
    for name in sorted(_names(runtime) | found.keys()):
        figures = found.get(name, Figures())
        for outcome in AttemptOutcome:
            tries.add_metric([name, outcome.value], figures.outcomes[outcome.value])
        again.add_metric([name], figures.retries)
        for family, histogram in ((latency, figures.latency), (wait, figures.wait)):
            family.add_metric([name], _buckets(histogram), histogram.total / 1000)
    yield from (tries, again, latency, wait)


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    bounds = [str(bound / 1000) for bound in histogram.bounds]
    return list(zip([*bounds, "+Inf"], map(float, accumulate(histogram.counts)), strict=True))


def _names(runtime: Runtime) -> set[str]:
    # Also those with nothing to tell yet: a rate can only be made of a counter that was there before.
    return {each.name for each in runtime.registry}


MEASURES: list[Measure] = [
    entries,
    oldest,
    paused,
    breakers,
    breaker_summary,
    letters,
    overdue,
    not_verified,
    attempts,
]
