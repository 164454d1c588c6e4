"""Event types and payload keys are a public format: what has once been written stays readable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from effaced.audit.events import TYPES, Payload

FROZEN = Path(__file__).with_name("event_format.json")
ADD_IT = f"A new event type or payload key has to be listed in {FROZEN.name} and explained in the glossary."
NEVER_CHANGE_IT = (
    "Event types and payload keys are never renamed or removed: exports and stored events have them."
)

# Other tests register events of their own.
OURS = {name: event for name, event in sorted(TYPES.items()) if event.__module__.startswith("effaced.")}


def payload_keys(payload: type[Payload], prefix: str = "") -> Iterator[str]:
    """All keys, those of nested payloads after a dot: `tables`, `tables.rows`."""
    for name, field in payload.model_fields.items():
        yield f"{prefix}{name}"
        for nested in nested_payloads(field.annotation):
            yield from payload_keys(nested, f"{prefix}{name}.")


def nested_payloads(annotation: Any) -> Iterator[type[Payload]]:
    if isinstance(annotation, type) and issubclass(annotation, Payload):
        yield annotation
    for part in get_args(annotation):
        yield from nested_payloads(part)


def current_format() -> dict[str, list[str]]:
    return {name: sorted(payload_keys(event)) for name, event in OURS.items()}


def frozen_format() -> dict[str, list[str]]:
    frozen: dict[str, list[str]] = json.loads(FROZEN.read_text(encoding="utf-8"))
    return frozen


@pytest.mark.parametrize("name", sorted(frozen_format()))
def test_no_type_and_no_payload_key_is_renamed_or_removed(name: str) -> None:
    assert name in OURS, NEVER_CHANGE_IT
    assert set(frozen_format()[name]) - set(current_format()[name]) == set(), NEVER_CHANGE_IT


@pytest.mark.parametrize("name", list(OURS))
def test_every_type_and_every_payload_key_is_listed(name: str) -> None:
    assert current_format()[name] == frozen_format().get(name), ADD_IT


def test_the_keys_of_nested_payloads_are_listed_too() -> None:
    assert {"tables", "tables.table", "retained.basis"} <= set(frozen_format()["LOCAL_ERASURE_EXECUTED"])
