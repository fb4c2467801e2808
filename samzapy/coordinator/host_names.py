"""The host names that requests to the web listener may use.

A page in somebody's browser can give a name of its own the address of this machine (DNS rebinding), and would then read what is answered
here. It cannot choose what the browser sends as `Host`: that is the page's name. So only names that were meant are answered. An address
cannot be taken over like this; where the listener is on all addresses of the machine, each of them is one that was meant.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

ANY = ("0.0.0.0", "::")


class HostNames:
    """Loopback, the listener's own `host` (`web.host`), and `names` (`web.names`)."""

    def __init__(self, host: str = "127.0.0.1", names: Collection[str] = ()) -> None:
        self._names = {_bare(name) for name in ("localhost", host, *names)}
        self._any_address = _bare(host) in ANY

    def allow(self, header: str) -> bool:
        """Whether a request with this `Host` is answered."""
        name = _bare(_without_port(header))
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or self._any_address


def _without_port(header: str) -> str:
    host, colon, port = header.rpartition(":")
    return host if colon and port.isdecimal() and (":" not in host or host.endswith("]")) else header


def _bare(name: str) -> str:
    return name.strip().removeprefix("[").removesuffix("]").removesuffix(".").lower()
