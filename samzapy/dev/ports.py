"""Ports of this machine: which are free, and whether one is."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from samzapy.api.errors import ConfigurationError

LOOPBACK = "127.0.0.1"


class PortTaken(Exception):
    """A port that was free when it was chosen was not when the server bound it."""


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now.

    Raises:
        ConfigurationError: this user may not.
    """
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((host, port))
        except PermissionError:
            raise ConfigurationError(f"port {port} may not be used by this user.", "Choose one from 1024 on, or 0 for any free one.") from None
        except OSError:
            return False
    return True


def free_ports(count: int, besides: Sequence[int] = ()) -> list[int]:
    """Ports that nothing listens on now, all different."""
    held: list[socket.socket] = []
    ports: list[int] = []
    try:
        while len(ports) < count:
            candidate = socket.socket()
            held.append(candidate)
            candidate.bind((LOOPBACK, 0))
            port = int(candidate.getsockname()[1])
            if port not in besides:
                ports.append(port)
    finally:
        for candidate in held:
            candidate.close()
    return ports
