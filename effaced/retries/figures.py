"""Figures of attempts as sums and counts, so that hours, resolvers and days add up."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

# Upper bounds in milliseconds; one more bucket takes what is beyond. Stored counts go by them, so that
# another set of bounds needs a migration.
LATENCY_BOUNDS = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)
WAIT_BOUNDS = (
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 3_600_000, 86_400_000,
)  # fmt: skip
P95 = 0.95


@dataclass(slots=True)
class Histogram:
    """How many values lie under each bound, how many there are, and their sum."""

    bounds: tuple[int, ...]
    counts: list[int] = field(default_factory=list)
    total: int = 0

    def __post_init__(self) -> None:
        self.counts = list(self.counts) or [0] * (len(self.bounds) + 1)

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def average(self) -> float | None:
        return self.total / self.count if self.count else None

    def add(self, bucket: int, count: int, total: int) -> None:
        self.counts[bucket] += count
        self.total += total

    def observe(self, value: int) -> None:
        self.add(bisect_left(self.bounds, value), 1, value)

    def merge(self, other: Histogram) -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def quantile(self, share: float) -> float | None:
        """An estimate, even within a bucket; beyond the last bound, that bound."""
        wanted, seen = share * self.count, 0
        for number, count in enumerate(self.counts):
            if count and seen + count >= wanted:
                if number == len(self.bounds):
                    return float(self.bounds[-1])
                low = self.bounds[number - 1] if number else 0
                return low + (self.bounds[number] - low) * (wanted - seen) / count
            seen += count
        return None


@dataclass(slots=True)
class Figures:
    """One hour of one resolver, or any number of them.

    `entries` and `requests` are different ones within an hour; over several hours they are sums of that.
    `retries` are attempts after the first. `latency` is of attempts that made a call; `wait` is from when an
    entry could be called to its first attempt.
    """

    attempts: int = 0
    entries: int = 0
    requests: int = 0
    retries: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    success_by_attempt: Counter[int] = field(default_factory=Counter)
    failure_by_reason: Counter[str] = field(default_factory=Counter)
    latency: Histogram = field(default_factory=lambda: Histogram(LATENCY_BOUNDS))
    wait: Histogram = field(default_factory=lambda: Histogram(WAIT_BOUNDS))
    last_id: int = 0

    def merge(self, other: Figures) -> Figures:
        """Add another's figures to these."""
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if each.name == "last_id":
                self.last_id = max(mine, theirs)
            elif isinstance(mine, Histogram):
                mine.merge(theirs)
            elif isinstance(mine, Counter):
                mine.update(theirs)
            else:
                setattr(self, each.name, mine + theirs)
        return self

    def columns(self) -> dict[str, Any]:
        """As a row of the hourly table."""
        return {
            "last_id": self.last_id,
            "attempts": self.attempts,
            "entries": self.entries,
            "requests": self.requests,
            "retries": self.retries,
            "outcomes": dict(sorted(self.outcomes.items())),
            "success_by_attempt": {str(n): count for n, count in sorted(self.success_by_attempt.items())},
            "failure_by_reason": dict(sorted(self.failure_by_reason.items())),
            "latency_count": self.latency.count,
            "latency_ms_sum": self.latency.total,
            "latency_buckets": self.latency.counts,
            "wait_count": self.wait.count,
            "wait_ms_sum": self.wait.total,
            "wait_buckets": self.wait.counts,
        }

    def plain(self) -> dict[str, Any]:
        """As API and command line show them."""
        average, p95 = self.latency.average, self.latency.quantile(P95)
        return {
            "attempts": self.attempts,
            "entries": self.entries,
            "requests": self.requests,
            "retries": self.retries,
            "outcomes": dict(sorted(self.outcomes.items())),
            "success_by_attempt": {str(n): count for n, count in sorted(self.success_by_attempt.items())},
            "failure_by_reason": dict(self.failure_by_reason.most_common()),
            "avg_latency_ms": None if average is None else round(average, 1),
            "p95_latency_ms_estimate": None if p95 is None else round(p95, 1),
        }


def from_columns(row: Mapping[Any, Any]) -> Figures:
    return Figures(
        attempts=row["attempts"],
        entries=row["entries"],
        requests=row["requests"],
        retries=row["retries"],
        outcomes=Counter(row["outcomes"]),
        success_by_attempt=Counter({int(n): count for n, count in row["success_by_attempt"].items()}),
        failure_by_reason=Counter(row["failure_by_reason"]),
        latency=Histogram(LATENCY_BOUNDS, row["latency_buckets"], row["latency_ms_sum"]),
        wait=Histogram(WAIT_BOUNDS, row["wait_buckets"], row["wait_ms_sum"]),
        last_id=row["last_id"],
    )


def merged(many: Sequence[Figures]) -> Figures:
    total = Figures()
    for each in many:
        total.merge(each)
    return total
