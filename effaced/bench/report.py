"""What every bench says, in the same form."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Report:
    """`value` is effaced's figure, `floor` that of the least that does the same work, from the same run.

    `ratio` is the one by the other. Where `unit` is a rate, 1 is the floor and less is slower; where it is a
    time, more is slower. `more` goes into the JSON object beside these, `lines` are for people.
    """

    bench: str
    n: int
    value: float
    unit: str
    floor: float
    lines: Sequence[str]
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        return ratio(self.value, self.floor)

    def as_json(self) -> str:
        always = {name: getattr(self, name) for name in ("bench", "n", "value", "unit", "floor", "ratio")}
        return json.dumps(always | dict(self.more))

    def as_text(self) -> str:
        return "\n".join(self.lines)


def ratio(value: float, floor: float) -> float:
    return round(value / floor, 3)


def quantiles(times: Sequence[float]) -> dict[str, float]:
    """`p50`, `p95` and `p99` of some times in seconds, in milliseconds."""
    ordered = sorted(times)

    def late(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000, 3)

    return {"p50": round(statistics.median(ordered) * 1000, 3), "p95": late(0.95), "p99": late(0.99)}
