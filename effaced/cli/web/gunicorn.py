"""gunicorn, set up from code: no configuration file to forget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gunicorn.app.base import BaseApplication

from effaced.cli.web.worker import BufferingWorker


class _Server(BaseApplication):  # type: ignore[misc]
    def __init__(self, build: Callable[[], object], options: dict[str, Any]) -> None:
        self._build = build
        self._options = options
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> object:
        return self._build()


def serve(build: Callable[[], object], *, bind: str, workers: int, threads: int, most_body: int) -> None:
    """Serve what `build` makes, until SIGTERM; requests under way are finished first."""

    class Worker(BufferingWorker):
        pass

    Worker.most_body = most_body
    _Server(
        build,
        {
            "bind": bind,
            "workers": workers,
            "threads": threads,
            "worker_class": Worker,
            # Each connection is a file descriptor, and 1,024 of those is a common limit of a process.
            "worker_connections": 500,
            "graceful_timeout": 20,
            "timeout": 60,
            # Longer than a proxy keeps an idle connection to us: the proxy, not we, should close it.
            "keepalive": 75,
            "loglevel": "warning",
            "control_socket_disable": True,
        },
    ).run()
