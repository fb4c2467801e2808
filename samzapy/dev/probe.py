"""Ask a broker one question over a plain socket: who is in the cluster?

A Metadata request of version 2, written and read by hand: it names the brokers that are registered and unfenced, and the cluster's id,
which says that the answer comes from the cluster that was started here and not from another on the same port. Anything but a whole,
sound answer is no answer. A secured broker is asked over TLS, after a SASL PLAIN login.
"""

from __future__ import annotations

import socket
import ssl
import struct
from dataclasses import dataclass, field

_METADATA, _VERSION, _CORRELATION = 3, 2, 1
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Cluster:
    """What a broker says of its cluster. `controller` is -1 on the wire while there is none: None here.

    `addresses` is where the brokers say that clients reach them, host and port.
    """

    cluster_id: str
    nodes: frozenset[int]
    controller: int | None
    addresses: tuple[tuple[str, int], ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Login:
    """How to reach a secured broker: what checks its certificate, and a user of SASL PLAIN."""

    context: ssl.SSLContext
    user: str
    password: str = field(repr=False)


def ask_cluster(host: str, port: int, timeout_s: float = 2.0, login: Login | None = None) -> Cluster | None:
    """The cluster as the broker at this address sees it, None if it gives no answer."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as plain:
            plain.settimeout(timeout_s)
            if login is None:
                return read_metadata(_asked(plain, metadata_request()))
            with login.context.wrap_socket(plain, server_hostname=host) as connection:
                _log_in(connection, login)
                return read_metadata(_asked(connection, metadata_request()))
    except (OSError, ValueError, struct.error):
        return None


def metadata_request() -> bytes:
    return _request(_METADATA, _VERSION, struct.pack(">i", 0))


def _log_in(connection: socket.socket, login: Login) -> None:
    """SASL PLAIN, by the two requests that every broker knows.

    Raises:
        ValueError: refused.
    """
    token = f"\0{login.user}\0{login.password}".encode()
    for api, version, body in (
        (_SASL_HANDSHAKE, 1, struct.pack(">h", 5) + b"PLAIN"),
        (_SASL_AUTHENTICATE, 0, struct.pack(">i", len(token)) + token),
    ):
        answer = _Fields(_asked(connection, _request(api, version, body)))
        if answer.int32() != _CORRELATION or answer.int16() != 0:
            raise ValueError("the login was refused")


def _request(api: int, version: int, fields: bytes) -> bytes:
    client = b"samzapy"
    body = struct.pack(">hhih", api, version, _CORRELATION, len(client)) + client + fields
    return struct.pack(">i", len(body)) + body


def _asked(connection: socket.socket, request: bytes) -> bytes:
    """The reply to a request.

    Raises:
        ValueError: it has no sound size.
    """
    connection.sendall(request)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    if not 0 < size <= _MOST_BYTES:
        raise ValueError("not a reply")
    return _receive(connection, size)


def read_metadata(reply: bytes) -> Cluster:
    """Decode a reply.

    Raises:
        ValueError, struct.error: it is not one.
    """
    fields = _Fields(reply)
    if fields.int32() != _CORRELATION:
        raise ValueError("not the answer to this question")
    nodes, addresses = set(), []
    for _ in range(fields.int32()):
        nodes.add(fields.int32())
        addresses.append((fields.string() or "", fields.int32()))
        fields.string()  # rack
    cluster_id = fields.string()
    if cluster_id is None:
        raise ValueError("no cluster id")
    controller = fields.int32()
    return Cluster(cluster_id, frozenset(nodes), controller if controller >= 0 else None, tuple(addresses))


class _Fields:
    """Kafka's primitive types, read one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int32(self) -> int:
        (value,) = struct.unpack(">i", self._take(4))
        return int(value)

    def int16(self) -> int:
        (value,) = struct.unpack(">h", self._take(2))
        return int(value)

    def string(self) -> str | None:
        (size,) = struct.unpack(">h", self._take(2))
        return None if size < 0 else self._take(size).decode()

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise ValueError("reply cut short")
        taken, self._at = self._data[self._at : end], end
        return taken


def _receive(connection: socket.socket, size: int) -> bytes:
    chunks = bytearray()
    while len(chunks) < size:
        chunk = connection.recv(size - len(chunks))
        if not chunk:
            raise ValueError("connection closed")
        chunks += chunk
    return bytes(chunks)
