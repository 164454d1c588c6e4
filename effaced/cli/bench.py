"""`effaced bench`."""

from __future__ import annotations

import click

from effaced.bench.drain import bench_drain


@click.group()
def bench() -> None:
    """Measure effaced against the raw SQL that writes the same rows, in one run."""


@bench.command("drain")
@click.option("--entries", default=20_000, show_default=True, type=click.IntRange(100, 5_000_000))
@click.option("--url", help="An empty PostgreSQL database to use; otherwise one is started for the run.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a sentence.")
def drain(entries: int, url: str | None, as_json: bool) -> None:
    """Entries per second from pending to settled, with a resolver that does nothing."""
    report = bench_drain(
        entries=entries, url=url, progress=lambda what: click.echo(f"bench drain: {what}", err=True)
    )
    click.echo(report.as_json() if as_json else report.as_text())
