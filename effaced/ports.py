"""Ports of this machine."""

from __future__ import annotations

import socket

from effaced.errors import ConfigurationError


def require_free(host: str, port: int) -> None:
    """Refuse a port that somebody listens on already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            raise ConfigurationError(f"Port {port} is taken. Choose another with --port.") from None


def free_port() -> int:
    """A port on loopback that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
