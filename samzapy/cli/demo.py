"""`samzapy demo`: a guided run. A real Kafka, the word count on Spark, a container killed in mid-flight, and the proof that nothing was lost.

Everything it starts is its own and is gone when it ends, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from samzapy.api.errors import ClusterUnreachable, InternalError, LauncherError
from samzapy.cli.common import say
from samzapy.cli.job import Job
from samzapy.cli.loading import load
from samzapy.cli.signals_and_threads import clean_up_when_told
from samzapy.cli.tables import print_table
from samzapy.cli.ui import has_display, page_address, ssh_line
from samzapy.clock import SystemClock
from samzapy.config.load import LoadedJob
from samzapy.coordinator.token import read_token, token_path
from samzapy.dev.kafka import LocalKafka
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.offsets import TopicPartition
from samzapy.model.states import ContainerState, JobState
from samzapy.ports import Log, Message, TopicSpec
from samzapy.readers import read_to_end
from samzapy.web.access import May
from samzapy.wiring.clients import kafka_log

SENTENCES, COUNTS = "sentences", "word-counts"
PARTITIONS = 4
PATIENCE_S = 180.0
FEED_PER_S = 5000
LOOK_S = 0.5
SHOW_PER_S = 500  # sentences a second while somebody looks around


def demo(
    sentences: Annotated[int, typer.Option(help="How many sentences to count.", min=1000)] = 60_000,
    local: Annotated[bool, typer.Option("--local", help="Containers as child processes, without Spark.")] = False,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address of the job's page without opening it.")] = False,
) -> int:
    """A demonstration: a word count on Spark and a real Kafka; one container is killed, and the result is checked. Ctrl-C leaves nothing running.

    At a terminal the job then goes on until Ctrl-C, to be looked at: the address of its page is printed, and opened where there is a display.
    """
    clean_up_when_told()
    folder = Path(tempfile.mkdtemp(prefix="samzapy-demo-"))
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        return _Demo(folder, sentences, local, cleanup, no_open).run()


class _Demo:
    def __init__(self, folder: Path, sentences: int, local: bool, cleanup: contextlib.ExitStack, no_open: bool) -> None:
        self._folder = folder
        self._sentences = sentences
        self._local = local
        self._cleanup = cleanup
        self._no_open = no_open
        self._is_watched = sys.stdin.isatty() and sys.stderr.isatty()
        self._log_file = folder / "run.log"
        self._root = example("jobs").parent

    def run(self) -> int:
        servers = self._start_kafka()
        loaded = self._job(servers)
        log = _log_of(loaded)
        lines = self._lines()
        self._create_topics(log)
        process = self._start_job()
        self._await_running(loaded, log, process)
        feeder = self._start_feeding(log, lines)
        self._watch(loaded, log, process, lambda s: _counted(s) >= len(lines) // 4, "counting")
        killed = self._kill_one(loaded, log)
        self._watch(loaded, log, process, lambda s: _is_back(s, killed), f"container {killed['id']} coming back")
        self._show_restores(loaded, log, killed)
        feeder.join()
        self._watch(loaded, log, process, lambda s: _counted(s) >= len(lines), "counting the rest")
        if self._is_watched:
            return self._show(loaded, log, process, lines)
        self._stop(process)
        return self._compare(log, lines)

    def _show(self, loaded: LoadedJob, log: Log, process: subprocess.Popen[bytes], lines: list[str]) -> int:
        """The proof while the job runs, which then goes on with new sentences until Ctrl-C."""
        words = sum(len(line.split()) for line in lines)
        for _ in self._statuses(loaded, log, process):
            if sum(_updates(log).values()) >= words and sum(_stored(log, self._changelog).values()) >= words:
                break  # all is committed
        code = self._compare(log, lines)
        _step("the job runs on with new sentences: look around on its page; Ctrl-C ends it")
        with contextlib.suppress(KeyboardInterrupt):
            while process.poll() is None:
                self._feed(log, self._lines(), SHOW_PER_S)
        self._stop(process)
        return code

    # -- the stage ---------------------------------------------------------------------------------------------------------------------

    def _start_kafka(self) -> str:
        _step("starting Kafka on this machine (its jars are fetched once)")
        started = time.monotonic()
        kafka = LocalKafka.start(directory=self._folder / "kafka", port=0, say=say, tied=True)
        self._cleanup.callback(kafka.stop)
        _done(f"Kafka answers at {kafka.bootstrap_servers}", started)
        return kafka.bootstrap_servers

    def _job(self, servers: str) -> LoadedJob:
        self._yaml = example("config/word-count.yaml")
        self._changelog = "word-count-1-counts-changelog"
        self._sets = [f"kafka.bootstrap.servers={servers}", f"state.dir={self._folder / 'state'}", "containers.count=2"]
        return load(self._yaml, None, self._sets)

    def _lines(self) -> list[str]:
        sys.path.insert(0, str(self._root))
        from jobs.word_count import sentences  # type: ignore[import-not-found, unused-ignore]

        return list(sentences(self._sentences, seed=int(time.time())))

    def _create_topics(self, log: Log) -> None:
        with log.admin() as admin:
            admin.create([TopicSpec(SENTENCES, PARTITIONS), TopicSpec(COUNTS, PARTITIONS)])
        _step(f"created topics {SENTENCES} and {COUNTS}, {PARTITIONS} partitions each")

    def _start_feeding(self, log: Log, lines: list[str]) -> threading.Thread:
        """Sentences come as they do in life, while all the rest happens."""
        _step(f"feeding {len(lines):,} sentences, {FEED_PER_S:,} a second")
        feeder = threading.Thread(target=self._feed, args=(log, lines), name="feeder", daemon=True)
        feeder.start()
        return feeder

    def _feed(self, log: Log, lines: list[str], per_s: int = FEED_PER_S) -> None:
        producer = log.plain_producer("demo")
        portion = per_s // 10
        for start in range(0, len(lines), portion):
            for number, line in enumerate(lines[start : start + portion], start):
                producer.send(SENTENCES, line.encode(), None, number % PARTITIONS)
            producer.poll()
            time.sleep(0.1)
        producer.flush()
        producer.close()

    def _start_job(self) -> subprocess.Popen[bytes]:
        where = "as child processes" if self._local else "on Spark, local[2]"
        command = [sys.executable, "-m", "samzapy", "run", str(self._yaml), *(a for s in self._sets for a in ("--set", s))]
        _step(f"samzapy run {self._yaml.name}: two containers {where}" + ("" if self._local else " (Spark takes some 15 seconds to start)"))
        output = self._log_file.open("wb")
        self._cleanup.callback(output.close)
        process = subprocess.Popen(
            [*command, "--local"] if self._local else command,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            cwd=self._root,
        )
        self._cleanup.callback(_end_group, process)
        return process

    # -- the play ----------------------------------------------------------------------------------------------------------------------

    def _statuses(self, loaded: LoadedJob, log: Log, process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any] | None]:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise LauncherError(f"the job ended by itself with exit code {process.returncode}:\n{self._tail()}", "")
            yield Job.of(loaded, log).status()
            time.sleep(LOOK_S)
        raise ClusterUnreachable(f"the demo waited {PATIENCE_S:.0f} s without success. The end of the job's log:\n{self._tail()}", "")

    def _tail(self) -> str:
        lines = self._log_file.read_text(errors="replace").splitlines()
        return "\n".join(f"    {line}" for line in lines[-15:])

    def _await_running(self, loaded: LoadedJob, log: Log, process: subprocess.Popen[bytes]) -> None:
        started = time.monotonic()
        for status in self._statuses(loaded, log, process):
            if status is not None and status["state"] == JobState.RUNNING:
                _done("job is RUNNING", started)
                self._show_page(loaded, log, status)
                return

    def _show_page(self, loaded: LoadedJob, log: Log, status: dict[str, Any]) -> None:
        job = Job.of(loaded, log)
        path = token_path(Path(loaded.settings.state.dir), job.cluster_id(), str(job.names), status["run_id"])
        address = page_address(status["coordinator"], read_token(path, is_ours=True), May.OPERATE)
        opens = self._is_watched and not self._no_open and not ssh_line(address, os.environ) and has_display(os.environ)
        _step(f"page: {address}" + ("      (opened in your browser; --no-open does not open it)" if opens else ""))
        if opens:
            webbrowser.open(address)

    def _watch(
        self, loaded: LoadedJob, log: Log, process: subprocess.Popen[bytes], done: Callable[[dict[str, Any]], bool], what: str
    ) -> None:
        started, last = time.monotonic(), ""
        for status in self._statuses(loaded, log, process):
            if status is None:
                continue
            states = ", ".join(f"container {c['id']} {c['state']}" for c in status["containers"])
            line = f"    {what}: {_counted(status):,} sentences; {states}"
            if line != last:
                say(line)
                last = line
            if done(status):
                _done(what, started)
                return

    def _kill_one(self, loaded: LoadedJob, log: Log) -> dict[str, Any]:
        status = Job.of(loaded, log).status()
        if status is None:
            raise ClusterUnreachable("the coordinator does not answer.", "")
        victim: dict[str, Any] = next(c for c in status["containers"] if c["state"] == ContainerState.RUNNING)
        _step(f"kill -9 {victim['pid']}: container {victim['id']} dies while it processes {', '.join(victim['tasks'])}")
        os.kill(victim["pid"], signal.SIGKILL)
        return victim

    def _show_restores(self, loaded: LoadedJob, log: Log, killed: dict[str, Any]) -> None:
        for task in (Job.of(loaded, log).status() or {"tasks": []})["tasks"]:
            for name, store in task["stores"].items() if task["container"] == killed["id"] else ():
                r = store["restore"]
                say(
                    f"    {task['name']}: store {name!r} from {r['source']}, {r['records']} records read, {r['seconds']:.2f} s ({r['reason']})"
                )

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        _step("stopping the job: final commit")
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=60)
        if code != 0:
            raise LauncherError(f"the job ended with exit code {code}:\n{self._tail()}", "")
        _done("stopped with exit code 0", started)

    def _compare(self, log: Log, lines: list[str]) -> int:
        from jobs.word_count import count_words  # type: ignore[import-not-found, unused-ignore]

        expected: Counter[str] = count_words(lines)
        updates, stored = _updates(log), _stored(log, self._changelog)
        rows = [
            (word, stored[word], updates[word], n, "=" if stored[word] == updates[word] == n else "DIFFERS")
            for word, n in expected.most_common(10)
        ]
        print_table(("WORD", "IN THE STORE", "UPDATES SENT", "DIRECT COUNT", ""), rows)
        total = sum(expected.values())
        if not stored == updates == expected:
            raise InternalError(
                f"{sum(updates.values()):,} updates, {sum(stored.values()):,} stored, for {total:,} words.", "Please report this."
            )
        say(
            f"all {len(expected):,} words agree with a direct count, store and updates both, {total:,} in all: nothing lost, nothing doubled."
        )
        return 0


def example(name: str) -> Path:
    """A file of the example jobs: from the installed package, or from the checkout around it."""
    package = Path(__file__).resolve().parent.parent
    for place in (package / "examples" / name, package.parent / name):
        if place.exists():
            return place
    raise LauncherError(f"the example {name} is not installed.", "Run the demo from a checkout of samzapy.")


def _log_of(loaded: LoadedJob) -> Log:
    return kafka_log(loaded.settings)


def _updates(log: Log) -> Counter[str]:
    """How many committed updates there are for each word: one for every time it was counted."""
    return Counter((message.key() or b"").decode() for _, message in _records(log, COUNTS))


def _stored(log: Log, changelog: str) -> Counter[str]:
    """The committed counts: the newest value per word of each task's changelog partition, added up over the tasks."""
    newest: dict[tuple[int, bytes], int] = {}
    for partition, message in _records(log, changelog):
        key = message.key() or b""
        if key != BARRIER_KEY:
            newest[partition, key] = int.from_bytes(message.value() or b"", "big", signed=True)
    total: Counter[str] = Counter()
    for (_, key), count in newest.items():
        total[key.decode()] += count
    return total


def _records(log: Log, topic: str) -> Iterator[tuple[int, Message]]:
    with log.restore_consumer("demo") as consumer:
        for partition in range(PARTITIONS):
            for batch in read_to_end(consumer, TopicPartition(topic, partition), SystemClock()):
                for message in batch:
                    yield partition, message


def _counted(status: dict[str, Any]) -> int:
    """Sentences counted so far: the tasks' next offsets; for a container that is away, where it was last seen."""
    return sum(sum(t["positions"].values()) for t in status["tasks"])


def _is_back(status: dict[str, Any], killed: dict[str, Any]) -> bool:
    now = next(c for c in status["containers"] if c["id"] == killed["id"])
    return bool(now["pid"] != killed["pid"] and now["state"] == ContainerState.RUNNING and status["state"] == JobState.RUNNING)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ask, then insist: the job and everything it started."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _step(text: str) -> None:
    say(f"==> {text}")


def _done(text: str, started: float) -> None:
    say(f"    {text} ({time.monotonic() - started:.1f} s)")
