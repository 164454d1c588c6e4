"""A breaker as plain values: for a row of a table, and as JSON in Redis."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from typing import Any

from effaced.breakers.model import BreakerRole, BreakerState, CircuitBreakerStateData, Slot

NAMES = tuple(field.name for field in fields(CircuitBreakerStateData))
_MOMENTS = frozenset(
    {
        "opened_at",
        "last_failure_at",
        "retry_at",
        "expires_at",
        "cooldown_since",
        "cooldown_until",
        "updated_at",
    }
)
_COUNTS = ("failure_count", "success_count", "slots_given", "generation", "version")
_TEXTS = ("reason", "controlled_by", "control_reason", "cooldown_reason")
_COUNT_BELOW = 2**63


def as_columns(data: CircuitBreakerStateData) -> dict[str, Any]:
    """For a table row: lists become JSON, everything else has a column type."""
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


class Unreadable(ValueError):
    """A text that `as_text` did not write."""


def from_text(text: str | bytes, service_name: str) -> CircuitBreakerStateData:
    """The breaker that `as_text` wrote. Unreadable if the text is anything else.

    Others can write to Redis, and these values decide about calls: fields, types, time zones and the name
    are checked.
    """
    try:
        values: dict[str, Any] = json.loads(text)
        for name in _MOMENTS & values.keys():
            values[name] = datetime.fromisoformat(values[name])
        for name in ("state", "pinned"):
            if name in values:
                values[name] = BreakerState(values[name])
        row = from_columns(values)
        _check(row, service_name)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unreadable(type(error).__name__) from None
    return row


def _check(row: CircuitBreakerStateData, service_name: str) -> None:
    if row.service_name != service_name:
        raise ValueError
    slot_numbers = [slot.number for slot in row.slots]
    slot_moments = [slot.since for slot in row.slots]
    for is_valid, values in (
        (_is_count, [*(getattr(row, name) for name in _COUNTS), *slot_numbers]),
        (_is_moment, [*slot_moments, *row.recent_failures]),
        (_is_none_or(_is_moment), [getattr(row, name) for name in _MOMENTS]),
        (_is_none_or(_is_text), [getattr(row, name) for name in _TEXTS]),
        (_is_none_or(_is_seconds), [row.reset_timeout_s]),
    ):
        if not all(map(is_valid, values)):
            raise ValueError


def _is_none_or(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_valid(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _COUNT_BELOW


def _is_moment(value: Any) -> bool:
    return value.tzinfo is not None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < _COUNT_BELOW
