"""Connections of strangers: left standing in a head, in a body, without a word; as many as they like. Real sockets, real processes."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import re
import resource
import secrets
import select
import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, LauncherError, Superseded
from samzapy.cli.coordinator_http import http_json
from samzapy.container.control_client import HttpControl
from samzapy.coordinator.control_app import MAX_BODIES_BYTES, MAX_BODY_BYTES
from samzapy.coordinator.http import LOG, WEB_CONNECTIONS, Listener
from samzapy.coordinator.seldom import Seldom
from samzapy.kafka.making import LONGEST_S
from samzapy.signing import signed_headers
from samzapy.web.access import May, derived_token
from tests.broker import ends
from tests.integration.job import Job
from tests.integration.processes import until
from tests.recovery.bad_control import Listening

HEAD = b"GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
BODY = b"POST /control/heartbeat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 8000000\r\n\r\n{"
LIMIT_S = 30.0


@pytest.fixture(autouse=True)
def log_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the listeners of other tests warned of in the last minute does not keep this test's warnings out of the log."""
    monkeypatch.setattr(LOG, "filters", [Seldom(60.0)])


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


@contextlib.contextmanager
def strangers(port: int, count: int, say: bytes) -> Iterator[list[socket.socket]]:
    """So many connections, each of which begins a request and leaves it there."""
    with contextlib.ExitStack() as kept:
        found = []
        for _ in range(count):
            found.append(kept.enter_context(socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)))
            with contextlib.suppress(ConnectionError):
                found[-1].sendall(say)
        yield found


