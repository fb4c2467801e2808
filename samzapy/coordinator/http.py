"""An HTTP server on a thread of its own that strangers cannot bring to a stop, and how a request's body is read.

Connections are accepted here and not by asyncio, which takes as many as come. `door` says who stays. A stranger's connection carries one
request: its head must be there after HEAD_S, its answer must be taken away after REQUEST_S. One on which a signed request came stays open
for the next, so a container once heard never has to come in through a crowd again. Where no more files can be opened, that is said once a
minute, and accepting waits.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import ssl
import threading
import time
from typing import Any, cast

import uvicorn
from h11 import LocalProtocolError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from samzapy.api.errors import LauncherError
from samzapy.coordinator.door import Door, connections_taken, peer_of
from samzapy.coordinator.seldom import Seldom

START_PATIENCE_S = 10.0
PORT_ERRORS = (errno.EADDRINUSE, errno.EACCES)  # privileged, or taken
FORBIDDEN, CONFLICT, TOO_LARGE, BAD, UNAVAILABLE, MISDIRECTED, TOO_MANY = 403, 409, 413, 400, 503, 421, 429
HEAD_S = 10.0
REQUEST_S = 60.0
BACK_OFF_S = 0.5
BACKLOG = 4096  # the system takes less where it allows less (net.core.somaxconn)
WEB_CONNECTIONS = 64
MAX_HEAD_BYTES = 16 << 10
THROWN_AWAY_BYTES, THROWN_AWAY_S = 1 << 20, 5.0  # of the body of a request that is refused, so that its sender can read the answer
LOG = logging.getLogger("samzapy.listener")
LOG.addFilter(Seldom(60.0))


class TooLarge(ValueError):
    """A body of more bytes than are accepted."""


async def body_of(request: Request, limit_bytes: int) -> bytes:
    """The request's body.

    Raises:
        TooLarge: it has more than `limit_bytes`. starlette.requests.ClientDisconnect: the sender went away.
    """
    _check_length(request, limit_bytes)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit_bytes:
            raise TooLarge(f"more than {limit_bytes} bytes")
    return bytes(body)


def _check_length(request: Request, limit_bytes: int) -> None:
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and (len(length) > 18 or int(length) > limit_bytes):
        raise TooLarge(f"more than {limit_bytes} bytes")


async def throw_away(request: Request) -> None:
    """Read the rest of a refused request's body without keeping it, for at most THROWN_AWAY_S.

    Raises:
        starlette.requests.ClientDisconnect: the sender went away.
    """
    left = THROWN_AWAY_BYTES
    try:
        async with asyncio.timeout(THROWN_AWAY_S):
            async for chunk in request.stream():
                left -= len(chunk)
                if left < 0:
                    return
    except TimeoutError:
        return
    except RuntimeError:  # starlette's word for: the stream was read to its end before
        return


def knows(request: Request, *, only_reads: bool = False) -> None:
    """The request has a token of the run, or is signed with it: its connection may stay. `only_reads`: the token gives no other right."""
    connection = getattr(request.state, "connection", None)
    if connection is not None:
        connection.knows(only_reads)


def is_closing(request: Request) -> bool:
    """Whether the listener that this request came in by is about to end."""
    connection = getattr(request.state, "connection", None)
    return connection is not None and connection.is_closing


class Listener:
    """One HTTP server on a thread. `port` 0: any free one; `url` is known as soon as the object is made.

    Args:
        connections: how many strangers may be connected at once; fewer are taken where this process may open few files.
        head_s: how long the head of a request may take. request_s: how long the rest of it and its answer may take.
        tls: https, and nothing else, with this; `name`: under which clients find the certificate right.
    """

    def __init__(
        self, app: Starlette, host: str, port: int, connections: int = WEB_CONNECTIONS, head_s: float = HEAD_S, request_s: float = REQUEST_S,
        *, tls: ssl.SSLContext | None = None, name: str = "",
    ) -> None:  # fmt: skip
        host = host.removeprefix("[").removesuffix("]")
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            remedy = "Choose another `web.port`, or 0 for any free one." if error.errno in PORT_ERRORS else "Choose another `web.host`: an address of this machine."
            raise LauncherError(f"cannot listen on {_shown(host)}:{port}: {error.strerror}.", remedy) from None
        self._socket.listen(BACKLOG)
        self._socket.setblocking(False)
        self.url = f"{'https' if tls else 'http'}://{_shown(name or host)}:{self._socket.getsockname()[1]}"
        open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._server = _Server(app, self._socket, self.url, Door(connections_taken(connections, open_files)), head_s, request_s, tls)
        self._thread = threading.Thread(target=self._serve, name=f"listener {self.url}", daemon=True)

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[]))

    def start(self) -> None:
        self._thread.start()
        deadline = time.monotonic() + START_PATIENCE_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise LauncherError(f"the listener {self.url} did not start.", "See the log.")
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(timeout=5)
        self._socket.close()


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Http(H11Protocol):
    """uvicorn's HTTP. A request to upgrade to another protocol, such as WebSocket, is answered in HTTP as if it had not asked."""

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing is logged: clients must not be able to fill the log, and uvicorn's advice to install a library would not help."""

    def send_400_response(self, msg: str) -> None:
        """What is wrong may be in the body of a request that the application is at, whose answer then goes nowhere, or that is answered already."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except LocalProtocolError:
            self.transport.close()


class _Server(uvicorn.Server):
    """uvicorn, but accepting connections is done here."""

    def __init__(
        self, app: Starlette, listening: socket.socket, url: str, door: Door, head_s: float, request_s: float, tls: ssl.SSLContext | None
    ) -> None:
        self._app = app
        self._tls, self._handshakes = tls, set[asyncio.Task[None]]()
        self.head_s, self.request_s = head_s, request_s
        self._listening = listening
        self._url = url
        self.door = door
        self._accepting: asyncio.Task[None] | None = None
        self._connections: dict[Any, Connection] = {}
        config = uvicorn.Config(
            self._asked, interface="asgi3", http=_Http, ws="none", log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES, timeout_keep_alive=int(REQUEST_S), server_header=False,
        )  # fmt: skip
        super().__init__(config)
        for logger in ("uvicorn.error", "asyncio"):
            if not any(isinstance(f, Seldom) for f in logging.getLogger(logger).filters):
                logging.getLogger(logger).addFilter(Seldom(60.0))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        self._accepting = asyncio.create_task(self._accept())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
        await super().shutdown(sockets=[])

    async def _asked(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection: Connection = scope["state"]["connection"]
        connection.has_asked()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and not connection.is_known:
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive, answer)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connected, address = await loop.sock_accept(self._listening)
            except ConnectionError:
                continue  # it has gone already
            except OSError as error:
                LOG.warning("%s: no connection can be accepted now: %s; trying again every %.1f s", self._url, error.strerror, BACK_OFF_S)
                self._send_away(self.door.longest(time.monotonic()), "no more files can be opened (ulimit -n)")
                await asyncio.sleep(BACK_OFF_S)
                continue
            if self._tls is not None:  # nobody else waits for it
                handshake = asyncio.create_task(self._shake_hands(loop, connected, str(address[0])))
                self._handshakes.add(handshake)
                handshake.add_done_callback(self._handshakes.discard)
                continue
            try:
                await loop.connect_accepted_socket(lambda a=address: self._connection(loop, str(a[0])), connected)  # type: ignore[misc]
            except OSError:
                connected.close()  # the client has closed it

    async def _shake_hands(self, loop: asyncio.AbstractEventLoop, connected: socket.socket, address: str) -> None:
        made = self._connection(loop, address)
        made.handshake = asyncio.current_task()
        try:
            await loop.connect_accepted_socket(lambda: made, connected, ssl=self._tls, ssl_handshake_timeout=self.head_s)
        except OSError:  # it does not speak TLS, took too long, or has gone
            made.end()
            connected.close()

    def _connection(self, loop: asyncio.AbstractEventLoop, address: str) -> Connection:
        guest, leaves = self.door.enter(peer_of(address), time.monotonic())
        self._send_away(leaves, f"at most {self.door.limit} connections without a token may be open, {self.door.per_peer} of them from one address")
        made = Connection(self, loop, guest)
        made.inner = self.config.http_protocol_class(  # type: ignore[call-arg]  # as uvicorn makes it
            config=self.config, server_state=self.server_state, app_state={"connection": made}, _loop=loop
        )
        self._connections[guest] = made
        return made

    def _send_away(self, guest: Any, why: str) -> None:
        connection = self._connections.get(guest)
        if connection is not None:
            LOG.warning("%s: a connection from %s is closed to make room for others: %s", self._url, guest.peer, why)
            connection.end()

    def knows(self, guest: Any, only_reads: bool) -> None:
        leaves = self.door.knows(guest, time.monotonic(), only_reads=only_reads)
        self._send_away(leaves, f"at most {self.door.limit} connections with a token that only reads may be open")

    def gone(self, guest: Any) -> None:
        self.door.leave(guest)
        self._connections.pop(guest, None)


class Connection(asyncio.Protocol):
    """One connection, around uvicorn's protocol object: its entry in `Door`, and its time limits."""

    def __init__(self, server: _Server, loop: asyncio.AbstractEventLoop, guest: Any) -> None:
        self.inner: asyncio.Protocol
        self._server = server
        self._loop = loop
        self._guest = guest
        self._transport: asyncio.Transport | None = None
        self.handshake: asyncio.Task[None] | None = None  # of TLS: before it is done there is no transport
        self._timer: asyncio.TimerHandle | None = None

    def has_asked(self) -> None:
        """The head of the request is there."""
        self._guest.has_asked = True
        self._last(self._server.request_s)

    @property
    def is_known(self) -> bool:
        return bool(self._guest.is_known)

    @property
    def is_closing(self) -> bool:
        return self._server.should_exit

    def knows(self, only_reads: bool) -> None:
        """The request has a token of the run, or is signed with it."""
        self._server.knows(self._guest, only_reads)

    def end(self) -> None:
        """Close it at once; unsent data is dropped."""
        self._server.gone(self._guest)
        if self._transport is not None:
            self._transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()  # which closes the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.inner.connection_made(transport)
        self._last(self._server.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._server.gone(self._guest)
        self.inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()

    def _last(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self.end)
