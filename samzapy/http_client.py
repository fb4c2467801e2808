"""One request over HTTP to one of ours, or to a Spark master: bounded in time and size, to the address given and nowhere else."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

MAX_ANSWER_BYTES = 16 << 20
_trusted: set[Path] = set()
NO_ANSWER = (OSError, ValueError, http.client.HTTPException)  # what `ask` and `Answer.json` raise where nobody answers, or not soundly


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    reason: str
    body: bytes
    headers: Message = field(default_factory=Message, hash=False)

    @property
    def is_ok(self) -> bool:
        return self.status == http.client.OK

    def json(self) -> Any:
        """Raises: ValueError: it is none, or nested too deep."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("nested too deep") from None


def ask(
    method: str, host: str, port: int | None, path: str, timeout_s: float, body: bytes = b"", headers: Mapping[str, str] | None = None,
    *, is_tls: bool = False,
) -> Answer:  # fmt: skip
    """One request on a connection of its own; `timeout_s` is for all of it, however slowly the other end sends. Nothing is decompressed.
    `is_tls`: the other end's certificate must be right: signed by one that the system trusts, or that `trust` was told of.

    Raises:
        NO_ANSWER: nobody answers there in time, or not with HTTP.
    """
    deadline = time.monotonic() + timeout_s
    if is_tls:
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=_context())
    else:
        connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    cut: threading.Timer | None = None
    try:
        connection.connect()
        cut = threading.Timer(max(0.0, deadline - time.monotonic()), _cut, [connection.sock])
        cut.daemon = True
        cut.start()
        connection.request(method, path, body or None, dict(headers or {}))
        response = connection.getresponse()
        answer = Answer(response.status, response.reason, response.read(MAX_ANSWER_BYTES), response.headers)
    except NO_ANSWER:
        if time.monotonic() >= deadline:  # cut by us: what http.client makes of it says nothing
            raise _late(timeout_s) from None
        raise
    finally:
        if cut is not None:
            cut.cancel()
        connection.close()
    if time.monotonic() >= deadline:  # it may have been cut in the middle
        raise _late(timeout_s)
    return answer


def trust(certificate: Path) -> None:
    """From now on take a certificate for right that this one, or one in this file, has signed."""
    _trusted.add(certificate)


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    for certificate in _trusted:
        context.load_verify_locations(certificate)
    return context


def _late(timeout_s: float) -> TimeoutError:
    return TimeoutError(f"no whole answer in {timeout_s:.1f} s")


def _cut(connected: socket.socket) -> None:
    """End whatever waits for this connection."""
    with contextlib.suppress(OSError):  # it is closed already
        connected.shutdown(socket.SHUT_RDWR)
