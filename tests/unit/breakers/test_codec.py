"""A breaker survives the way through a text, and a text that somebody else wrote is not believed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from effaced.breakers.model import BreakerRole, BreakerState, CircuitBreakerStateData, Slot
from effaced.breakers.stores.codec import Unreadable, as_text, from_text

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
CRM = "resolver:crm"
ROW = CircuitBreakerStateData(
    CRM,
    BreakerState.HALF_OPEN,
    failure_count=3,
    opened_at=NOON,
    retry_at=NOON + timedelta(minutes=1),
    reset_timeout_s=60.0,
    slots=(Slot(4, BreakerRole.VERIFY, NOON),),
    slots_given=4,
    recent_failures=(NOON, NOON + timedelta(seconds=1)),
    reason="trial_started",
    generation=2,
    version=7,
    pinned=BreakerState.OPEN,
    controlled_by="cli",
    cooldown_until=NOON + timedelta(hours=1),
)


@pytest.mark.parametrize("row", [ROW, CircuitBreakerStateData(CRM), replace(ROW, pinned=None, slots=())])
def test_a_breaker_comes_back_as_it_was(row: CircuitBreakerStateData) -> None:
    assert from_text(as_text(row), CRM) == row


@pytest.mark.parametrize(
    "changes",
    [
        {"failure_count": -1},
        {"failure_count": True},
        {"version": 2**63},
        {"generation": "2"},
        {"opened_at": "2026-03-02T12:00:00"},
        {"recent_failures": ["2026-03-02T12:00:00"]},
        {"slots": [[-1, "verify", NOON.isoformat()]]},
        {"slots": [[1, "verify", "2026-03-02T12:00:00"]]},
        {"slots": [[1, "nothing", NOON.isoformat()]]},
        {"reason": 5},
        {"controlled_by": ["cli"]},
        {"reset_timeout_s": -1},
        {"reset_timeout_s": "60"},
        {"state": "ajar"},
        {"pinned": "ajar"},
        {"service_name": "resolver:other"},
        {"unknown": 1},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_a_text_with_a_wrong_value_is_unreadable(changes: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        from_text(json.dumps(json.loads(as_text(ROW)) | changes), CRM)


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "{", "[" * 100_000])
def test_anything_else_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        from_text(text, CRM)
