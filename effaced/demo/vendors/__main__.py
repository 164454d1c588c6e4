"""`python -m effaced.demo.vendors`: the fake vendors as a process of their own, until SIGTERM."""

from __future__ import annotations

import signal
import socket
from datetime import timedelta
from pathlib import Path
from threading import Event

import click

from effaced.core.errors import EffacedError
from effaced.core.private_files import keep_files_private
from effaced.demo.company import demo_people, vendor_records
from effaced.demo.vendors import DEMO_TOKEN, VENDORS, Vendors


@click.command("vendors")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=9100, show_default=True, help="0 for a free one."
)
@click.option("--socket", "sockets", multiple=True, hidden=True, help="VENDOR=FD, a listening socket's.")
@click.option(
    "--token",
    envvar="EFFACED_DEMO_TOKEN",
    default=DEMO_TOKEN,
    help="What callers must show as Bearer token (EFFACED_DEMO_TOKEN).",
)
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="SQLite file that remembers the records; without it they are in memory.",
)
@click.option(
    "--people", type=click.IntRange(0), default=300, show_default=True, help="How many to know at first."
)
@click.option(
    "--seed", type=int, default=7, show_default=True, help="Which people; as the company was filled."
)
@click.option(
    "--expire-after",
    type=click.FloatRange(0),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="How long the mailing list takes to forget.",
)
def main(
    port: int,
    sockets: tuple[str, ...],
    token: str,
    state: Path | None,
    people: int,
    seed: int,
    expire_after: float,
) -> None:
    """Run the demo company's fake vendors on 127.0.0.1. Switch faults on and off on the page at /."""
    keep_files_private()
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    vendors = Vendors(
        port=port,
        sockets={name: socket.socket(fileno=int(fd)) for name, fd in (each.split("=") for each in sockets)},
        token=token,
        state=state,
        expire_after=timedelta(seconds=expire_after),
    )
    try:
        if vendors.store.is_new:
            for name, records in vendor_records(demo_people(people, seed)).items():
                vendors.seed(name, records)
        vendors.start()
        click.echo(f"Fake vendors at {vendors.base_url}")
        for name in VENDORS:
            click.echo(f"  {name} at {vendors.url(name)}")
        stop.wait()
    except EffacedError as error:
        raise click.ClickException(str(error)) from None
    finally:
        vendors.stop()


if __name__ == "__main__":
    main()
