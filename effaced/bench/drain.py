"""How fast processes carry entries from pending to settled, against the raw SQL floor."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from effaced.bench.fill import PER_REQUEST, fill, fill_crowd
from effaced.bench.ground import RESOLVER, Ground, Progress, prepare
from effaced.bench.processes import Side, drain_with
from effaced.bench.report import Report, ratio

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Case:
    """What is drained: how many calls a request has, among how many parked ones, by how many processes."""

    per_request: int = PER_REQUEST
    parked: int = 0
    processes: int = 1

    def __str__(self) -> str:
        parked = f", {self.parked:,} parked" if self.parked else ""
        return f"{self.per_request:,} per request{parked}, {self.processes} process" + "es" * (
            self.processes > 1
        )


@dataclass(frozen=True, slots=True)
class Rates:
    """Entries per second: the medians of all rounds."""

    case: Case
    value: float
    floor: float

    @property
    def ratio(self) -> float:
        return ratio(self.value, self.floor)


# The first is what the others are compared with.
CASES = (Case(), Case(per_request=1), Case(per_request=100), Case(per_request=2_000), Case(parked=100_000))


def bench_drain(
    *,
    entries: int,
    url: str | None,
    progress: Progress,
    processes: Sequence[int] = (1,),
    per_request: int = PER_REQUEST,
    parked: int = 0,
    rounds: int = ROUNDS,
) -> Report:
    """Drain `entries` entries through the runner and through the floor, by turns, in one database."""
    cases = [Case(per_request, parked, number) for number in processes]
    with prepare(url, progress) as ground:
        rates = _measure(ground, cases, entries, rounds)
    rows = [
        {"processes": each.case.processes, "value": each.value, "floor": each.floor, "ratio": each.ratio}
        for each in rates
    ]
    gains = _gains(rates)
    lines = [_sentence(each, entries) for each in rates]
    lines += [
        f"drain: {each['processes']} processes gain {each['value']:.2f}; the floor gains {each['floor']:.2f}"
        for each in gains
    ]
    return _report(entries, rates[0], lines, {"processes": rows, "gain": gains})


def bench_cases(
    *,
    entries: int,
    url: str | None,
    progress: Progress,
    cases: Sequence[Case] = CASES,
    rounds: int = ROUNDS,
) -> Report:
    """What an entry costs in each case, relative to the first of them, for effaced and for the floor."""
    with prepare(url, progress) as ground:
        rates = _measure(ground, cases, entries, rounds)
    base = rates[0]
    rows: list[dict[str, Any]] = [
        {
            "per_request": each.case.per_request,
            "parked": each.case.parked,
            "value": each.value,
            "floor": each.floor,
            "ratio": each.ratio,
            "cost": ratio(base.value, each.value),
            "floor_cost": ratio(base.floor, each.floor),
        }
        for each in rates
    ]
    lines = [
        f"{_sentence(each, entries)}; an entry costs {row['cost']:.2f} of the first case,"
        f" {row['floor_cost']:.2f} at the floor"
        for each, row in zip(rates, rows, strict=True)
    ]
    return _report(entries, base, lines, {"cases": rows})


def _measure(ground: Ground, cases: Sequence[Case], entries: int, rounds: int) -> list[Rates]:
    measured: dict[tuple[Case, Side], list[float]] = {(case, side): [] for case in cases for side in Side}
    for number in range(rounds):
        for (case, side), rates in measured.items():
            ground.progress(f"round {number + 1} of {rounds}: {case}: {side}")
            ground.clear()
            with ground.raw() as connection:
                fill_crowd(connection, resolver=RESOLVER, parked=case.parked)
                fill(
                    connection,
                    ground.keyring,
                    entries=entries,
                    resolver=RESOLVER,
                    per_request=case.per_request,
                )
            ground.settle_down()
            rates.append(drain_with(side, case.processes, url=ground.url, keys=ground.keys, entries=entries))
    return [
        Rates(
            case,
            round(statistics.median(measured[case, Side.EFFACED]), 1),
            round(statistics.median(measured[case, Side.FLOOR]), 1),
        )
        for case in cases
    ]


def _gains(rates: Sequence[Rates]) -> list[dict[str, Any]]:
    one = next((each for each in rates if each.case.processes == 1), None)
    return [
        {
            "processes": each.case.processes,
            "value": ratio(each.value, one.value),
            "floor": ratio(each.floor, one.floor),
        }
        for each in rates
        if one is not None and each is not one
    ]


def _sentence(rates: Rates, entries: int) -> str:
    return (
        f"drain: {rates.value:,.0f} entries/s with {entries:,} entries ({rates.case}); "
        f"raw SQL floor {rates.floor:,.0f} entries/s; ratio {rates.ratio:.2f}"
    )


def _report(entries: int, first: Rates, lines: Sequence[str], more: dict[str, Any]) -> Report:
    return Report("drain", entries, first.value, "entries/s", first.floor, lines, more)
