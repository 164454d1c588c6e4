"""The document's examples are calls that were made, and the answers to them. `make record` records them anew.

A scenario is a module in `examples/`: its `record` calls each operation of a resource once, on a company of
its own. SETTINGS and DATAMAP of the module say how that differs from the usual one. A module for a new
resource is listed in SCENARIOS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from example_recorder import Recorder
from recorded import RECORD
from sqlalchemy import select

from effaced.api.catalogue import OPERATIONS
from effaced.api.openapi.document import document
from effaced.api.openapi.examples import FILE
from effaced.core import clock
from effaced.requests.tables import IdempotentAnswer

from .conftest import Api
from .examples import (
    audit,
    breakers,
    datamap,
    dead_letter_cleanup,
    dead_letters,
    decisions,
    keys,
    messages,
    redrives,
    requests,
    resolvers,
    retentions,
    retries,
    subjects,
)

SCENARIOS: tuple[ModuleType, ...] = (
    requests,
    decisions,
    subjects,
    dead_letters,
    dead_letter_cleanup,
    redrives,
    retentions,
    resolvers,
    breakers,
    retries,
    datamap,
    messages,
    audit,
    keys,
)
MORNING = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def name_of(scenario: ModuleType) -> str:
    return scenario.__name__.rpartition(".")[2]


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_what_is_shown_is_what_is_answered(
    scenario: ModuleType, make_api: Callable[..., Api], migrated_sqlite_url: str, tmp_path: Path
) -> None:
    settings = {"approvals_needed": 0, **getattr(scenario, "SETTINGS", {})}
    if data_map := getattr(scenario, "DATAMAP", None):
        settings["datamap"] = tmp_path / "scenario.yaml"
        settings["datamap"].write_text(data_map)
    with clock.pretend(MORNING) as time:
        api = make_api(migrated_sqlite_url, **settings)
        recorder = Recorder(api.app, name_of(scenario), time)
        scenario.record(api, recorder)
    # An answer to an Idempotency-Key outlives notes that are forgotten and requests that are closed.
    with api.runtime.db.read() as session:
        kept = repr(list(session.scalars(select(IdempotentAnswer.answer))))
    assert [each for each in recorder.typed if each in kept] == []
    if RECORD:
        write(stored() | recorder.examples)
    known = stored()
    assert {name: known.get(name) for name in recorder.examples} == recorder.examples, "run `make record`"


def test_every_operation_has_an_example_and_nothing_else_has() -> None:
    ids = {each.id for each in OPERATIONS}
    if RECORD:
        write({name: each for name, each in stored().items() if name in ids})
    assert set(stored()) == ids


def test_examples_hold_nothing_that_could_be_used() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert "@" not in text.replace('"^[^@]*$"', ""), "but for a pattern of the trail's schemas"
    assert not re.search(r'eff_(?!kq3vx7ab(_…|"))|whsec_(?!…)', text)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
def test_the_document_shows_the_example(operation: Any) -> None:
    described = json.loads(document())["paths"][operation.path][operation.method.lower()]
    example = stored()[operation.id]
    answer = described["responses"][str(example["status"])].get("content", {})
    assert answer.get("application/json", {}).get("example") == (
        example.get("answer") if operation.answer else None
    )
    if operation.body:
        assert described["requestBody"]["content"]["application/json"]["example"] == example["body"]
    shown = {each["name"]: each["example"] for each in described["parameters"] if "example" in each}
    assert shown == {**example.get("path", {}), **example.get("query", {})}


def write(examples: dict[str, Any]) -> None:
    # In the catalogue's order, so that a new operation changes one place.
    order = [each.id for each in OPERATIONS]
    names = [*order, *sorted(set(examples) - set(order))]
    ordered = {name: examples[name] for name in names if name in examples}
    FILE.write_text(json.dumps(ordered, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
