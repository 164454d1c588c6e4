"""`effaced web | worker | scheduler | drain`: the processes of a fleet."""

from __future__ import annotations

import asyncio
import socket

import click

from effaced.core.config import Settings
from effaced.core.log import get_logger
from effaced.core.ports import address_of, listen
from effaced.outbox.due import due_resolvers
from effaced.outbox.flow import ALL, pauses
from effaced.retries.metrics import RetryMetrics
from effaced.runtime import Runtime
from effaced.worker.process import install_bell, require_bell, work
from effaced.worker.schedule import Scheduler

_log = get_logger(__name__)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65_535), help="0 for a free one."
)
@click.option("--socket", "inherited", type=int, help="An inherited socket that listens already.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes.")
@click.option("--threads", default=8, show_default=True, type=click.IntRange(1, 64), help="Threads of each.")
@click.pass_obj
def web(settings: Settings, host: str, port: int, inherited: int | None, workers: int, threads: int) -> None:
    """Serve the API and the console (gunicorn)."""
    from effaced.app import create_app
    from effaced.cli.web.gunicorn import serve

    # Refuse to start here, with a sentence, rather than in every worker with a traceback.
    listener = listen(host, port) if inherited is None else socket.socket(fileno=inherited)
    runtime = Runtime(settings)
    runtime.require_ready()
    runtime.db.dispose()

    def build() -> object:
        mine = Runtime(settings)
        install_bell(mine)
        return create_app(mine)

    _log.info("web_started", url=address_of(listener))
    serve(
        build,
        bind=f"fd://{listener.detach()}",
        workers=workers,
        threads=threads,
        most_body=settings.max_body_bytes,
    )


_BREAKER = click.option(
    "--breaker",
    "breakers",
    metavar="KEY=VALUE",
    multiple=True,
    help="A breaker policy's field for this process, such as defaults.fail_max=3; over file and environment.",
)


@click.command()
@click.option("--burst", is_flag=True, help="Stop when the queue is empty.")
@_BREAKER
@click.pass_obj
def worker(settings: Settings, burst: bool, breakers: tuple[str, ...]) -> None:
    """Make the external calls (RQ worker). Start as many as you like."""
    work(Runtime(settings, breaker_overrides=breakers), burst=burst)


@click.command()
@click.pass_obj
def scheduler(settings: Settings) -> None:
    """Start whatever is due, every few seconds. One is enough; more do no harm."""
    runtime = Runtime(settings)
    bell = require_bell(runtime)
    runtime.require_ready()
    Scheduler(runtime, bell).run()


@click.command()
@_BREAKER
@click.pass_obj
def drain(settings: Settings, breakers: tuple[str, ...]) -> None:
    """Do everything that is due, once, without Redis: for cron, and for places without workers."""
    runtime = Runtime(settings, breaker_overrides=breakers)
    try:
        click.echo(_drain_once(runtime))
    finally:
        runtime.db.dispose()


def _drain_once(runtime: Runtime) -> str:
    """Do once everything that workers and scheduler would do now. Returns a summary."""
    runtime.require_ready()
    runtime.restart_waits()
    runtime.advance_redrives()
    executed = runtime.executor.execute_due(limit=100_000)
    runner = runtime.runner()
    total = 0
    while settled := asyncio.run(runner.run_once()):
        total += settled
    runtime.report_absence_spikes()
    delivered = asyncio.run(runtime.deliverer().run())
    exported = runtime.export_maker().run()
    runtime.end_retentions()
    runtime.tidy()
    RetryMetrics(runtime.db).aggregate_hourly()  # where cron does the work, no scheduler counts
    messages = f" Delivered {delivered} messages." if len(runtime.targets) else ""
    messages += f" Made {exported} audit exports." if exported else ""
    done = f"Executed {executed} requests and settled {total} external calls.{messages}"
    return f"{done} {_left(runtime)}"


def _left(runtime: Runtime) -> str:
    """What waits although its time has come, and for whom."""
    with runtime.db.read() as session:
        due, found = due_resolvers(session), pauses(session)
    held = sorted(due - runtime.due())
    paused = ["everything"] if ALL in found else sorted(found)
    said = [f"Paused: {', '.join(paused)}."] if paused else []
    said += [f"Held back by a breaker: {', '.join(held)}."] if held else []
    return " ".join(said) or "Nothing else is due."
