"""A TCP relay between containers and their coordinator, which a test can cut: a network that parts them while both live.

`cut` is what a partition looks like: connections are still made and nothing comes through, in either direction; what was under way arrives
when the link is mended, late. `refuse` is what a closed port looks like. `url` is given to containers as their `control_url`.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
CHUNK = 64 << 10
CONNECT_S = 5.0


class TcpRelay:
    """Passes connections on to `target` (http://host:port); listens on a port of its own from the start."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        assert parts.hostname is not None, f"{target} names no host"
        assert parts.port is not None, f"{target} names no port"
        self._target = parts.hostname, parts.port
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._passes = threading.Event()
        self._passes.set()
        self._refuses = False
        self._closing = False
        self.connections = 0
        self._listener = socket.create_server((LOOPBACK, 0))
        threading.Thread(target=self._accept, name="relay", daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._listener.getsockname()[1]}"

    def __enter__(self) -> TcpRelay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cut(self) -> None:
        """Nothing comes through any more; nobody is told."""
        self._passes.clear()

    def refuse(self) -> None:
        """Connections that are open are reset, new ones as well."""
        with self._lock:
            self._refuses = True
        self._close_all()

    def mend(self) -> None:
        """As at the start; what was held back arrives now."""
        with self._lock:
            self._refuses = False
        self._passes.set()

    def close(self) -> None:
        with self._lock:
            self._closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._close_all()
        self._passes.set()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # closed
            with self._lock:
                if self._closing or self._refuses:
                    _reset(near)
                    continue
                self._sockets.add(near)
                self.connections += 1
            threading.Thread(target=self._serve, args=(near,), name="relay-connection", daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        self._passes.wait()
        try:
            far = socket.create_connection(self._target, CONNECT_S)
        except OSError:
            self._drop(near)
            return
        far.settimeout(None)
        with self._lock:
            self._sockets.add(far)
            closed = near not in self._sockets
        if closed:
            self._drop(far)
            return
        back = threading.Thread(target=self._pump, args=(far, near), name="relay-back", daemon=True)
        back.start()
        self._pump(near, far)
        back.join()
        self._drop(near, far)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        """Until the source ends; its end is passed on."""
        try:
            while data := source.recv(CHUNK):
                self._passes.wait()
                sink.sendall(data)
            self._passes.wait()
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(source, sink)

    def _drop(self, *ended: socket.socket) -> None:
        with self._lock:
            self._sockets.difference_update(ended)
        for one in ended:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _close_all(self) -> None:
        with self._lock:
            ended = list(self._sockets)
        self._drop(*ended)


def _reset(connection: socket.socket) -> None:
    """Close with a reset, as a port where nobody listens would answer."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    connection.close()
