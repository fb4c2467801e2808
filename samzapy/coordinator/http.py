"""An HTTP server on a thread of its own, and how a request's body is read: bounded, before anything looks at it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request

from samzapy.api.errors import LauncherError

START_PATIENCE_S = 10.0
FORBIDDEN, CONFLICT, TOO_LARGE, BAD, UNAVAILABLE = 403, 409, 413, 400, 503


class TooLarge(ValueError):
    """A body of more bytes than are taken."""


async def body_of(request: Request, limit_bytes: int) -> bytes:
    """The request's body.

    Raises:
        TooLarge: it has more than `limit_bytes`.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit_bytes:
            raise TooLarge(f"more than {limit_bytes} bytes")
    return body


class Listener:
    """One HTTP server on a thread. `port` 0: any free one; `url` is known as soon as the object is made."""

    def __init__(self, app: Starlette, host: str, port: int) -> None:
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            raise LauncherError(
                f"cannot listen on {host}:{port}: {error.strerror}.", "Choose another `web.port`, or 0 for any free one."
            ) from None
        self._socket.listen(128)
        self.url = f"http://{host}:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._serve, name=f"listener {self.url}", daemon=True)

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def start(self) -> None:
        self._thread.start()
        deadline = time.monotonic() + START_PATIENCE_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise LauncherError(f"the listener {self.url} did not start.", "See the log.")
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()
