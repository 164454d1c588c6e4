"""gunicorn, set up from code: no configuration file to forget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gunicorn.app.base import BaseApplication


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


def serve(build: Callable[[], object], *, bind: str, workers: int, threads: int) -> None:
    """Serve what `build` makes, until SIGTERM; requests under way are finished first."""
    _Server(
        build,
        {
            "bind": bind,
            "workers": workers,
            "threads": threads,
            "worker_class": "gthread",
            "graceful_timeout": 20,
            "timeout": 60,
            "keepalive": 5,
            "loglevel": "warning",
            "control_socket_disable": True,
        },
    ).run()
