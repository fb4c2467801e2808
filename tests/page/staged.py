"""A job of any size without a job: a real roster that is told what containers would tell. For routes, frames and the page."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from samzapy.clock import SystemClock
from samzapy.config.schema import Settings
from samzapy.container.inside import Doing, Inside
from samzapy.container.long_poll import LongPoll
from samzapy.container.sampling import Sampler
from samzapy.coordinator.http import Listener
from samzapy.coordinator.membership import Member, Owner
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.switchboard import Switchboard
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, InputMark
from samzapy.model.dead_letter import DeadLetter, Origin
from samzapy.model.job_model import TaskModel
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.model.run_record import RunRecord, history_key
from samzapy.model.states import ContainerState
from samzapy.plan.container_phases import Phase
from samzapy.ports import TopicSpec
from samzapy.testing.memory_log import MemoryCluster, MemoryLog
from samzapy.web.access import May, derived_token
from samzapy.web.app import web_app
from samzapy.web.contents import Contents
from samzapy.web.live import Live
from samzapy.web.looking import Looking

TOKEN = "a-token-of-a-run"
VIEW, OPERATE = derived_token(TOKEN, May.VIEW), derived_token(TOKEN, May.OPERATE)
ABOUT: dict[str, Any] = {
    "job": "visits", "id": "1", "called": "conf/visits.yaml --set commit.interval=500ms", "called_to_look": "conf/visits.yaml",
    "task": "VisitCounter",
    "inputs": [{"topic": "visits", "bootstrap": False, "broadcast": False, "serdes": "string → json"}],
    "outputs": [{"topic": "visit-counts", "serdes": "string → integer"}],
    "stores": [{"name": "counts", "changelog": True, "serdes": "string → integer"}],
    "operators": [], "dead_letters": "visits-1-dead-letter", "guarantee": "exactly_once", "commit_interval_s": 1.0, "containers": 2,
    "config": [
        {"key": "job", "value": "visits", "from": "visits.yaml:1"}, {"key": "kafka.sasl.password", "value": "***", "from": "visits.yaml:4"},
        {"key": "commit.interval", "value": "500ms", "from": "--set:1"}, {"key": "containers.standby", "value": "0", "from": "default"},
    ],
}  # fmt: skip
SETTINGS = Settings.model_validate({
    "job": "visits", "task": "visits:VisitCounter", "kafka": {"bootstrap.servers": "h:1"},
    "inputs": ({"topic": "visits", "key": "string", "value": "json"},), "outputs": ({"topic": "visit-counts", "key": "string", "value": "integer"},),
    "stores": {"counts": {"key": "string", "value": "integer"}}, "on_error": {"then": "dead_letter"},
})
HEADERS = {"Authorization": f"Bearer {VIEW}"}
J = "/v1/jobs/visits/1"


@dataclass
class Changes:
    """What was asked for, of a job of so many containers and tasks."""

    before: int
    tasks: int
    asked: list[Any] = field(default_factory=list)

    def scale(self, containers: int, dry_run: bool = False) -> dict[str, Any]:
        self.asked += [] if dry_run else [containers]
        return {"containers": containers, "before": self.before, "tasks": self.tasks}

    def restart(self, container: int | None, dry_run: bool = False) -> dict[str, Any]:
        self.asked += [] if dry_run else [("restart", container)]
        return {"containers": list(range(self.before)) if container is None else [container], "tasks": self.tasks}


class Parked:
    """A container's long poll without a network."""

    def __init__(self, board: Switchboard, container: int) -> None:
        self._board, self._container = board, container

    def long_poll(self, incarnation: str, number: int, park_s: float, answers: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
        asked = threading.Event()
        self._board.arrive(self._container, incarnation, number, answers, asked.set)
        asked.wait(min(park_s, 1.0))
        return list(self._board.take(self._container, incarnation, number))


class Traced:
    """The records that a trace of a task would tell."""

    def __init__(self, value: str = '"/home"') -> None:
        put, sent = {"store": "counts", "key": '"ada"', "old": "41", "new": "42"}, {"topic": "visit-counts", "partition": 1, "key": '"ada"', "value": "42"}
        told = {"key": '"ada"', "value": value, "us": 21.4, "time_ms": 1, "more": 0}
        self.records = [
            {**told, "record": "visits[3]@99121", "puts": [put], "sent": [sent], "error": ""},
            {**told, "record": "visits[3]@99122", "puts": [], "sent": [], "error": "ValueError: no such page"},
        ]

    def ask(self, task: str, records: int, seconds: float) -> None:
        """They are there already."""

    def over(self) -> list[dict[str, Any]]:
        return self.records


class Stage:
    """As much of a coordinator as the web listener looks at. Each task reads a partition of each of so many `topics`."""

    def __init__(
        self, tasks: int = 4, containers: int = 2, hosts: int = 2, looks_inside: bool = False, clock: SystemClock | None = None, topics: int = 1
    ) -> None:
        names = [f"Partition {i}" for i in range(tasks)]
        self.topics = ["visits", *(f"visits-{n}" for n in range(2, topics + 1))]
        models = {name: TaskModel(name, i, tuple(TopicPartition(topic, i) for topic in self.topics)) for i, name in enumerate(names)}
        self.roster = Roster(Job("visits", "1"), "run-1", models, containers, None, clock or SystemClock())
        self.roster.url = "http://127.0.0.1:1"
        self.changes = Changes(containers, tasks)
        self.about = {**ABOUT, "inputs": [{**ABOUT["inputs"][0], "topic": topic} for topic in self.topics]} if topics > 1 else ABOUT
        self.is_stopped = False
        self.notes: tuple[str, ...] = ("a note",)
        self.names, self.containers, self._beat, self._worked = names, containers, 0, 0.0
        self._clock = clock or SystemClock()
        self.began_ms = self._clock.now_ms() - 60_000
        self.cluster = MemoryCluster(SystemClock())
        self.log = MemoryLog(self.cluster)
        letters = TopicSpec(self.roster.job.dead_letter_topic, 2)
        self.log.admin().create([TopicSpec("visits", tasks), TopicSpec("visit-counts", 2), letters, TopicSpec(self.roster.job.coordinator_topic, 1)])
        self._checkpoint()
        for n in range(containers):
            owner = Owner(incarnation=f"i{n}", tasks=tuple(names[n::containers]), host=f"host-{n % hosts}", pid=4000 + n)
            self.roster.members.add(Member(number=n, phase=Phase.LIVE, state=ContainerState.RUNNING, owner=owner, preferred_host=f"host-{n % hosts}"))
        self.roster.state = "RUNNING"
        self.board = Switchboard()
        self.sampler = Sampler() if looks_inside else None
        self.traced = Traced()
        self.polls = [LongPoll(Parked(self.board, n)) for n in range(containers if looks_inside else 0)]
        for n, poll in enumerate(self.polls):
            poll.start(f"i{n}", Inside(threading.get_ident(), lambda: Doing("wait_input", 0.004), lambda: self.traced, self.sampler))

    def _checkpoint(self) -> None:
        """Partition 0 has read all that tests set aside."""
        job = self.roster.job
        with self.log.admin() as admin:
            admin.create([TopicSpec(job.checkpoint_topic, 1)])
        checkpoint = Checkpoint(
            job=job.name, id=job.id, task="Partition 0", container=0, incarnation="i0", epoch=1, sequence=1, stores={}, inputs={"visits[0]": InputMark("", 10**9)}
        )
        producer = self.log.plain_producer("stage")
        producer.send(job.checkpoint_topic, checkpoint.to_bytes(), CHECKPOINT_KEY, 0)
        producer.flush()

    def request_stop(self, by: str = "") -> None:
        self.is_stopped = True

    def close(self) -> None:
        for poll in self.polls:
            poll.stop()
        self.board.close()
        if self.sampler is not None:
            self.sampler.close()

    def looking(self) -> Looking:
        return Looking(self.roster, self.board)

    def beat(self, seconds: float = 1.0, lag: int = 0, state: str = "RUNNING", news: list[dict[str, Any]] | None = None) -> None:
        """Each container reports once: `seconds` of work more."""
        self._beat, self._worked = self._beat + 1, self._worked + seconds
        now_ms = self._clock.now_ms()
        for n in range(self.containers):
            done = self._worked
            tasks = [self._task(name, done, lag, state, now_ms) for name in self.names[n :: self.containers]]
            loop, sent = self._loop(n, done), {"visit-counts": int(900 * done)}
            report = {"state": "RUNNING", "number": self._beat, "tasks": tasks, "standbys": [], "loop": loop, "sent": sent}
            self.roster.heartbeat(n, f"i{n}", {**report, "news": news or [], **self._report(n)})
        self.roster.look()

    def _loop(self, number: int, done: float) -> dict[str, float]:
        busy = 0.2 + 0.6 * number / self.containers
        return {"process": busy * done, "commit": 0.1 * done, "wait_input": (0.9 - busy) * done, "wait_output": 0.0, "restore": 0.0, "other": 0.0}

    def _report(self, number: int) -> dict[str, Any]:
        """More of a container's report."""
        return {"memory_bytes": (600 + number) << 20}

    def set_aside(self, offset: int, error: str, value: bytes = b"{}", key: bytes | None = b"ada", topic: str = "visits", **more: Any) -> None:
        """A dead letter of visits[0]@offset."""
        at_ms = self._clock.now_ms()
        letter = DeadLetter(**{
            "origin": Origin(topic, 0, offset), "key": key, "value": value, "headers": [("trace", b"\xff1")], "task": "Partition 0", "error": error,
            "stack": f"counts.py:31 in process: {error}", "attempts": 4, "timestamp_ms": at_ms - 1000, "time_ms": at_ms, **more,
        })  # fmt: skip
        producer = self.log.plain_producer("stage")
        producer.send(self.roster.job.dead_letter_topic, letter.value, letter.key, offset % 2, at_ms, letter.to_headers())
        producer.flush()

    def ran(self, run_id: str, hours_ago: int, **more: Any) -> None:
        """A run before this one."""
        began_ms = SystemClock().now_ms() - hours_ago * 3_600_000
        config = [{**row, "value": "1s", "from": "visits.yaml:9"} if row["key"] == "commit.interval" else row for row in ABOUT["config"]]
        counts = {"processed": 1_204_331, "sent": 1_204_331, "commits": 598, "restarts": 0}
        told: dict[str, Any] = {"outcome": "STOPPED", "counts": counts}
        told |= {"ended_ms": began_ms + 600_000, "ended_by": "the command line (127.0.0.1)", "config": config, **more}
        record = RunRecord(run_id=run_id, began_ms=began_ms, told_ms=began_ms, started_by="bob@there", how="Spark at spark://x:7077", **told)
        producer = self.log.plain_producer("stage")
        producer.send(self.roster.job.coordinator_topic, record.to_bytes(), history_key(run_id), 0)
        producer.flush()

    def feed(self, *values: bytes, key: bytes | None = b"ada", topic: str = "visits", partition: int = 0, headers: Sequence[tuple[str, bytes]] = ()) -> None:
        """Records of a topic."""
        producer = self.log.plain_producer("stage")
        for value in values:
            producer.send(topic, value, key, partition, headers=list(headers))
        producer.flush()

    def _task(self, name: str, done: float, lag: int, state: str, now_ms: int) -> dict[str, Any]:
        number = int(name.split()[1])
        restore = {"source": "changelog", "reason": "no local store on this host", "records": 7000, "seconds": 2.0, "remaining": 0, "needed": 10_000}
        if state == "RESTORING":
            restore["remaining"] = 3000
        return {
            "name": name, "state": state, "reason": "", "partitions": [f"kafka.{topic}.{number}" for topic in self.topics],
            "positions": {f"{topic}[{number}]": int(450 * done) for topic in self.topics},
            "processed": int(450 * done), "skipped": 0, "dead_letters": 0, "sequence": 3, "stores": {"counts": {"restore": restore}}, "metrics": {},
            "busy_s": 0.02 * done * (1 + number % 7), "event_ms": now_ms - 800, "lag": lag * (1 + number % 5),
        }  # fmt: skip


def live(stage: Stage) -> Live:
    return Live(stage, stage.about, lambda: list(stage.notes))  # type: ignore[arg-type]  # as much of a coordinator as it takes


def contents(stage: Stage, settings: Settings = SETTINGS) -> Contents:
    """With two runs before this one, and a job file in which a key was changed since."""
    began_ms, roster = stage.began_ms, stage.roster

    def this() -> RunRecord:
        counts = {**roster.totals.counts, "restarts": sum(member.history.restarts for member in roster.members.values())}
        return RunRecord(run_id="run-1", began_ms=began_ms, told_ms=0, started_by="ann@here", how="--local", config=ABOUT["config"], counts=counts)

    file = [{**row, "value": "1s", "from": "visits.yaml:7"} if row["key"] == "commit.interval" else row for row in ABOUT["config"]]
    return Contents(settings, [Path.cwd()], stage.log, SystemClock(), note=live(stage).note, this_run=this, file=lambda: file)


class Served:
    """A stage behind a real listener."""

    def __init__(self, stage: Stage, port: int = 0) -> None:
        self.stage = stage
        facts = live(stage)
        self._listener = Listener(web_app(facts, facts, contents(stage), TOKEN, inside=stage.looking()), "127.0.0.1", port)
        self.url = self._listener.url

    def __enter__(self) -> Served:
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.stop()


if __name__ == "__main__":  # a job to look at: TASKS CONTAINERS
    shown = Stage(int(sys.argv[1]), int(sys.argv[2]))
    with Served(shown) as served:
        print(f"{served.url}/#token={OPERATE}", flush=True)
        ended = threading.Event()
        while not ended.wait(1.0):
            shown.beat(lag=40)


def get(client: TestClient, path: str, status: int = 200) -> Any:
    """What somebody who may look is answered."""
    answer = client.get(path, headers={"Authorization": f"Bearer {VIEW}"})
    assert status == answer.status_code, answer.text
    return answer.json()
