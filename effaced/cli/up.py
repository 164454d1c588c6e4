"""`effaced up`: everything on one machine, with a private Valkey and nothing to install besides."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from socket import socket

import click
import httpx

from effaced import demo
from effaced import migrate as migrations
from effaced.cli.supervise import Child, Supervisor
from effaced.core import log
from effaced.core.config import Settings, is_set, load_settings
from effaced.core.crypto import new_key
from effaced.core.errors import Unavailable
from effaced.core.ports import LOOPBACK, address_of, listen
from effaced.core.private_files import private_file, private_folder, write_private
from effaced.core.servers import Valkey
from effaced.demo.load import OFFICER, PASSWORD, Demo, Loaded
from effaced.demo.running import write_running_file
from effaced.demo.vendors import DEMO_TOKEN, VENDORS
from effaced.demo.vendors.server import EVERY_VENDOR
from effaced.runtime import Runtime

_DEMO = Path(demo.__file__).parent
_START_SECONDS = 120.0
_NO_SOCKETS: Mapping[str, socket] = {}


@click.command()
@click.option(
    "--demo", "with_demo", is_flag=True, help="An invented company with fake vendors, new each time."
)
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65_535), help="0 for a free one."
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("var"),
    show_default=True,
    help="Where keys, logs and the embedded database are kept.",
)
def up(with_demo: bool, port: int, data: Path) -> None:
    """Run web, worker and scheduler on this machine, with a private Valkey. Ctrl-C stops everything.

    Without --demo it runs on your settings (EFFACED_*); a key is made and kept if EFFACED_KEYS is not set.
    """
    with ExitStack() as stack:
        # Taken here and handed down: they stay ours while what answers on them is started again.
        web = stack.enter_context(listen(LOOPBACK, port))
        named = (EVERY_VENDOR, *VENDORS) if with_demo else ()
        vendors = {name: stack.enter_context(listen(LOOPBACK, 0)) for name in named}
        folder = _new_folder(data, with_demo)
        supervisor = Supervisor()
        supervisor.stop_on_signals()
        stack.callback(supervisor.end)
        valkey = Valkey()
        valkey.start()
        stack.callback(valkey.close)
        environ = _environment(folder, valkey.url, vendors)
        os.environ.update(environ)
        settings = load_settings()
        log.configure("critical" if with_demo else "warning", "text")  # the demo fails on purpose
        _say("Bringing the database up to date")
        migrations.upgrade(settings.database_url)
        spawn = _spawner(supervisor, folder, {**os.environ, **environ})
        spawn_vendors = partial(spawn, module="effaced.demo.vendors", sockets=vendors)
        loaded = _load_demo(settings, supervisor, spawn_vendors, folder) if with_demo else None
        Runtime(settings).require_ready()
        log.configure("warning", "text")
        _say("Starting web, scheduler and worker")
        spawn("web", "web", sockets={"": web})
        spawn("scheduler", "scheduler")
        spawn("worker", "worker")
        address = address_of(web)
        if not supervisor.wait_until(lambda: _answers(f"{address}/healthz"), seconds=_START_SECONDS):
            raise Unavailable(f"effaced did not come up. What it said is in {folder / 'logs'}.")
        if with_demo:
            stack.callback(write_running_file(folder, address, os.environ).unlink, missing_ok=True)
        _welcome(address, folder, loaded)
        supervisor.watch()
        _say("Stopping")
    click.echo("Stopped.")


def _new_folder(data: Path, with_demo: bool) -> Path:
    folder = (data / "demo" if with_demo else data).resolve()
    if with_demo and folder.exists():
        shutil.rmtree(folder)
    private_folder(folder)
    private_folder(folder / "logs")
    return folder


def _environment(folder: Path, redis_url: str, vendors: Mapping[str, socket]) -> dict[str, str]:
    with_demo = bool(vendors)
    environ = {
        "EFFACED_REDIS_URL": redis_url,
        "EFFACED_SECURE_COOKIES": "false",
        "EFFACED_LOG_FORMAT": "text",
    }
    if with_demo or not is_set("keys"):
        environ["EFFACED_KEYS"] = _kept_key(folder / "keys")
        if not with_demo:
            _say(f"Using the key in {folder / 'keys'}. Back it up: without it nothing sealed opens")
    if with_demo or not is_set("database_url"):
        environ["EFFACED_DATABASE_URL"] = f"sqlite:///{folder / 'effaced.db'}"
    if with_demo:
        environ |= {
            "EFFACED_DATAMAP": str(_DEMO / "datamap.yaml"),
            "EFFACED_RESOLVERS": str(_DEMO / "resolvers.yaml"),
            "EFFACED_BREAKERS": str(_DEMO / "breakers.yaml"),
            "EFFACED_DEMO_VENDORS": address_of(vendors[EVERY_VENDOR]),
            "EFFACED_DEMO_TOKEN": DEMO_TOKEN,
            **{f"EFFACED_DEMO_{name.upper()}": f"{address_of(vendors[name])}/{name}" for name in VENDORS},
            "EFFACED_SWEEP_SECONDS": "2",
        }
    return environ


def _kept_key(path: Path) -> str:
    """The key of this folder, made when first asked for and readable by its owner alone."""
    if not path.exists():
        write_private(path, new_key() + "\n")
    return private_file(path).read_text().strip()


def _spawner(supervisor: Supervisor, folder: Path, environ: dict[str, str]) -> Callable[..., None]:
    def spawn(
        name: str, *arguments: str, module: str = "effaced", sockets: Mapping[str, socket] = _NO_SOCKETS
    ) -> None:
        handed = [f"--socket={key and f'{key}='}{each.fileno()}" for key, each in sockets.items()]
        command = [sys.executable, "-m", module, *arguments, *handed]
        inherited = tuple(each.fileno() for each in sockets.values())
        supervisor.start(Child(name, command, folder / "logs" / f"{name}.log", environ, inherited))

    return spawn


def _load_demo(
    settings: Settings, supervisor: Supervisor, spawn: Callable[..., None], folder: Path
) -> Loaded:
    vendors = os.environ["EFFACED_DEMO_VENDORS"]
    spawn("vendors", "--state", str(folder / "vendors.db"))
    if not supervisor.wait_until(lambda: _answers(vendors), seconds=_START_SECONDS):
        raise Unavailable(f"The fake vendors did not start. What they said is in {folder / 'logs'}.")
    runtime = Runtime(settings)
    try:
        return Demo(runtime, vendors).load(lambda what: _say(f"Demo: {what}"))
    finally:
        runtime.db.dispose()


def _welcome(address: str, folder: Path, loaded: Loaded | None) -> None:
    click.echo()
    click.echo(f"  Console   {click.style(address, bold=True)}")
    if loaded:
        click.echo(f"  Sign in   {OFFICER}  /  {PASSWORD}   (also admin@ and auditor@demo.example)")
        click.echo(f"  Vendors   {os.environ['EFFACED_DEMO_VENDORS']}   (switch faults on and watch)")
        click.echo(f"  Drill     {_command()} demo outage payment   (in another terminal)")
        click.echo(f"  API key   {loaded.api_token}")
    else:
        click.echo("  Sign in   `effaced officer add` makes the first officer")
    click.echo(f"  Logs      {folder / 'logs'}")
    click.echo("\n  Ctrl-C stops everything.\n")


def _command() -> str:
    """What to type in another terminal of the same folder: as this process was started, if by that name."""
    typed = Path(sys.argv[0])
    return str(typed) if typed.name == "effaced" else "effaced"


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code < 500
    except httpx.HTTPError:
        return False


def _say(what: str) -> None:
    click.echo(f"{what} ...")
