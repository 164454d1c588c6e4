"""What every bench says, in the same form."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """`value` is effaced's figure, `floor` the raw SQL's; higher is better for both."""

    bench: str
    n: int
    value: float
    unit: str
    floor: float
    ratio: float

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    def as_text(self) -> str:
        return (
            f"{self.bench}: {self.value:,.0f} {self.unit} with {self.n:,} entries; "
            f"raw SQL floor {self.floor:,.0f} {self.unit}; ratio {self.ratio:.2f}"
        )
