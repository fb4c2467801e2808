"""Every example that `--help` shows is run on a real broker, in an order that makes sense; with `--json` each command prints what its schema says."""

from __future__ import annotations

import contextlib
import io
import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from samzapy.cli.examples import EXAMPLES
from samzapy.cli.json_forms import FORMS
from samzapy.cli.main import exit_code
from tests.broker import create_topic
from tests.integration.processes import until
from tests.json_forms import check

pytestmark = pytest.mark.kafka
TASK = """
from samzapy import StreamTask


class VisitCounter(StreamTask):
    def init(self, context):
        self.counts = context.get_store("counts")

    def process(self, envelope, collector, coordinator):
        if envelope.message == "boom":
            raise ValueError("boom")
        n = self.counts.get(envelope.key, 0) + 1
        self.counts.put(envelope.key, n)
        collector.send("COUNTS", n, key=envelope.key)
"""
JOB = """
job: NAME
task: visits:VisitCounter
kafka: {bootstrap.servers: "SERVERS"}
inputs: [{topic: VISITS, key: string, value: string}OLD_INPUT]
outputs: [{topic: COUNTS, key: string, value: integer, partitions: 2}]
stores: {counts: {key: string, value: integer}OLD_STORE}
on_error: {then: dead_letter}
commit: {interval: 200ms}
state: {dir: STATE}
"""
SLOW = ("demo", "chaos", "dev kafka start", "dev kafka stop", "dev kafka grant", "dev spark start", "dev spark stop", "dev spark status")
FINE = {"dev kafka status": 3}  # nothing runs in the directory of the test
ONCE = ("scale", "restart", "init")  # they take seconds, and `stop` prints the same form; a second `init` finds the folder taken
ENDLESS = ("--watch",)  # until Ctrl-C
ON_SPARK = "samzapy run JOB.yaml --set containers.count=2"


