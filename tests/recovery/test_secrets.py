"""Secrets of a job file, and the run's own token, are nowhere but where the user put them: everything that a run leaves or shows is searched."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.broker import admin, free_port, read_all
from tests.command_server import run_samzapy
from tests.integration.job import PATIENCE_S, Job
from tests.integration.processes import descendants, until
from tests.recovery.secret_scan import Needles, in_files, in_processes, in_text, needles

pytestmark = [pytest.mark.kafka, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]
WEB = ("/api/v1/status", "/api/v1/job-model", "/metrics", "/healthz", "/readyz", "/", "/api/v1/nothing")
GIVEN = ("BROKER_PASSWORD", "SERVICE_TOKEN")

TASK = """
import hashlib
from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream

class Proving(StreamTask):
    def init(self, context):
        self.out = SystemStream("kafka", context.params["out"])
        self.proof = hashlib.sha256(context.params["api_token"].encode()).hexdigest()
        self.counts = context.get_store("counts")

    def process(self, envelope, collector, coordinator):
        self.counts.put("seen", (self.counts.get("seen") or 0) + 1)
        collector.send(OutgoingMessageEnvelope(self.out, 1, self.proof, partition=envelope.partition))
"""


class Guarded:
    """A job whose file refers to three secrets, and a folder of its own for whatever its processes put into temporary files."""

    def __init__(self, kafka: str, folder: Path) -> None:
        self.password, self.key_password, self.api_token = (f"s{secrets.token_hex(16)}" for _ in range(3))  # no number begins so
        self.wanted = needles(password=self.password, key_password=self.key_password, api_token=self.api_token)
        self.temporary, self.events = folder / "tmp", folder / "events"
        self.vault = folder.parent / f"{folder.name}-vault"  # where the user keeps the file: not searched
        for each in (self.temporary, self.events, self.vault):
            each.mkdir()
        (self.vault / "key").write_text(self.key_password + "\n")
        (folder / "proving_task.py").write_text(TASK)
        name = f"guarded-{secrets.token_hex(4)}"
        self.job = Job(
            kafka, folder, name, partitions=2, params={"out": f"{name}-out", "api_token": "${SERVICE_TOKEN}"},
            kafka={
                "bootstrap.servers": kafka, "sasl.mechanism": "PLAIN", "sasl.username": "somebody", "sasl.password": "${BROKER_PASSWORD}",
                "ssl.key.password": f"${{file:{self.vault / 'key'}}}",
            },
            spark={"conf": {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(self.events), "spark.eventLog.compress": "false"}},
        )  # fmt: skip
        self.file = self.job.file.read_text().replace("task_" + name.replace("-", "_") + ":Counting", "proving_task:Proving")
        self.job.file.write_text(self.file)
        self.log = folder / "run.log"
        self.environment = {
            **os.environ, "BROKER_PASSWORD": self.password, "SERVICE_TOKEN": self.api_token, "TMPDIR": str(self.temporary),
            "SPARK_LOCAL_DIRS": str(self.temporary), "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self.temporary}", "SAMZAPY_DEBUG": "1",
        }  # fmt: skip

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_samzapy(["-v", *arguments], self.job.folder, PATIENCE_S, self.environment)

    @contextlib.contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "samzapy", "-v", "run", str(self.job.file), *arguments],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.job.folder, env=self.environment, start_new_session=True,
            )  # fmt: skip
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def url(self) -> str | None:
        told = [line for line in self.log.read_text().splitlines() if "status: http" in line]
        return told[-1].split("status: ")[1].removesuffix("/api/v1/status") if told else None

    def token(self) -> tuple[Path, str]:
        [file] = self.job.state.rglob("*.token")
        return file, file.read_text()


def asked(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return str(answer.headers) + answer.read().decode()
    except urllib.error.HTTPError as error:
        return str(error.headers) + error.read().decode()


def in_topics(job: Job, wanted: Needles) -> list[str]:
    found = []
    mine = [t for t in admin(job.servers).list_topics(timeout=20).topics if job.name in t]
    assert len(mine) == 5, mine  # input, output, changelog, checkpoint, coordinator
    for topic in mine:
        for r in read_all(job.servers, topic, "read_uncommitted"):
            content = b"\0".join([r.key or b"", r.value or b"", repr(r.headers).encode()])
            found += in_text(f"{topic}[{r.partition}]@{r.offset}", content, wanted)
    return found


@pytest.mark.parametrize("where", ["--local", pytest.param("--master=local[2]", marks=[pytest.mark.spark, pytest.mark.prove])])
def test_a_run_shows_its_secrets_nowhere(kafka: str, tmp_path: Path, where: str) -> None:
    guarded = Guarded(kafka, tmp_path)
    job = guarded.job
    job.feed(["a", "b", "c", "d"])

    with guarded.running(where) as process:
        url = until(guarded.url, "the address in the log", PATIENCE_S)
        until(lambda: process.poll() is not None or len(job.updates()) == 4, "four updates", PATIENCE_S)
        assert process.poll() is None, guarded.log.read_text()[-3000:]
        token_file, token = guarded.token()
        assert 0o600 == token_file.stat().st_mode & 0o777
        wanted = {**guarded.wanted, **needles(token=token)}
        below = {process.pid, *descendants(process.pid)}
        assert len(below) >= 3
        found = in_processes(below, wanted, GIVEN)
        found += in_files(tmp_path, wanted, [token_file])
        for path in WEB:
            found += in_text(f"web {path}", asked(url + path), wanted)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0

    proof = hashlib.sha256(guarded.api_token.encode()).hexdigest()
    assert {proof} == {word for _, word, _ in job.updates()}, "the containers never had the secret"
    assert [] == found
    assert [] == in_files(tmp_path, wanted)
    assert [] == in_topics(job, wanted)
    if where != "--local":
        assert any(self_described(file) for file in guarded.events.rglob("*") if file.is_file()), "Spark's configuration was not searched"


def self_described(file: Path) -> bool:
    return b"SparkListenerEnvironmentUpdate" in file.read_bytes()


@pytest.mark.prove
def test_errors_and_commands_show_no_secret_either(kafka: str, tmp_path: Path) -> None:
    guarded = Guarded(kafka, tmp_path)
    file, nobody = str(guarded.job.file), f"127.0.0.1:{free_port()}"
    away = ("--set", f"kafka.bootstrap.servers={nobody}")
    debugging = ("--set", "kafka.debug=all", "--set", "kafka.security.protocol=SASL_PLAINTEXT")
    runs = {
        4: [
            ("run", file, "--local", *away),
            ("run", file, "--local", *away, *debugging),
            ("validate", file, "--connect", *away),
            ("run", file, "--local", *debugging),
        ],
        2: [
            ("validate", file, "--set", "kafka.ssl.key.password=${file:missing}"),
            ("validate", file, "--set", "kafka.linger.ms=${BROKER_PASSWORD}"),
            ("validate", file, "--set", "kafka.security.protocol=${BROKER_PASSWORD}"),
            ("validate", file, "--set", "window=${SERVICE_TOKEN}"),
            ("validate", file, "--set", "job=${SERVICE_TOKEN}!"),
            ("validate", file, "--set", "outputs.0.topic=${SERVICE_TOKEN} x", "--set", "stores.counts.value=${BROKER_PASSWORD}"),
            ("validate", file, "--set", f"kafka.sasl.password={guarded.password}", "--set", "kafka.sasl.passwort=x"),
            ("validate", file, "--set", f"kafka.sasl.passwort={guarded.password}"),
        ],
        0: [("validate", file), ("topics", file, "--create")],
    }

    with ThreadPoolExecutor(4) as together:  # most of the time they wait for a broker that does not answer
        answers = together.map(
            lambda each: (*each, guarded.command(*each[1])), [(code, c) for code, commands in runs.items() for c in commands]
        )
        for code, arguments, done in answers:
            assert code == done.returncode, (arguments, done.stderr)
            assert [] == in_text(arguments[0], done.stdout + done.stderr, guarded.wanted), done.stderr
    assert [] == in_files(tmp_path, guarded.wanted)


LOOSE = """
from samzapy import StreamTask

