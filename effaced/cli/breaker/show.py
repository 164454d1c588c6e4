"""Breakers on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from effaced.breakers.autotune import AutoTunePlan
from effaced.breakers.model import BreakerState
from effaced.breakers.telemetry import BreakerSummary
from effaced.breakers.view import BreakerView
from effaced.core import clock

_COLOURS = {BreakerState.OPEN: "red", BreakerState.HALF_OPEN: "yellow", BreakerState.CLOSED: "green"}


def breakers(found: Sequence[BreakerView]) -> None:
    if not found:
        Console().print("No resolvers, so there are no breakers.")
        return
    table = Table("breaker", "state", "lets calls through", "because of", "failures", "pinned")
    for each in found:
        # Text, not markup: square brackets in a reason are just that.
        table.add_row(
            Text(each.name),
            Text(each.state.value.replace("_", "-"), style=_COLOURS[each.state]),
            _when(each),
            Text((each.blocked_by or each.data.reason or "-").replace("_", " ")),
            str(each.data.failure_count),
            Text(_pin(each)),
        )
    Console().print(table)


def summaries(found: Sequence[BreakerSummary]) -> None:
    table = Table(
        "breaker", "calls", "opens", "per hour", "held back", "not made (est.)", "time saved (est.)",
        "good trials", "reasons",
    )  # fmt: skip
    for each in found:
        share = "-" if each.success_after_open is None else f"{each.success_after_open:.0%}"
        table.add_row(
            Text(each.breaker),
            f"{each.calls:,}",
            str(each.opens),
            f"{each.opens_per_hour:g}",
            f"{each.held_back_s:,.0f} s",
            f"{each.calls_not_made_estimate:,}",
            f"{each.time_saved_ms_estimate / 1000:,.1f} s",
            share,
            ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in each.reasons.items()) or "-",
        )
    Console().print(table)


def plans(found: Sequence[AutoTunePlan], *, enforced: bool) -> None:
    console = Console()
    if not found:
        console.print("The figures suggest nothing to change.")
        return
    table = Table("breaker", "field", "from", "to", "why")
    for plan in found:
        for each in plan.changes:
            was = "-" if each.was is None else f"{each.was:g}"
            table.add_row(Text(plan.breaker), each.field, was, f"{each.now:g}", Text(each.why))
    console.print(table)
    console.print("Changed." if enforced else "Nothing was changed; --enforce does it.")


def _when(view: BreakerView) -> str:
    if view.blocked_until is None:
        return "now" if view.state is BreakerState.CLOSED else "on trial"
    seconds = max(0, round((view.blocked_until - clock.now()).total_seconds()))
    return f"in {seconds:,} s ({view.blocked_until:%H:%M:%S} UTC)"


def _pin(view: BreakerView) -> str:
    data = view.data
    if not view.pinned or data.pinned is None:
        return "-"
    until = f" until {data.expires_at:%Y-%m-%d %H:%M:%S} UTC" if data.expires_at else ""
    return f"{data.pinned.value}{until}, by {data.controlled_by}: {view.pin_reason or '-'}"
