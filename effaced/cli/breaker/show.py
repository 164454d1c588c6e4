"""Breakers on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from effaced.breakers.advice.in_force import PolicyInForce
from effaced.breakers.advice.tuner import AutoTunePlan
from effaced.breakers.model import BreakerRole, BreakerState
from effaced.breakers.policy import BreakerPolicies, dotted
from effaced.breakers.telemetry import BreakerSummary
from effaced.breakers.view import BreakerView
from effaced.cli.terminal import terminal
from effaced.core import clock
from effaced.model import PolicyKind
from effaced.retries.policy import status_ranges

_COLOURS = {BreakerState.OPEN: "red", BreakerState.HALF_OPEN: "yellow", BreakerState.CLOSED: "green"}


def print_breakers(found: Sequence[BreakerView], policies: BreakerPolicies) -> None:
    if not found:
        terminal().print("No resolvers, so there are no breakers.")
        return
    if any(each.last_known for each in found):
        terminal().print("The breaker store does not answer. These are the last known states.", style="red")
    table = Table("breaker", "state", "lets calls through", "reason", "failures", "trials", "pinned")
    for each in found:
        # Text, not markup: square brackets in a reason are just that.
        table.add_row(
            Text(each.name),
            Text(each.state.value.replace("_", "-"), style=_COLOURS[each.state]),
            _when(each),
            Text(_reason(each)),
            _failures(each, policies),
            _trials(each),
            Text(_pin(each)),
        )
    terminal().print(table)


def _failures(each: BreakerView, policies: BreakerPolicies) -> str:
    """How many in a row, and of how many that would open it."""
    count, opens_at = each.data.failure_count, policies.opens_at(each.name)
    counts = count and opens_at and each.state is BreakerState.CLOSED
    return f"{count} of {opens_at}" if counts else str(count)


def print_summaries(found: Sequence[BreakerSummary]) -> None:
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
    terminal().print(table)


def print_policy(found: PolicyInForce) -> None:
    told, console = found.as_dict(), terminal()
    table = Table("field", *found.roles, "changed here")
    roles = [dotted(each) for each in told["roles"].values()]
    changed = dotted(told["overrides"][PolicyKind.BREAKER])
    for field in roles[0]:
        table.add_row(field, *(_value(each[field]) for each in roles), _changed(field, changed))
    console.print(table)
    rate = "none" if found.rate_per_second is None else f"{found.rate_per_second:g} calls per second"
    by_hand = " (changed here)" if found.overrides[PolicyKind.RATE] else ""
    console.print(f"Rate limit in force: {rate}{by_hand}.")


def _changed(field: str, changed: Mapping[str, Any]) -> str:
    """What was changed at run time of a field: `3`, or `erase 3` if for a role."""
    by_role = {each: changed.get(f"roles.{each}.{field}") for each in BreakerRole}
    own = [_value(changed[field])] if field in changed else []
    told = [f"{role} {_value(value)}" for role, value in by_role.items() if value is not None]
    return ", ".join([*own, *told])


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return status_ranges(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def print_plans(found: Sequence[AutoTunePlan], *, enforced: bool) -> None:
    console = terminal()
    if not found:
        console.print("There is nothing to change.")
        return
    table = Table("breaker", "field", "from", "to", "why")
    for plan in found:
        for each in plan.changes:
            was = "-" if each.was is None else f"{each.was:g}"
            table.add_row(Text(plan.breaker), each.field, was, f"{each.now:g}", Text(each.why))
    console.print(table)
    console.print("Changed." if enforced else "Nothing was changed; --enforce does it.")


def print_outages(found: dict[str, Any]) -> None:
    console = terminal()
    if not found["timeline"] and not found["drift"]:
        console.print("No outage of the breaker store.")
        return
    missed = Table("at", "breaker", "from", "to", "synced", title="Changes that Redis did not take")
    for each in found["timeline"]:
        synced = "yes" if each["synced"] else "no"
        missed.add_row(each["at"], Text(each["service_name"]), each["from"], each["to"], synced)
    resolved = Table("at", "breaker", "memory", "Redis", "winner", title="Differences resolved afterwards")
    for each in found["drift"]:
        states = each["l1_state"], each["l2_state"] or "-"
        resolved.add_row(each["reconciled_at"], Text(each["service_name"]), *states, each["winner"])
    console.print(missed)
    console.print(resolved)
    errors = ", ".join(f"{name} {count}" for name, count in found["errors"].items())
    console.print(f"Errors: {errors or '-'}. Not synced yet: {found.get('unsynced', 0)}.")


def _when(view: BreakerView) -> str:
    if view.block is None:
        return "now" if view.state is BreakerState.CLOSED else "on trial"
    seconds = max(0, round((view.block.until - clock.now()).total_seconds()))
    return f"in {seconds:,} s ({view.block.until:%H:%M:%S} UTC)"


def _reason(view: BreakerView) -> str:
    if view.blocked_by_host and view.block:
        return f"{view.blocked_by_host}: {view.block.reason.replace('_', ' ')}"
    return ((view.block.reason if view.block else None) or view.data.reason or "-").replace("_", " ")


def _trials(view: BreakerView) -> str:
    """The half-open budget: free of all, by role."""
    if view.state is not BreakerState.HALF_OPEN:
        return "-"
    return ", ".join(f"{role.value} {each.free}/{each.limit} free" for role, each in view.budget.items())


def _pin(view: BreakerView) -> str:
    data = view.data
    if not view.pinned or data.pinned is None:
        return "-"
    until = f" until {data.expires_at:%Y-%m-%d %H:%M:%S} UTC" if data.expires_at else ""
    return f"{data.pinned.value}{until}, by {data.controlled_by}: {view.pin_reason or '-'}"
