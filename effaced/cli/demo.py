"""`effaced demo`: drills on a demo that runs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

from effaced.breakers.model import BreakerState, Transition
from effaced.cli.numbers import Number
from effaced.core import clock
from effaced.core.config import load_settings
from effaced.core.errors import Unavailable
from effaced.demo.outage import DrillStatus, Outage
from effaced.demo.running import Running, find_running
from effaced.runtime import Runtime

# People keep asking while the vendor is down: some at once, one more every few seconds.
_AT_ONCE = 4
_EVERY = 5.0
_LOOK_EVERY = 0.5
_PATIENCE = 180.0
_STYLES = {BreakerState.CLOSED: "green", BreakerState.HALF_OPEN: "yellow", BreakerState.OPEN: "red"}
_MOVES = {
    BreakerState.OPEN: "The breaker has opened ({reason}): no calls until the next probe.",
    BreakerState.HALF_OPEN: "A probe is on its way: one call, which costs no attempt.",
    BreakerState.CLOSED: "The probe went well: the breaker has closed, and what waited goes out.",
}


@click.command("outage")
@click.argument("vendor")
@click.option(
    "--minutes",
    default=2.0,
    show_default=True,
    type=Number(0.02, 60),
    help="How long the vendor is down.",
)
@click.option(
    "--requests",
    "most",
    default=12,
    show_default=True,
    type=click.IntRange(1, 50),
    help="How many people ask to be forgotten meanwhile.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("var"),
    show_default=True,
    help="The data folder of the demo that runs.",
)
def outage(vendor: str, minutes: float, most: int, data: Path) -> None:
    """Take a fake VENDOR down for a while, and watch its breaker. Ctrl-C ends the outage.

    People keep asking to be forgotten meanwhile: their calls wait and lose no attempt. At the end it reports,
    from the database, what became of them.
    """
    running = find_running(data)
    os.environ.update(running.environ)
    runtime = Runtime(load_settings())
    try:
        drill = Outage(runtime, running.vendors, vendor)
        status = _run(drill, running, minutes * 60, most)
    finally:
        runtime.db.dispose()
    _print_figures(status)
    if status.lost or status.waiting:
        raise SystemExit(1)


def _run(drill: Outage, running: Running, seconds: float, most: int) -> DrillStatus:
    show = _Show(drill)
    drill.begin(seconds)
    if not drill.ask(min(most, _AT_ONCE)):
        drill.end()
        raise Unavailable("Everybody in the demo has asked already. Start it again for new people.")
    where = f"{running.console}/console/resolvers"
    show.say(f"{drill.vendor} is down for {seconds:g} seconds; watch {where}. Ctrl-C ends it.")
    with show:
        try:
            _while_down(drill, show, clock.monotonic() + seconds, most)
        except KeyboardInterrupt:
            show.say("Ended early.")
        finally:
            drill.end()
        show.say(f"{drill.vendor} is back. Nobody knows yet: the next probe will find out.")
        return _until_recovered(show)


def _while_down(drill: Outage, show: _Show, end: float, most: int) -> None:
    ask_at = clock.monotonic() + _EVERY
    while (left := end - clock.monotonic()) > 0:
        if clock.monotonic() >= ask_at and len(drill.asked) < most:
            ask_at += _EVERY
            drill.ask()
        show.update(f"back in {left:.0f} s")
        time.sleep(min(_LOOK_EVERY, left))


def _until_recovered(show: _Show) -> DrillStatus:
    """Until nothing waits any more and the breaker is closed, or patience ends."""
    deadline = clock.monotonic() + _PATIENCE
    while True:
        status = show.update("works again")
        over = not status.waiting and status.state is BreakerState.CLOSED
        if over or clock.monotonic() > deadline:
            return status
        time.sleep(_LOOK_EVERY)


class _Show:
    """Moves as lines, and beneath them how things stand, as long as it is a terminal that looks on."""

    def __init__(self, drill: Outage) -> None:
        self._drill = drill
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._moves = 0

    def __enter__(self) -> _Show:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, what: str, style: str = "") -> None:
        self._console.print(f"{clock.now():%H:%M:%S}  {what}", style=style, soft_wrap=True)

    def update(self, vendor: str) -> DrillStatus:
        for move in self._drill.moves(self._moves):
            self._moves += 1
            self.say(_about(move), _STYLES[move.new])
        status = self._drill.read_status()
        if self._console.is_terminal:
            self._live.update(_table(self._drill.vendor, vendor, status), refresh=True)
        return status


def _about(move: Transition) -> str:
    return _MOVES[move.new].format(reason=move.reason.replace("_", " "))


def _table(name: str, vendor: str, status: DrillStatus) -> Table:
    left = "" if status.until is None else f", probe in {_seconds(status):.0f} s"
    table = Table(show_header=False, box=None)
    table.add_row(name, vendor)
    table.add_row("breaker", f"[{_STYLES[status.state]}]{status.state.replace('_', ' ')}[/]{left}")
    table.add_row("waiting", f"{status.waiting} of {status.requests} calls, {status.through} through")
    table.add_row("attempts used", f"at most {status.attempts} of {status.most_attempts}")
    table.add_row("probes", str(status.probes))
    table.add_row("other systems", f"{status.elsewhere} calls done meanwhile")
    table.add_row("lost", str(status.lost))
    return table


def _seconds(status: DrillStatus) -> float:
    return 0.0 if status.until is None else max(0.0, (status.until - clock.now()).total_seconds())


def _print_figures(status: DrillStatus) -> None:
    """The figures, as the database has them."""
    click.echo(
        f"{status.requests} requests: {status.through} calls through, {status.waiting} waiting,"
        f" {status.abandoned} abandoned, {status.letters} dead letters."
    )
    click.echo(
        f"Attempts used: at most {status.attempts} of {status.most_attempts}. Probes: {status.probes}."
    )
    click.echo("Zero lost." if not status.lost else f"Lost: {status.lost}.")
