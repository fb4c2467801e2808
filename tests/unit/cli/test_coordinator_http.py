"""Requests to whoever answers: bounded as a whole, whatever comes back."""

from __future__ import annotations

import itertools
import json
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.cli.coordinator_http import http_json, is_status
from tests.recovery.bad_control import Listening

HEAD = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def server(first: bytes, then: Iterable[bytes] = ()) -> Iterator[str]:
    """Says `first`, then one of `then` every tenth of a second, as long as it is listened to."""
    over = threading.Event()

    def serve(listening: socket.socket) -> None:
        connected, _ = listening.accept()
        with connected:
            connected.recv(65536)
            try:
                connected.sendall(first)
                for part in then:
                    if over.wait(0.1):
                        return
                    connected.sendall(part)
            except OSError:
                return  # the other end has gone, as it should

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            thread.join(10)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (HEAD + b"Content-Length: 100000\r\n\r\n", itertools.repeat(b" ")),
        (HEAD + b"\r\n", itertools.repeat(b" ")),
        (HEAD, (b"X-%d: a\r\n" % i for i in itertools.count())),
        (b"HTTP/1.1 ", itertools.repeat(b" ")),
        (b"", itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n")),
    ],
    ids=["body", "body without an end", "head", "first line", "continue"],
)
def test_who_answers_a_byte_at_a_time_is_not_waited_for(first: bytes, then: Iterable[bytes]) -> None:
    with server(first, then) as url, pytest.raises(ClusterUnreachable, match=r"no whole answer in 0\.5 s"):
        http_json("GET", url + "/api/v1/status", timeout_s=0.5)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"null", b"\x1f\x8b\x08\x00", b"\xff"])
def test_an_answer_that_is_none_of_a_coordinator_is_refused_in_words(body: bytes) -> None:
    with (
        server(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body) as url,
        pytest.raises(ClusterUnreachable),
    ):
        http_json("GET", url + "/api/v1/status")


@pytest.mark.parametrize("body", [b"5", b"[]", b'{"error"', b"{}"])
def test_a_refusal_without_a_reason_is_refused_in_words(body: bytes) -> None:
    with server(b"HTTP/1.1 403 No\r\nContent-Length: %d\r\n\r\n" % len(body) + body) as url, pytest.raises(ClusterUnreachable):
        http_json("POST", url + "/api/v1/stop")


@pytest.mark.parametrize(("code", "kind"), [("SZ301", ClusterUnreachable), ("SZ100", ConfigurationError), ("", ConfigurationError), (5, ConfigurationError)])
def test_a_refusal_is_the_kind_of_error_that_it_says(code: object, kind: type[Exception]) -> None:
    """An attacker saw exit code 2, that of a wrong job file, because a container did not answer."""
    body = json.dumps({"error": "container 0 did not answer.", "remedy": "Wait.", "code": code}).encode()
    head = b"HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    with server(head + body) as url, pytest.raises((ClusterUnreachable, ConfigurationError)) as refused:
        http_json("POST", url + "/api/v1/containers/0/stack")
    assert (kind, "container 0 did not answer.", "Wait.") == (type(refused.value), refused.value.message, refused.value.remedy)


def test_a_status_has_the_form_of_one() -> None:
    good = {
        "job": "j",
        "id": "1",
        "state": "RUNNING",
        "run_id": "r",
        "coordinator": "http://h:1",
        "containers": [],
        "tasks": [],
        "moves": [],
    }
    assert is_status(good)
    for wrong in (
        {"run_id": 5},
        {"tasks": [[]]},
        {"containers": {"a": 1}},
        {"containers": [{}]},
        {"tasks": [{"name": "t"}]},
        {"moves": None},
        {"notes": 5},
        {"notes": [{}]},
    ):
        assert not is_status({**good, **wrong}), wrong


def test_what_a_coordinator_says_has_that_form() -> None:
    with Listening() as listening:
        answer = http_json("GET", listening.web_url + "/api/v1/status")
    assert is_status(answer), answer


def test_a_command_from_a_host_whose_clock_is_hours_wrong_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with Listening() as listening:
        right = time.time
        monkeypatch.setattr("samzapy.cli.coordinator_http.time.time", lambda: right() - 7200.0)
        assert "STOPPING" == http_json("POST", listening.web_url + "/api/v1/stop", listening.token)["state"]
        with pytest.raises(ConfigurationError, match="not signed"):
            http_json("POST", listening.web_url + "/api/v1/stop", "another token")