def get(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    try:
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def is_closed(connection: socket.socket) -> bool:
    """Read it to its end; TimeoutError if there is none."""
    connection.settimeout(LIMIT_S)
    try:
        while connection.recv(4096):
            continue
    except ConnectionError:
        pass
    return True


def open_sockets() -> int:
    return sum(
        os.readlink(f"/proc/self/fd/{n}").startswith("socket:") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")
    )


@pytest.mark.parametrize("say", [b"", HEAD, BODY])
def test_however_many_are_left_standing_a_newcomer_is_answered(say: bytes, caplog: pytest.LogCaptureFixture) -> None:
    count = 300
    with caplog.at_level(logging.WARNING), Listening(head_s=600.0, request_s=600.0) as listening:
        before = open_sockets()
        with strangers(port_of(listening.web_url), count, say) as connections:
            assert (200, "ok\n") == get(port_of(listening.web_url), "/healthz")
            assert 200 == get(port_of(listening.web_url), "/api/v1/status")[0]
            until(lambda: open_sockets() - before - count <= WEB_CONNECTIONS, "the others are closed")
            assert is_closed(connections[0])
    assert len(caplog.records) < 5


def test_who_has_a_token_that_only_reads_cannot_take_the_files_that_the_job_needs(caplog: pytest.LogCaptureFixture) -> None:
    count = 300
    with caplog.at_level(logging.WARNING), Listening(head_s=600.0, request_s=600.0) as listening:
        before = open_sockets()
        token = derived_token(listening.token, May.VIEW)
        ask = f"GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        with contextlib.ExitStack() as kept:
            for _ in range(count):
                reader = kept.enter_context(socket.create_connection(("127.0.0.1", port_of(listening.web_url)), timeout=LIMIT_S))
                reader.sendall(ask)
                assert b"200" in reader.recv(100)
            until(lambda: open_sockets() - before - count <= WEB_CONNECTIONS, "the others are closed")
            assert (200, "ok\n") == get(port_of(listening.web_url), "/healthz")
    assert 0 < len(caplog.records) < 5


def test_a_container_that_was_heard_once_is_heard_through_any_crowd() -> None:
    with Listening() as listening:
        control = HttpControl(listening.control_url, listening.token, 0, "launch")
        assert {} == asked(control)
        with strangers(port_of(listening.control_url), 400, BODY):
            for _ in range(50):
                assert {} == asked(control)
        assert 1 == len(control._idle)
        control.close()


def asked(control: HttpControl) -> dict[str, object]:
    """What the coordinator says to a container that it does not know: that it is replaced. Anything else raises."""
    with pytest.raises(Superseded, match="nobody"):
        control.heartbeat("nobody", {})
    return {}


def test_a_connection_that_the_coordinator_closed_is_no_failure() -> None:
    with Listening() as listening:
        control = HttpControl(listening.control_url, listening.token, 0, "launch")
        asked(control)
        control._idle[0].sock.shutdown(socket.SHUT_RDWR)
        asked(control)
        control.close()
    with pytest.raises(ClusterUnreachable):
        control.heartbeat("nobody", {})


@pytest.mark.parametrize("say", [b"", HEAD, b"POST /api/v1/stop HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{"])
def test_a_request_that_does_not_come_to_its_end_is_given_up(say: bytes) -> None:
    with Listening(head_s=0.2, request_s=0.2) as listening, strangers(port_of(listening.web_url), 1, say) as connections:
        connection = connections[0]
        connection.settimeout(LIMIT_S)
        said = b""
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(4096):
                said += part
        assert b"200 OK" not in said


def test_a_body_that_is_no_http_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """It may come with its request, or after that was refused and answered."""
    head = b"POST /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    with caplog.at_level(logging.WARNING), Listening() as listening:
        for rest in (b"fffffffffffffffffffff\r\n", b"-1\r\n", b"1\r\nab\r\n"):
            with strangers(port_of(listening.web_url), 1, head + rest) as connections:
                assert is_closed(connections[0])
            with strangers(port_of(listening.web_url), 1, head) as connections:
                assert connections[0].recv(12).startswith(b"HTTP/1.1 4")
                with contextlib.suppress(ConnectionError):
                    connections[0].sendall(rest)
                assert is_closed(connections[0])
        assert (200, "ok\n") == get(port_of(listening.web_url), "/healthz")
    assert [] == [r for r in caplog.records if r.exc_info]
    assert len(caplog.records) < 4


@pytest.mark.parametrize(("host", "remedy"), [("127.0.0.1", "web.port"), ("192.0.2.1", "web.host"), ("no-such-host.invalid", "web.host")])
def test_where_it_cannot_listen_the_remedy_is_of_what_is_wrong(host: str, remedy: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(LauncherError, match=f"cannot listen on {host}:") as refused:
            Listener(Starlette(), host, taken.getsockname()[1])
    assert remedy in refused.value.remedy


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_an_ipv6_address_may_stand_in_brackets() -> None:
    listeners = [Listener(Starlette(), host, 0) for host in ("::1", "[::1]")]
    for listener in listeners:
        assert listener.url.startswith("http://[::1]:")
        listener.stop()


def test_a_connection_carries_one_request_of_a_stranger() -> None:
    with (
        Listening() as listening,
        strangers(port_of(listening.web_url), 1, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 5) as connections,
    ):
        said = b""
        while part := connections[0].recv(4096):
            said += part
        assert 1 == said.count(b"200 OK")
        assert b"connection: close" in said.lower()


def test_of_an_unsigned_request_no_body_is_kept() -> None:
    size, count = 7 << 20, 20
    with Listening() as listening:
        head = b"POST /control/heartbeat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % (size + 1)
        tracemalloc.start()
        try:
            with strangers(port_of(listening.control_url), count, head) as connections:
                block = b"x" * size
                for connection in connections:
                    with contextlib.suppress(OSError):
                        connection.sendall(block)
                _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak - size < 4 * size  # all of them would be twenty


def test_of_signed_requests_only_so_many_bytes_are_kept_at_a_time() -> None:
    """A container's own requests too, if it were to send many large ones and never finish them: the next is refused until one ends."""
    fits = MAX_BODIES_BYTES // MAX_BODY_BYTES
    with Listening() as listening, strangers(port_of(listening.control_url), fits, b"") as connections:
        for connection in connections:
            connection.sendall(signed_head(listening.token, MAX_BODY_BYTES) + b"{")

        small = b'{"container": 0, "incarnation": "nobody", "report": {}}'
        until(lambda: listening.post("/control/heartbeat", small)[0] == 503, "there is no room left")
        connections[0].close()
        until(lambda: listening.post("/control/heartbeat", small)[0] == 409, "there is room again")
        assert not any(is_answered(connection) for connection in connections[1:]), "those that were let in are still read"


def signed_head(token: str, length: int) -> bytes:
    signed = "".join(f"{name}: {value}\r\n" for name, value in signed_headers(token, "POST", "/control/heartbeat", b"", time.time()).items())
    return f"POST /control/heartbeat HTTP/1.1\r\nHost: 127.0.0.1\r\n{signed}Content-Length: {length}\r\n\r\n".encode()


def is_answered(connection: socket.socket) -> bool:
    """Whether something was sent, or the connection closed, from there."""
    return bool(select.select([connection], [], [], 0)[0])


@pytest.mark.parametrize("path", ["/api/v1/stop", "/control/heartbeat"])
def test_of_a_refused_request_no_endless_body_is_read(path: str) -> None:
    """What is read of it costs the driver's process time, and a sender can send as fast as that reads."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    chunk, taken = b"F4240\r\n" + b"x" * 1_000_000 + b"\r\n", 0
    with Listening() as listening:
        url = listening.web_url if path.startswith("/api") else listening.control_url
        with strangers(port_of(url), 1, head) as connections, contextlib.suppress(ConnectionError):
            while taken < 60:
                connections[0].sendall(chunk)
                taken += 1
    assert taken < 30  # what the system's buffers take is some of it


def test_a_sender_that_goes_away_in_its_body_is_no_event(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), Listening() as listening:
        body = b'{"container": 0}'
        good = signed_headers(listening.token, "POST", "/control/heartbeat", body, time.time())
        lines = "".join(f"{name}: {value}\r\n" for name, value in good.items())
        head = f"POST /control/heartbeat HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode()
        for say in (head + body[:5], BODY, b"\x00\xff nonsense\r\n\r\n"):
            with strangers(port_of(listening.control_url), 3, say):
                pass
        assert 409 == listening.post("/control/heartbeat", json.dumps({"container": 0, "incarnation": "nobody", "report": {}}).encode())[0]
    assert not [r for r in caplog.records if r.exc_info or "Traceback" in r.getMessage()]
    assert len(caplog.records) < 4


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("evil.example", "/api/v1/status", 421),
        ("evil.example", "/metrics", 421),
        ("evil.example", "/healthz", 200),
        ("localhost:1", "/api/v1/status", 200),
    ],
)
def test_a_page_that_gave_its_name_our_address_reads_nothing(host: str, path: str, status: int) -> None:
    with Listening() as listening:
        got, text = get(port_of(listening.web_url), path, host)
    assert status == got
    assert ("web: {names:" in text) == (status == 421)


def test_the_command_line_never_sends_the_token() -> None:
    """Whoever may write the coordinator topic says where the command line asks."""
    with Listening() as listening, socket.create_server(("127.0.0.1", 0)) as foreign:
        with ThreadPoolExecutor(1) as thread:
            taken = thread.submit(_taken, foreign)
            with pytest.raises(ClusterUnreachable):
                http_json("POST", f"http://127.0.0.1:{foreign.getsockname()[1]}/api/v1/scale", listening.token, {"containers": 2})
        assert b"POST /api/v1/scale" in taken.result()
        assert listening.token.encode() not in taken.result()
        url = f"{listening.web_url}/api/v1/stop"
        assert "state" in http_json("POST", url, listening.token, {})
        with pytest.raises(ConfigurationError, match="not signed with this run's token"):
            http_json("POST", url, "another", {})
        again = dict(line.split(": ", 1) for line in taken.result().decode().split("\r\n\r\n")[0].split("\r\n")[1:])
        assert 409 == _post(listening.web_url, "/api/v1/scale", b'{"containers": 2}', again)  # genuine, once: that job does not run
        assert 403 == _post(listening.web_url, "/api/v1/scale", b'{"containers": 2}', again)
        assert 403 == _post(listening.web_url, "/api/v1/scale", b'{"containers": 9}', again)


def _taken(server: socket.socket) -> bytes:
    """The first request that comes; it is not answered."""
    connection, _ = server.accept()
    with connection:
        said = b""
        while b"}" not in said:
            said += connection.recv(4096)
    return said


def _post(url: str, path: str, body: bytes, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=LIMIT_S)
    try:
        connection.request("POST", path, body, {k: v for k, v in headers.items() if k.startswith("X-")})
        return connection.getresponse().status
    finally:
        connection.close()


SCARCE = """
import resource, sys, threading, time, logging
logging.basicConfig(stream=sys.stderr, level=logging.INFO)
from tests.recovery.bad_control import Listening
with Listening() as listening:
    held = []
    soft = 60
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
    try:
        while True:
            held.append(open("/dev/null"))
    except OSError:
        pass
    print(listening.web_url, flush=True)
    sys.stdin.readline()
    while held:
        held.pop().close()
    print("freed", flush=True)
    sys.stdin.readline()
"""


def test_without_descriptors_it_says_so_once_and_goes_on_when_there_are_some(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with subprocess.Popen(
        [sys.executable, "-c", SCARCE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log.open("wb"), text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = port_of(process.stdout.readline().strip())
            with strangers(port, 20, HEAD):
                until(lambda: "no connection can be accepted now" in log.read_text(), "it says so")
                process.stdin.write("\n")
                process.stdin.flush()
                assert "freed" in process.stdout.readline()
                assert (200, "ok\n") == get(port, "/healthz")
        finally:
            process.kill()
    text = log.read_text()
    assert 1 == text.count("no connection can be accepted now")
    assert "Traceback" not in text
    assert len(text) < 4000


@pytest.mark.kafka
def test_a_job_goes_on_whatever_is_left_standing_at_its_listeners(kafka: str, tmp_path: Path) -> None:
    job = Job(kafka, tmp_path, f"job-{secrets.token_hex(4)}")
    job.feed([f"word{n % 50}" for n in range(2000)])
    with job.running("--local", limit="ulimit -n 512; ") as run:
        status = run.until_running()
        before = {c["id"]: c["pid"] for c in status["containers"]}
        ports = listening_ports(run.process.pid)
        assert 2 == len(ports)
        with contextlib.ExitStack() as kept:
            for port in ports:
                kept.enter_context(strangers(port, 600, HEAD))
            job.feed([f"word{n % 50}" for n in range(2000)])
            status = run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        assert before == {c["id"]: c["pid"] for c in status["containers"]}
        assert run.stop() == 0
    log = (tmp_path / "run.log").read_bytes()
    assert len(log) < 20_000
    assert 0 == len(re.findall(rb"the coordinator has not answered", log))


GUARDED = """

class Guarded(Counting):
    def init(self, context):
        super().init(context)
        from samzapy.kafka import making

        with open({file!r}, "w") as file:
            file.write(str(making._longest_s))
"""


@pytest.mark.prove
@pytest.mark.kafka
def test_a_container_opens_three_hundred_stores_where_a_shell_allows_1024_files(kafka: str, tmp_path: Path) -> None:
    stores = {f"store{n}": {"key": "string", "value": "integer"} for n in range(74)} | {"counts": {"key": "string", "value": "integer"}}
    job = Job(kafka, tmp_path, f"job-{secrets.token_hex(4)}", partitions=4, task="Guarded", stores=stores, containers={"count": 1})
    (module,) = tmp_path.glob("task_*.py")
    module.write_text(module.read_text() + GUARDED.format(file=str(tmp_path / "guard")))
    job.feed(["word"] * 8)
    with job.running("--local", limit="ulimit -Sn 1024; ") as run:
        status = run.until_caught_up({f"{job.input}[{p}]": end for p, end in ends(kafka, job.input).items()})
        (container,) = status["containers"]
        pids = [run.process.pid, container["pid"]]
        limits = [resource.prlimit(pid, resource.RLIMIT_NOFILE) for pid in pids]
        opened = len(os.listdir(f"/proc/{container['pid']}/fd"))
        assert run.stop() == 0
    assert 300 == len(stores) * job.partitions
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert [(hard, hard)] * 2 == limits
    assert opened > 1024
    assert 0 < float((tmp_path / "guard").read_text()) <= LONGEST_S, "making a Kafka client has an end there, too"
    assert {"word": 8} == job.export()


def listening_ports(pid: int) -> list[int]:
    """The TCP ports on which a process listens on loopback."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            inodes |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}")))
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sorted(int(line[1].split(":")[1], 16) for line in lines if line[3] == "0A" and line[9] in inodes)
