"""Ports of this machine. Nobody asks first whether one is free: somebody else could take it meanwhile."""

from __future__ import annotations

import errno
import socket

from effaced.core.errors import ConfigurationError

LOOPBACK = "127.0.0.1"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any that is free. Refuses what can't be had, with a sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(f"Port {port} is taken. Choose another with --port.") from None
        raise ConfigurationError(f"{host}, port {port}, can't be listened on: {error.strerror}.") from None


def address_of(listener: socket.socket) -> str:
    """Where it is reached over HTTP."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
