"""What a task does that no hook may: other threads, forks, values returned, functions of the standard library replaced."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream, TaskError
from samzapy.api.errors import InternalError
from samzapy.clock import start_thread
from samzapy.container import failure
from samzapy.container.control_client import HttpControl
from samzapy.container.heartbeat import Heartbeat
from samzapy.model import bounded_json
from tests.unit.container.bench import Bench, HandClock

OUT = SystemStream("kafka", "out")
LIMIT_S = 20.0


def in_a_thread(call: Callable[[], object]) -> BaseException | None:
    """What it raised there."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    return raised[0] if raised else None


class Counting(StreamTask):
    def init(self, context):
        self.s = context.get_store("s")

    def process(self, envelope, collector, coordinator):
        self.s.put(envelope.key, envelope.message)
        collector.send(OutgoingMessageEnvelope(OUT, envelope.message, envelope.key, partition=0))


CALLS: dict[str, Callable[[Any, Any, Any], object]] = {
    "put": lambda s, c, k: s.put("other", 1),
    "delete": lambda s, c, k: s.delete("other"),
    "put_all": lambda s, c, k: s.put_all({"other": 1}),
    "get": lambda s, c, k: s.get("other"),
    "all": lambda s, c, k: s.all(),
    "prefix": lambda s, c, k: s.prefix("o"),
    "send": lambda s, c, k: c.send(OutgoingMessageEnvelope(OUT, 1, "other")),
    "commit": lambda s, c, k: k.commit(),
    "shutdown": lambda s, c, k: k.shutdown(),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_thread_of_the_tasks_own_is_refused_in_a_hook_and_after_it(tmp_path: Path, what: str) -> None:
    kept: list[Any] = []
    raised: list[BaseException | None] = []

    class Threaded(Counting):
        def process(self, envelope, collector, coordinator):
            super().process(envelope, collector, coordinator)
            kept.extend((self.s, collector, coordinator))
            raised.append(in_a_thread(lambda: CALLS[what](self.s, collector, coordinator)))

    bench = Bench(tmp_path, Threaded)
    bench.feed(("a", 1))
    container = bench.start()
    bench.drain(container)
    raised.append(in_a_thread(lambda: CALLS[what](*kept[:3])))
    container.commit()
    assert [TaskError, TaskError] == [type(error) for error in raised]
    assert all("a thread other than" in str(error) for error in raised)
    assert [("a", 1)] == bench.read("out")
    assert {"a": 1} == bench.changelog()
    assert not container.finished


# -- what hooks return ---------------------------------------------------------------------------------------------------------------


def envelope_back(self, envelope, collector, coordinator):
    return OutgoingMessageEnvelope(OUT, 1, "back")


def envelopes_back(self, envelope, collector, coordinator):
    return [OutgoingMessageEnvelope(OUT, 1, "back")]


def generator(self, envelope, collector, coordinator):
    yield OutgoingMessageEnvelope(OUT, 1, "back")


async def coroutine(self, envelope, collector, coordinator):
    collector.send(OutgoingMessageEnvelope(OUT, 1, "back"))


@pytest.mark.parametrize(
    ("process", "remedy"),
    [(envelope_back, "collector.send"), (envelopes_back, "collector.send"), (generator, "yield"), (coroutine, "async")],
)
@pytest.mark.parametrize("broadcast", [(), ("in",)])
def test_a_process_that_returns_what_it_meant_to_send_is_refused(tmp_path: Path, process: Any, remedy: str, broadcast: Any) -> None:
    bench = Bench(tmp_path, type("Returning", (StreamTask,), {"process": process}), inputs={"in": {}, "b": {}}, broadcast=broadcast)
    bench.feed(("a", 1))
    container = bench.start()
    with pytest.raises(TaskError, match=rf"process failed on record in\[0\]@0: .*{process.__name__.split('s_')[0][:4]}") as caught:
        bench.drain(container)
    assert remedy in caught.value.remedy


def test_another_value_is_told_once_and_nothing_else_happens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Returning(Counting):
        def process(self, envelope, collector, coordinator):
            super().process(envelope, collector, coordinator)
            return {"not": "looked at"}

    failure._told_of.discard(("process", "dict"))
    bench = Bench(tmp_path, Returning)
    bench.feed(("a", 1), ("b", 2))
    with caplog.at_level(logging.WARNING):
        bench.drain(bench.start())
    assert [("a", 1), ("b", 2)] == bench.read("out")
    assert 1 == caplog.text.count("process returned a dict")


@pytest.mark.parametrize("hook", ["init", "window", "end_of_stream", "close"])
def test_other_hooks_that_are_generators_are_refused(tmp_path: Path, hook: str) -> None:
    def never(self, *arguments):
        yield

    bench = Bench(tmp_path, type("Lazy", (StreamTask,), {hook: never, "process": lambda self, e, c, k: None}), window_s=1.0)
    bench.feed(("a", 1))

    def run() -> None:
        container = bench.start({"in[0]": 1})
        bench.clock.passed += 5.0
        bench.drain(container)
        container.stop()

    with pytest.raises(TaskError, match=f"{hook} failed: {hook} is a generator"):
        run()


# -- forks -----------------------------------------------------------------------------------------------------------------------------

FORKING = """
import os, sys
from pathlib import Path
from samzapy import StreamTask
from tests.unit.container.bench import Bench, HandClock

class Forking(StreamTask):
    def init(self, context):
        self.s = context.get_store("s")
    def process(self, envelope, collector, coordinator):
        self.s.put(envelope.key, 1)
        child = os.fork()
        if child == 0:
            {child}
        else:
            print("child ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

bench = Bench(Path({folder!r}), Forking)
bench.feed(("a", 1), ("b", 1))
bench.drain(bench.start())
print(bench.changelog(), flush=True)
"""


@pytest.mark.parametrize(
    ("child", "code"), [("sys.exit(3)", 3), ("sys.exit()", 0), ("pass", 0), ("raise ValueError", 1), ("sys.exit('no')", 1), ("os._exit(9)", 9)]
)
def test_a_child_that_a_hook_forks_ends_where_its_hook_ends_and_the_container_goes_on(tmp_path: Path, child: str, code: int) -> None:
    program = FORKING.format(child=child, folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert [f"child ended with {code}"] * 2 + ["{'a': 1, 'b': 1}"] == done.stdout.splitlines(), done.stderr


# -- functions that a task replaces ------------------------------------------------------------------------------------------------------


def test_a_task_that_replaces_how_json_is_written_changes_nothing_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Replacing(Counting):
        def init(self, context):
            super().init(context)
            monkeypatch.setattr(json, "dumps", lambda *a, **k: '{"v": "spoiled"}')
            monkeypatch.setattr(json, "loads", lambda *a, **k: {"spoiled": True})
            monkeypatch.setattr(orjson, "dumps", lambda *a, **k: b"spoiled")
            monkeypatch.setattr(orjson, "loads", lambda *a, **k: "spoiled")

    bench = Bench(tmp_path, Replacing)
    for keys in (("a", "b"), ("c",)):
        bench.feed(*((key, 1) for key in keys))
        container = bench.start()
        bench.drain(container)
        container.close()
    assert {"a": 1, "b": 1, "c": 1} == bench.changelog()
    assert 3 == len(bench.read("out"))


def test_heartbeats_are_written_and_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[bytes] = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"command": "run"}')

        def log_message(self, *arguments: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        monkeypatch.setattr(json, "dumps", lambda *a, **k: "spoiled")
        monkeypatch.setattr(json, "loads", lambda *a, **k: "spoiled")
        control = HttpControl(f"http://127.0.0.1:{server.server_port}", "token", 0, "launch")
        assert {"command": "run"} == control.heartbeat("one", {"state": "RUNNING"})
        thread.join(LIMIT_S)
    assert [b'{"container": 0, "incarnation": "one", "report": {"state": "RUNNING"}}'] == heard


@pytest.mark.parametrize(
    "answer", [b"[" * 100_000, b"[1]", b"no json", b'{"command": "run", "epoch": 1e999}', b'{"models": {"t": 1}}', b'{"release": 7}', b'{"again_s": {}}']
)
def test_an_answer_that_is_no_coordinators_counts_as_none(answer: bytes) -> None:
    """Else it would end the thread that watches the lease."""

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        control = HttpControl(f"http://127.0.0.1:{server.server_port}", "token", 0, "launch")
        dead: list[str] = []
        try:
            Heartbeat(
                control=control,
                incarnation="one",
                heartbeat_s=2.0,
                lease_s=10.0,
                clock=HandClock(),
                report=dict,
                watch=lambda: None,
                die=dead.append,
                spawn=start_thread,
            )._beat()
        finally:
            server.shutdown()
            thread.join(LIMIT_S)
    assert ["SZ313: the coordinator was silent for most of the lease of 10 s"] == dead


def test_what_is_not_read_back_as_it_was_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert b'{"b":1,"a":[1,"x"]}' == bounded_json.to_bytes({"b": 1, "a": (1, "x")})
    for spoiled in (lambda value: "{}", lambda value: "no json", lambda value: b"{}"):
        monkeypatch.setattr(bounded_json, "_as_told", spoiled)
        with pytest.raises(InternalError, match="read back"):
            bounded_json.to_bytes({"v": 1})


# -- how errors are told -----------------------------------------------------------------------------------------------------------------


def test_the_users_line_is_told_wherever_the_file_lies(tmp_path: Path) -> None:
    module = tmp_path / "samzapy" / "jobs" / "mine.py"
    module.parent.mkdir(parents=True)
    module.write_text("def fails():\n    raise ValueError('boom')\n")
    space: dict[str, Any] = {}
    exec(compile(module.read_text(), str(module), "exec"), space)

    class Failing(StreamTask):
        def process(self, envelope, collector, coordinator):
            space["fails"]()

    bench = Bench(tmp_path, Failing)
    bench.feed(("a", 1))
    container = bench.start()
    with pytest.raises(TaskError, match=r"boom \(mine\.py:2\)"):
        bench.drain(container)


@pytest.mark.parametrize(("key", "shown"), [(b"ke\x1b[2Jy", r"key b'ke\x1b[2Jy'"), (b"k" * 5000, f"key b'{'k' * 100}'… (5000 bytes)")])
@pytest.mark.parametrize("then", ["fail", "skip"])
def test_a_record_that_cannot_be_decoded_is_told_with_its_key(
    tmp_path: Path, key: bytes, shown: str, then: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path, Counting, on_error=then)
    bench.feed_raw(b"no integer", key)
    container = bench.start()
    if then == "fail":
        with pytest.raises(TaskError) as caught:
            bench.drain(container)
        assert f"record in[0]@0, {shown}: " in caught.value.message
    else:
        with caplog.at_level(logging.WARNING):
            bench.drain(container)
        assert f"record in[0]@0, {shown}: " in caplog.text
    assert os.linesep not in shown