class Loose(StreamTask):
    def init(self, context):
        self.token = context.params["api_token"]

    def process(self, envelope, collector, coordinator):
        raise ValueError(f"refused: Bearer {self.token}") from KeyError(self.token)
"""


@pytest.mark.parametrize(("then", "code"), [("dead_letter", 0), ("fail", 1)])
def test_what_a_task_says_of_a_secret_is_hidden(kafka: str, tmp_path: Path, then: str, code: int) -> None:
    guarded = Guarded(kafka, tmp_path)
    (tmp_path / "proving_task.py").write_text(LOOSE.replace("Loose", "Proving"))
    guarded.job.feed(["a"])

    done = guarded.command("run", str(guarded.job.file), "--local", "--until-end", "--set", f"on_error.then={then}")

    assert code == done.returncode, done.stderr
    assert "refused: Bearer ***" in done.stderr
    assert [] == in_text("log", done.stdout + done.stderr, guarded.wanted)
    assert [] == in_files(tmp_path, guarded.wanted)
    told = []
    for topic in [t for t in admin(kafka).list_topics(timeout=20).topics if guarded.job.name in t]:
        for r in read_all(kafka, topic, "read_uncommitted"):
            assert [] == in_text(topic, b"\0".join([r.key or b"", r.value or b"", repr(r.headers).encode()]), guarded.wanted)
            told += [data for name, data in r.headers or () if name == "samzapy-error"]
    assert ([b"ValueError: refused: Bearer ***"] if then == "dead_letter" else []) == told


def test_the_hunt_finds_what_is_there(tmp_path: Path) -> None:
    secret = secrets.token_hex(16)
    wanted = needles(planted=secret)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"\x00\xff" + secret.encode() + b"\x00")
    waiting = [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()", secret]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PLANTED": secret}) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = in_processes([process.pid], wanted)
        assert [True, True] == ["the arguments" in found[0], "PLANTED" in found[1]]
        assert 1 == len(in_processes([process.pid], wanted, ["PLANTED"]))
        process.kill()

    assert [f"planted: {tmp_path / 'deep' / 'file'}"] == in_files(tmp_path, wanted)
    assert [] == in_files(tmp_path, wanted, [tmp_path / "deep" / "file"])
    assert ["planted in base64: a text"] == in_text("a text", base64.b64encode(secret.encode() + b"tail"), wanted)
