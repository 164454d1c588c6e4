"""What a system's breakers did: the last day in figures, and what was missed while their store was away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from effaced.breakers.layered.forensics import analyze_outages
from effaced.breakers.telemetry import KEPT, BreakerSummary, summary
from effaced.console.current import runtime


@dataclass(frozen=True, slots=True)
class BreakerFigures:
    """One breaker's last day. `time_saved` is an estimate."""

    breaker: str
    opens: int
    reasons: dict[str, int]
    held_back: timedelta
    time_saved: timedelta
    trials_succeeded: int
    trials_ended: int

    @property
    def is_host(self) -> bool:
        return self.breaker.startswith("host:")


def breaker_figures(session: Session, names: Sequence[str]) -> list[BreakerFigures]:
    """The last day of these breakers, as `effaced breaker summary` has it."""
    return [_figures(each) for each in summary(session, runtime().called, only=names)]


def outages(session: Session, names: Sequence[str]) -> dict[str, Any] | None:
    """What these breakers' shared store did not take while it was away; None if it took everything."""
    found = analyze_outages(session, KEPT, names)
    return found if found["total_failures"] or found["drift"] else None


def _figures(each: BreakerSummary) -> BreakerFigures:
    return BreakerFigures(
        each.breaker,
        each.opens,
        dict(each.reasons),
        timedelta(seconds=each.held_back_s),
        timedelta(milliseconds=each.time_saved_ms_estimate),
        each.trials_succeeded,
        each.trials_ended,
    )
