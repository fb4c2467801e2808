"""A Kafka on the other end of a bad network: a proxy that understands requests, and makes the chosen ones go wrong.

    with KafkaProxy("localhost:9092") as proxy:
        held = proxy.place(Rule(Hold(cut=True), {Api.END_TXN}, times=1))
        …                                   # clients use proxy.bootstrap_servers
        held.release()                      # now the broker gets it, though its sender has long gone on

It listens on loopback, a port for each broker of the cluster, and puts its own addresses into the replies that name brokers, so clients
stay on the way through it. Requests are matched by api and client, replies by their correlation id. What a client has sent is brought to
the broker in the order of its connection even after the client is gone, as a network does; only `LoseRequest`, `LoseReply` and `cut()` lose
what is on its way. Everything runs in one thread of its own; the methods here may be called from any.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from types import TracebackType
from typing import Any

from samzapy.api.errors import ClusterUnreachable
from samzapy.dev.probe import ask_cluster
from tests.proxy.faults import DelayReply, Hold, LoseReply, LoseRequest, Rule
from tests.proxy.wire import (
    NAMES_BROKERS,
    Address,
    BrokenFrame,
    Request,
    checked_size,
    framed,
    read_correlation,
    read_request,
    with_addresses,
)

LOG = logging.getLogger(__name__)
HOST = "127.0.0.1"
PATIENCE_S = 30.0
LINGER_S = 30.0  # how long replies are waited for whose client is gone
BUFFER_BYTES = 1 << 20


class Trap:
    """A rule in force, and what it caught."""

    def __init__(self, rule: Rule, loop: asyncio.AbstractEventLoop) -> None:
        self.rule = rule
        self._loop = loop
        self._changed = threading.Condition()
        self._released = asyncio.Event()
        self._caught: list[Request] = []
        self._answers: list[bytes] = []
        self._lifted = False

    @property
    def caught(self) -> list[Request]:
        """The requests that were struck, in order."""
        with self._changed:
            return list(self._caught)

    @property
    def answers(self) -> list[bytes]:
        """What the broker replied to them (frames, from the correlation id on), whether or not anybody was there to hear it."""
        with self._changed:
            return list(self._answers)

    def wait_caught(self, count: int = 1, limit_s: float = PATIENCE_S) -> list[Request]:
        """Until so many requests were struck."""
        return self._wait(lambda: self._caught, count, limit_s, "requests were struck by")

    def wait_answered(self, count: int = 1, limit_s: float = PATIENCE_S) -> list[bytes]:
        """Until the broker has answered so many of them."""
        return self._wait(lambda: self._answers, count, limit_s, "requests were answered of those struck by")

    def release(self) -> None:
        """What is held goes to the broker now; nothing is held any more."""
        self.lift()
        self._loop.call_soon_threadsafe(self._released.set)

    def lift(self) -> None:
        """Strike no more; what is held stays so."""
        with self._changed:
            self._lifted = True

    def _wait(self, found: Callable[[], list[Any]], count: int, limit_s: float, what: str) -> list[Any]:
        with self._changed:
            if not self._changed.wait_for(lambda: len(found()) >= count, limit_s):
                raise TimeoutError(f"after {limit_s:.0f} s {len(found())} of {count} {what} {self.rule}.")
            return list(found())

    # -- on the proxy's thread -----------------------------------------------------------------------------------------------------------

    def takes(self, request: Request) -> bool:
        """Whether it strikes this request; if so it is noted."""
        with self._changed:
            spent = self.rule.times is not None and len(self._caught) >= self.rule.times
            if self._lifted or spent or not self.rule.fits(request) or not self.rule.strikes(request):
                return False
            self._caught.append(request)
            self._changed.notify_all()
        LOG.debug("%s: %s", request, self.rule.fault)
        return True

    async def pass_by(self, seconds: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._released.wait(), seconds)

    def answered(self, reply: bytes) -> None:
        with self._changed:
            self._answers.append(reply)
            self._changed.notify_all()


class KafkaProxy:
    """A proxy for all brokers of the cluster that answers at `upstream` (host:port, or several with commas between)."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kafka-proxy", daemon=True)
        self._lock = threading.Lock()
        self._traps: list[Trap] = []
        self._seen: Counter[int] = Counter()
        self._numbers: Counter[tuple[str, int]] = Counter()
        self._connections: set[_Connection] = set()
        self._servers: list[asyncio.Server] = []
        self._refuses = False
        self.addresses: dict[Address, Address] = {}
        self.bootstrap_servers = ""

    # -- its life ------------------------------------------------------------------------------------------------------------------------

    def start(self) -> KafkaProxy:
        """Listen, and lead the cluster's clients through here.

        Raises:
            ClusterUnreachable: no broker answers at the address given.
        """
        brokers = self._brokers()
        self._thread.start()
        for broker in brokers:
            server = self._run(self._listen(broker))
            self._servers.append(server)
            self.addresses[broker] = HOST, int(server.sockets[0].getsockname()[1])
        self.bootstrap_servers = ",".join(f"{host}:{port}" for host, port in self.addresses.values())
        return self

    def stop(self) -> None:
        """Close every connection; what is held is lost."""
        if self._thread.is_alive():
            self._run(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def __enter__(self) -> KafkaProxy:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    # -- what goes wrong -----------------------------------------------------------------------------------------------------------------

    def place(self, rule: Rule) -> Trap:
        """Put a rule in force. Of several that fit a request, the one placed last has it."""
        trap = Trap(rule, self._loop)
        with self._lock:
            self._traps.insert(0, trap)
        return trap

    def place_all(self, rules: Iterable[Rule]) -> list[Trap]:
        return [self.place(rule) for rule in rules]

    def calm(self) -> None:
        """Every rule is lifted, what they hold is released, connections are accepted."""
        self._refuses = False
        with self._lock:
            traps, self._traps = self._traps, []
        for trap in traps:
            trap.release()

    def cut(self) -> None:
        """Cut every connection, with what is on its way."""
        self._run(self._cut_all())

    def refuse(self, refuses: bool = True) -> None:
        """From now on, new connections are closed at once; or not any more."""
        self._refuses = refuses

    @property
    def seen(self) -> dict[int, int]:
        """How many requests of each api came."""
        with self._lock:
            return dict(self._seen)

    # -- on the proxy's thread -----------------------------------------------------------------------------------------------------------

    def trap_for(self, request: Request) -> tuple[Request, Trap | None]:
        """The request with its number, and what strikes it."""
        with self._lock:
            self._seen[request.api] += 1
            self._numbers[request.client, request.api] += 1
            request = replace(request, number=self._numbers[request.client, request.api])
            return request, next((trap for trap in self._traps if trap.takes(request)), None)

    def _run(self, doing: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(PATIENCE_S)

    def _brokers(self) -> tuple[Address, ...]:
        for server in self._upstream.split(","):
            host, _, port = server.strip().rpartition(":")
            found = ask_cluster(host.strip("[]"), int(port)) if port.isdecimal() else None
            if found is not None:
                return found.addresses
        raise ClusterUnreachable(f"no broker answers at {self._upstream}.", "Start one: samzapy dev kafka start")

    async def _listen(self, broker: Address) -> asyncio.Server:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._refuses:
                writer.transport.abort()
                return
            connection = _Connection(self, broker, reader, writer)
            self._connections.add(connection)
            try:
                with contextlib.suppress(asyncio.CancelledError):  # the proxy ends
                    await connection.run()
            finally:
                self._connections.discard(connection)

        return await asyncio.start_server(accept, HOST, 0, limit=BUFFER_BYTES)

    async def _cut_all(self) -> None:
        for connection in list(self._connections):
            connection.cut()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        await self._cut_all()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Connection:
    """One client's connection, and the one to the broker that belongs to it."""

    def __init__(self, proxy: KafkaProxy, broker: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._broker = broker
        self._from_client, self._to_client = reader, writer
        self._to_broker: asyncio.StreamWriter | None = None
        self._open: dict[int, tuple[Request, Trap | None]] = {}  # by correlation id: what the broker has not answered
        self._all_answered = asyncio.Event()

    async def run(self) -> None:
        """Until both sides are done with."""
        try:
            from_broker, self._to_broker = await asyncio.open_connection(*self._broker, limit=BUFFER_BYTES)
            replies = asyncio.ensure_future(self._bring_replies(from_broker))
            try:
                await self._bring_requests(self._to_broker)
                if self._open:
                    self._all_answered.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._all_answered.wait(), LINGER_S)
            finally:
                replies.cancel()
                await asyncio.gather(replies, return_exceptions=True)
        except BrokenFrame as error:
            LOG.warning("a connection to %s:%d is closed: %s", *self._broker, error)
        except OSError as error:
            LOG.debug("a connection to %s:%d ended: %s", *self._broker, error)
        finally:
            self.cut()

    def cut(self) -> None:
        """Both sides, at once; what is on its way is lost."""
        self._to_client.transport.abort()
        if self._to_broker is not None:
            self._to_broker.transport.abort()

    async def _bring_requests(self, broker: asyncio.StreamWriter) -> None:
        while (frame := await _read_frame(self._from_client)) is not None:
            request, trap = self._proxy.trap_for(read_request(frame))
            fault = trap.rule.fault if trap is not None else None
            if isinstance(fault, LoseRequest):
                return self.cut()
            self._open[request.correlation] = request, trap
            if isinstance(fault, Hold) and trap is not None:
                if fault.cut:
                    self._to_client.transport.abort()
                await trap.pass_by(fault.seconds)
            broker.write(framed(frame))
            await broker.drain()
        return None

    async def _bring_replies(self, broker: asyncio.StreamReader) -> None:
        try:
            while (frame := await _read_frame(broker)) is not None:
                request, trap = self._open.pop(read_correlation(frame), (None, None))
                if trap is not None:
                    trap.answered(frame)
                    if isinstance(trap.rule.fault, LoseReply):
                        return
                    if isinstance(trap.rule.fault, DelayReply):
                        await trap.pass_by(trap.rule.fault.seconds)
                if request is not None and request.api in NAMES_BROKERS:
                    frame = with_addresses(frame, self._proxy.addresses)
                await self._tell(frame)
                if not self._open:
                    self._all_answered.set()
        finally:
            self._all_answered.set()
            self.cut()

    async def _tell(self, frame: bytes) -> None:
        """To the client, if it is still there."""
        if not self._to_client.transport.is_closing():
            with contextlib.suppress(OSError):
                self._to_client.write(framed(frame))
                await self._to_client.drain()


async def _read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The next frame; None when the other side has ended the connection."""
    try:
        return await reader.readexactly(checked_size(await reader.readexactly(4)))
    except asyncio.IncompleteReadError:
        return None
    except OSError:
        return None
