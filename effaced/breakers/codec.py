"""A breaker as plain values: for a row of a table, and for a text in Redis."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime
from typing import Any

from effaced.breakers.model import BreakerRole, BreakerState, CircuitBreakerStateData, Slot

NAMES = tuple(field.name for field in fields(CircuitBreakerStateData))
_MOMENTS = frozenset(
    {"opened_at", "last_failure_at", "retry_at", "expires_at", "cooldown_until", "updated_at"}
)


def as_columns(data: CircuitBreakerStateData) -> dict[str, Any]:
    """For a row: lists are JSON there, everything else has a type of its own."""
    values = {name: getattr(data, name) for name in NAMES}
    values["slots"] = [[slot.number, slot.role.value, slot.since.isoformat()] for slot in data.slots]
    values["recent_failures"] = [at.isoformat() for at in data.recent_failures]
    return values


def from_columns(values: dict[str, Any]) -> CircuitBreakerStateData:
    values["slots"] = tuple(
        Slot(number, BreakerRole(role), datetime.fromisoformat(since))
        for number, role, since in values["slots"]
    )
    values["recent_failures"] = tuple(datetime.fromisoformat(at) for at in values["recent_failures"])
    return CircuitBreakerStateData(**values)


def as_text(data: CircuitBreakerStateData) -> str:
    values = as_columns(data)
    for name in _MOMENTS:
        values[name] = values[name].isoformat() if values[name] is not None else None
    return json.dumps({name: value for name, value in values.items() if value is not None})


def from_text(text: str | bytes) -> CircuitBreakerStateData:
    values: dict[str, Any] = json.loads(text)
    for name in _MOMENTS & values.keys():
        values[name] = datetime.fromisoformat(values[name])
    for name in ("state", "pinned"):
        if name in values:
            values[name] = BreakerState(values[name])
    return from_columns(values)