class Place:
    """A folder with a job, whose topics nobody else has."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.folder, self.servers = folder, servers
        token = secrets.token_hex(3)
        self.names = {"visit-counts": f"counts-{token}", "old-visits": f"old-{token}", "visits": f"visits-{token}"}
        self.job = folder / "job.yaml"
        own = {"NAME": f"help-{token}", "SERVERS": servers, "STATE": str(folder / "state"), "COUNTS": self.names["visit-counts"]}
        (folder / "visits.py").write_text(TASK.replace("COUNTS", own["COUNTS"]))
        text = JOB.replace("VISITS", self.names["visits"])
        for name, value in own.items():
            text = text.replace(name, value)
        old = text.replace("OLD_INPUT", ", {topic: " + self.names["old-visits"] + "}").replace("OLD_STORE", ", old-counts: {}")
        (folder / "old.yaml").write_text(old)
        self.job.write_text(text.replace("OLD_INPUT", "").replace("OLD_STORE", ""))

    def words(self, example: str) -> list[str]:
        """The words of an example's command, with this place's names. Graphs are of the program that `init --streams` wrote."""
        if "--graph" in example or "--code" in example:
            example = example.replace("JOB.yaml", str(self.folder / "my-streams" / "my_streams.yaml"))
        for name, value in {**self.names, "JOB.yaml": str(self.job), "localhost:9092": self.servers}.items():
            example = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", value, example)
        return shlex.split(re.sub(r'^.*\| (?=samzapy)|^eval "\$\(|\)"$| \| source$', "", example))[1:]

    def run(self, example: str, *more: str) -> tuple[int, str, str]:
        """Run it in this process: its exit code, what it printed and said."""
        before, _, after = example.partition(" | samzapy")
        shell = before if after and not before.startswith("samzapy") else "true"
        given = self.folder / "stdin"
        given.write_bytes(subprocess.run(["sh", "-c", shell], capture_output=True, check=True, timeout=60).stdout)
        out, err = io.StringIO(), io.StringIO()
        with given.open() as stdin, pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            patch.setattr(sys, "stdin", stdin)
            patch.setenv("KAFKA_BOOTSTRAP", self.servers)
            patch.setenv("SAMZAPY_STATE", str(self.folder / "state"))
            patch.chdir(self.folder)
            patch.delenv("DISPLAY", raising=False)
            patch.delenv("WAYLAND_DISPLAY", raising=False)
            code = exit_code([*self.words(example), *more])
        return code, out.getvalue(), err.getvalue()

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "samzapy", "run", *words]
        return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=(self.folder / "log").open("wb"))


@pytest.fixture
def place(tmp_path: Path, kafka: str) -> Iterator[Place]:
    place = Place(tmp_path, kafka)
    create_topic(kafka, place.names["visits"], 2)
    create_topic(kafka, place.names["old-visits"], 2)
    return place


def run_all(place: Place, *commands: str) -> None:
    """The examples of these commands, each as it stands and the first of each as JSON too."""
    for command in commands:
        for number, example in enumerate(EXAMPLES[command]):
            if any(option in example for option in ENDLESS):
                continue
            for more in ((), ("--json",)) if command in FORMS and command not in ONCE and number == 0 else ((),):
                code, out, err = place.run(example, *more)
                assert code == FINE.get(command, 0), (example, more, code, out, err)
                if more or example.endswith("--json"):
                    assert out.strip() or command in ("dlq list", "reset", "dlq replay", "dlq discard"), (example, "printed nothing")
                    for line in out.splitlines():
                        check(command, line)


@pytest.mark.prove
def test_each_example_runs(place: Place) -> None:
    run_all(place, "init", "schema", "completion", "dev kafka status")
    send = f"printf 'zoe\\tboom\\nada\\t/home\\n' | samzapy send {place.names['visits']} --key --kafka {place.servers}"
    assert 0 == place.run(send)[0]
    run_all(place, "send")
    first = place.start("old.yaml", "--local", "--until-end", "--create-topics")
    assert 0 == first.wait(200), (place.folder / "log").read_text()
    assert "set aside; " in (place.folder / "log").read_text()
    run_all(place, "checkpoint forget", "state drop")
    for example in ("samzapy checkpoint forget JOB.yaml old-visits --execute", "samzapy state drop JOB.yaml old-counts --execute"):
        assert 0 == place.run(example)[0]

    number = place.run("samzapy dlq list JOB.yaml")[1].split()[6]
    assert re.fullmatch(r"[01]\.\d+", number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EXAMPLES, "dlq show", (f"samzapy dlq show JOB.yaml {number}",))
        patch.setitem(EXAMPLES, "dlq replay", tuple(e.replace("0.0", number) for e in EXAMPLES["dlq replay"]))
        patch.setitem(EXAMPLES, "dlq discard", tuple(e.replace("0.0", number) for e in EXAMPLES["dlq discard"]))
        run_all(place, "dlq list", "dlq show", "dlq discard", "dlq replay")
    run_all(place, "validate", "topics", "plan", "lag", "jobs", "tail", "doctor")
    run_all(place, "checkpoint show", "state get", "state scan", "state export", "state restore", "state verify", "checkpoint set")

    running = place.start("job.yaml", "--local")
    try:
        until(lambda: place.run("samzapy status JOB.yaml")[0] == 0 or None, "it runs")
        run_all(place, "status", "top", "ui", "debug stack", "debug profile", "debug trace", "pause", "resume", "commit", "scale", "restart")
        assert 0 == place.run("samzapy stop JOB.yaml")[0]
        assert 0 == running.wait(60)
    finally:
        if running.poll() is None:
            running.send_signal(signal.SIGKILL)
    code, out, _ = place.run("samzapy stop JOB.yaml --json")
    check("stop", out)
    assert 3 == code
    code, out, _ = place.run("samzapy status JOB.yaml --json")
    check("status", out)
    assert 3 == code
    run_all(place, "reset")


def test_none_is_left_out() -> None:
    text = Path(__file__).read_text()
    assert [] == [command for command in EXAMPLES if f'"{command}"' not in text and command not in ("run", "stop")]
    for example in EXAMPLES["run"]:
        assert example == ON_SPARK or "--local" in example


@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_each_slow_example_runs(place: Place, tmp_path: Path, java_home: str) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "st"), "KAFKA_BOOTSTRAP": place.servers, "JAVA_HOME": java_home}
    (tmp_path / "records.tsv").write_text("".join(f"k{n % 5}\tv\n" for n in range(200)))
    try:
        for command in SLOW:
            for example in EXAMPLES[command]:
                if command == "dev kafka grant":
                    continue  # of a cluster that is started with --secure: tests/integration/test_secured_kafka.py runs it
                more = ["--format", "text"] if command == "chaos" else []
                words = [sys.executable, "-m", "samzapy", *place.words(example), *more]
                done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False)
                assert done.returncode in (0, 3), (example, done.stdout, done.stderr)
    finally:
        for folder in (tmp_path / "st" / "samzapy").glob("kafka-*"):  # what the examples have started
            stop = [sys.executable, "-m", "samzapy", "dev", "kafka", "stop", "--port", folder.name.removeprefix("kafka-")]
            subprocess.run(stop, cwd=tmp_path, env=environment, capture_output=True, timeout=100, check=False)
