"""A breaker as plain values: for a row of a table, and as JSON in Redis."""

from __future__ import annotations

import json
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
    counts = [row.failure_count, row.success_count, row.slots_given, row.generation, row.version]
    counts += [slot.number for slot in row.slots]
    moments = [getattr(row, name) for name in _MOMENTS]
    moments += [slot.since for slot in row.slots] + list(row.recent_failures)
    texts = [row.reason, row.controlled_by, row.control_reason, row.cooldown_reason]
    wait = row.reset_timeout_s
    if not (
        row.service_name == service_name
        and all(type(each) is int and 0 <= each < _COUNT_BELOW for each in counts)
        and all(each is None or each.tzinfo is not None for each in moments)
        and all(each is None or isinstance(each, str) for each in texts)
        and (wait is None or (type(wait) in (int, float) and 0 <= wait < _COUNT_BELOW))
    ):
        raise ValueError
