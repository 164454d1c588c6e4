"""Examples of calls and answers. They are recorded by a test that makes the calls; see `examples.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("examples.json")


@dataclass(frozen=True, slots=True)
class Example:
    """One call of an operation, and what it was answered."""

    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    status: int = 0
    answer: Any = None


@cache
def _recorded() -> dict[str, Example]:
    return {name: Example(**each) for name, each in json.loads(FILE.read_text(encoding="utf-8")).items()}


def example_of(operation_id: str) -> Example:
    return _recorded().get(operation_id, Example())
