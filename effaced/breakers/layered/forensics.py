"""What happened while a shared store was away: read from the database, so of all processes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from effaced.breakers.layered.outage_log import drift_history, sync_failures
from effaced.breakers.layered.shadow import analyze_failures
from effaced.core import clock


def read_outages(session: Session, window_s: float) -> dict[str, Any]:
    """Failures as a timeline and by breaker, and how each difference was resolved, as plain values."""
    found = analyze_outages(session, timedelta(seconds=window_s))
    return {name: _plain(each) for name, each in found.items()}


def analyze_outages(
    session: Session, window: timedelta, names: Collection[str] | None = None
) -> dict[str, Any]:
    """The same with moments and enums as they are; of these breakers, or of all."""
    since = clock.now() - window
    drift = [asdict(each) for each in drift_history(session, since=since, names=names)]
    return analyze_failures(sync_failures(session, since=since, names=names)) | {"drift": drift}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return clock.text(value) if isinstance(value, datetime) else value
