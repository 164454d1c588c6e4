"""Numbers on the command line."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click


class Number(click.FloatRange):
    """A number that one can reckon with: click's own types take `nan` for one within every range."""

    name = "number"

    def _describe_range(self) -> str:
        # Without bounds click's help would say "x<=None".
        return "" if self.min is None and self.max is None else super()._describe_range()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number
