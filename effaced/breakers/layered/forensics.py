"""What happened while a shared store was away: read from the database, so of all processes."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from effaced.breakers.layered.outage_log import drift_history, sync_failures
from effaced.breakers.layered.shadow import analyze_failures
from effaced.core import clock


def read_outages(session: Session, window_s: float) -> dict[str, Any]:
    """Failures as a timeline and by breaker, and how each difference was resolved, as plain values."""
    since = clock.now() - timedelta(seconds=window_s)
    drift = [asdict(each) for each in drift_history(session, since=since)]
    found = analyze_failures(sync_failures(session, since=since)) | {"drift": drift}
    return {name: _plain(each) for name, each in found.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return clock.text(value) if isinstance(value, datetime) else value
