"""`effaced bench`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from effaced.bench.breaker import bench_breaker
from effaced.bench.bulk import bench_bulk
from effaced.bench.claim import bench_claim
from effaced.bench.counts import bench_counts
from effaced.bench.drain import bench_cases, bench_drain
from effaced.bench.erase import bench_erase
from effaced.bench.intake import bench_intake
from effaced.bench.latency import bench_latency
from effaced.bench.plan import bench_plan
from effaced.bench.report import Report
from effaced.cli.numbers import Number

_TERMINAL = click.option(
    "--terminal",
    default=1_000_000,
    show_default=True,
    type=click.IntRange(0, 100_000_000),
    help="Entries there that have ended.",
)
_PARKED = click.option(
    "--parked",
    default=100_000,
    show_default=True,
    type=click.IntRange(0, 10_000_000),
    help="Entries there that wait for a horizon.",
)
_ROUNDS = click.option(
    "--rounds",
    default=3,
    show_default=True,
    type=click.IntRange(1, 99),
    help="Turns on each side; medians count.",
)


class _Numbers(click.ParamType[tuple[int, ...]]):
    name = "numbers"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(part.strip().isdecimal() and 1 <= int(part) <= 32 for part in parts):
            self.fail("expected numbers from 1 to 32 with commas between them, such as 1,2,4", param, ctx)
        return tuple(int(part) for part in parts)


def _common(command: Callable[..., None]) -> Callable[..., None]:
    url = click.option(
        "--url", help="An empty PostgreSQL database to use; otherwise one is started for the run."
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object instead of sentences.")
    return url(as_json(command))


@click.command("drain")
@click.option("--entries", default=20_000, show_default=True, type=click.IntRange(100, 5_000_000))
@click.option(
    "--processes", default=(1,), type=_Numbers(), help="How many drain at once: 1,2,4 measures each."
)
@click.option(
    "--per-request",
    default=4,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="Entries of a request.",
)
@click.option(
    "--parked",
    default=0,
    show_default=True,
    type=click.IntRange(0, 10_000_000),
    help="Entries there that wait.",
)
@click.option("--cases", is_flag=True, help="1, 4, 100 and 2,000 per request, and 100,000 parked, by turns.")
@_ROUNDS
@_common
def drain(
    entries: int,
    processes: tuple[int, ...],
    per_request: int,
    parked: int,
    cases: bool,
    rounds: int,
    url: str | None,
    as_json: bool,
) -> None:
    """Entries per second from pending to settled, with a resolver that does nothing."""
    if cases and (processes, per_request, parked) != ((1,), 4, 0):
        raise click.UsageError("--cases brings its own --processes, --per-request and --parked.")
    common: dict[str, Any] = {
        "entries": entries,
        "rounds": rounds,
        "url": url,
        "progress": _progress("drain"),
    }
    if cases:
        _show(bench_cases(**common), as_json)
    else:
        _show(bench_drain(processes=processes, per_request=per_request, parked=parked, **common), as_json)


@click.command("latency")
@click.option("--samples", default=50, show_default=True, type=click.IntRange(1, 10_000))
@click.option(
    "--sweep-seconds",
    default=1.0,
    show_default=True,
    type=Number(0.2, 600),
    help="The scheduler's interval; in a fleet it is EFFACED_SWEEP_SECONDS.",
)
@_common
def latency(samples: int, sweep_seconds: float, url: str | None, as_json: bool) -> None:
    """From commit to claim, with the doorbell and with the sweep alone."""
    _show(
        bench_latency(samples=samples, sweep_seconds=sweep_seconds, url=url, progress=_progress("latency")),
        as_json,
    )


@click.command("erase")
@click.option("--people", default=300, show_default=True, type=click.IntRange(5, 100_000))
@_common
def erase(people: int, url: str | None, as_json: bool) -> None:
    """The transaction that erases a person from three tables and enqueues four calls."""
    _show(bench_erase(people=people, url=url, progress=_progress("erase")), as_json)


@click.command("intake")
@click.option(
    "--requests", default=600, show_default=True, type=click.IntRange(10, 100_000), help="Per round."
)
@click.option("--clients", default=8, show_default=True, type=click.IntRange(1, 64), help="At the same time.")
@_ROUNDS
@_common
def intake(requests: int, clients: int, rounds: int, url: str | None, as_json: bool) -> None:
    """Requests per second over HTTP, accepted and executed, by two web processes."""
    report = bench_intake(
        requests=requests, clients=clients, rounds=rounds, url=url, progress=_progress("intake")
    )
    _show(report, as_json)


@click.command("bulk")
@click.option("--rows", default=1_000_000, show_default=True, type=click.IntRange(1_000, 100_000_000))
@click.option("--batch-rows", default=20_000, show_default=True, type=click.IntRange(100, 1_000_000))
@_common
def bulk(rows: int, batch_rows: int, url: str | None, as_json: bool) -> None:
    """A person with very many rows in one table: batches beside one transaction."""
    _show(bench_bulk(rows=rows, batch_rows=batch_rows, url=url, progress=_progress("bulk")), as_json)


@click.command("plan")
@click.option("--tables", default=300, show_default=True, type=click.IntRange(1, 5_000))
@click.option("--simple", is_flag=True, help="Tables whose rows all simply go, not some of everything.")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(1, 100))
@_common
def plan(tables: int, simple: bool, rounds: int, url: str | None, as_json: bool) -> None:
    """Checking a data map of many tables and making its statements."""
    report = bench_plan(tables=tables, simple=simple, rounds=rounds, url=url, progress=_progress("plan"))
    _show(report, as_json)


@click.command("claim")
@_TERMINAL
@_PARKED
@click.option(
    "--batch", default=200, show_default=True, type=click.IntRange(1, 1_000), help="Entries per claim."
)
@click.option("--claims", default=31, show_default=True, type=click.IntRange(1, 1_000), help="On each side.")
@_common
def claim(terminal: int, parked: int, batch: int, claims: int, url: str | None, as_json: bool) -> None:
    """One claim among entries that nobody may claim, and in an empty table."""
    _show(
        bench_claim(
            terminal=terminal, parked=parked, batch=batch, claims=claims, url=url, progress=_progress("claim")
        ),
        as_json,
    )


@click.command("counts")
@_TERMINAL
@_PARKED
@click.option("--times", default=11, show_default=True, type=click.IntRange(1, 1_000), help="On each side.")
@_common
def counts(terminal: int, parked: int, times: int, url: str | None, as_json: bool) -> None:
    """Counting all entries by status."""
    _show(
        bench_counts(terminal=terminal, parked=parked, times=times, url=url, progress=_progress("counts")),
        as_json,
    )


@click.command("breaker")
@click.option("--calls", default=100_000, show_default=True, type=click.IntRange(1, 10_000_000))
@_ROUNDS
@_common
def breaker(calls: int, rounds: int, url: str | None, as_json: bool) -> None:
    """Admitting calls and reporting success: memory beside pybreaker, and Redis behind memory."""
    _show(bench_breaker(calls=calls, rounds=rounds, url=url, progress=_progress("breaker")), as_json)


def _progress(name: str) -> Callable[[str], None]:
    return lambda what: click.echo(f"bench {name}: {what}", err=True)


def _show(report: Report, as_json: bool) -> None:
    click.echo(report.as_json() if as_json else report.as_text())
