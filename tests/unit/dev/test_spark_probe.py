"""What a Spark master says of itself, read from its web page's JSON."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from samzapy.dev.spark_probe import Master, RegisteredWorker, ask_master, read_master


def worker(host: str, state: str = "ALIVE", cores: int = 2, used: int = 0) -> dict[str, Any]:
    return {"id": f"worker-{host}", "host": host, "port": 7078, "cores": cores, "coresused": used, "state": state}


ANSWER = {"url": "spark://127.0.0.1:7077", "status": "ALIVE", "workers": [worker("127.0.0.2", used=1), worker("127.0.0.3", "DEAD")]}


@contextmanager
def serving(body: bytes, status: int = 200) -> Iterator[int]:
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = http.server.HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_only_workers_that_are_alive_count() -> None:
    master = read_master(ANSWER)

    assert Master("spark://127.0.0.1:7077", True, (RegisteredWorker("127.0.0.2", 7078, 2, 1),)) == master
    assert (frozenset({"127.0.0.2"}), 2, 1) == (master.hosts, master.cores, master.free_cores)


def test_a_master_that_does_not_lead_says_so() -> None:
    assert not read_master({**ANSWER, "status": "STANDBY"}).is_leading


def test_a_master_is_asked_over_http() -> None:
    with serving(json.dumps(ANSWER).encode()) as port:
        assert read_master(ANSWER) == ask_master("127.0.0.1", port)


@pytest.mark.parametrize(("body", "status"), [(b"hello", 200), (b"[]", 200), (b'{"url": 1}', 200), (json.dumps(ANSWER).encode(), 503)])
def test_anything_else_is_no_answer(body: bytes, status: int) -> None:
    with serving(body, status) as port:
        assert ask_master("127.0.0.1", port) is None


def test_nobody_is_no_answer() -> None:
    with serving(b"") as port:
        pass
    assert ask_master("127.0.0.1", port) is None
