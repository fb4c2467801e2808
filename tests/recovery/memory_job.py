"""A whole job in one thread: the real coordinator, the real containers and their stores, on the in-memory log, with processes that can crash.

A container's process is an `Actor`: what `samzapy.container.runner` does with threads and HTTP, it does a turn at a time. Each has a host of its
own. A crash ends a process where it stands: what is on its disk at that moment is copied, as SIGKILL would leave it (RocksDB writes no
log, so what was not flushed is gone), and the next container of that host gets the copy, or nothing. The driver's crash ends all
containers, as the kernel sees to in a real run. Time is a hand clock; nothing is left to chance.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from samzapy import failpoints
from samzapy.api.errors import ClusterUnreachable, Fenced, InDoubt, Superseded, TransactionAborted
from samzapy.config.document import settings_from_document
from samzapy.container.container import Container
from samzapy.container.heartbeat import STOP, instructions_from
from samzapy.coordinator.job_coordinator import JobCoordinator
from samzapy.coordinator.settings import CoordinatorSettings, InputTopics, Process
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import FirstRun
from samzapy.model.process_end import ProcessEnd, other
from samzapy.ops.prepare_topics import prepare_topics
from samzapy.ports import Instructions, Supervision, TopicSpec
from samzapy.readers import read_to_end
from samzapy.testing.memory_log import MemoryCluster, MemoryLog
from samzapy.wiring.container import Location, container_spec
from samzapy.wiring.job_topics import JobTopics, job_of
from samzapy.wiring.serdes import Serdes
from samzapy.wiring.tasks import Tasks
from tests.broker import Record
from tests.recovery.chain import ChainTopics, Verdict, verdict
from tests.recovery.chain_task import CHAIN, COUNTS, ChainTask
from tests.unit.container.bench import HandClock

TURN_S = 0.2
NAME = "chain"
IN_DOUBT = (InDoubt, Fenced, TransactionAborted, ClusterUnreachable)


class Actor:
    """A container's process, and its handle. `sleeps`: it does nothing until it wakes up, and cannot be reached to be killed."""

    def __init__(self, job: MemoryJob, number: int, launch_id: str, model: Any, host: str) -> None:
        self.number, self.host = number, host
        self.ended: str | None = None  # as its launcher sees it
        self.is_over = self.sleeps = False
        self.container: Container | None = None
        self._job, self._launch_id, self._model = job, launch_id, model
        self._incarnation = f"incarnation-{launch_id}"
        self._instructions = Instructions()
        self._starts_in = job.start_turns
        self._is_owner = False

    def exited(self) -> ProcessEnd | None:
        return None if self.ended is None else other(self.ended)

    def kill(self) -> None:
        if self.sleeps:
            self.ended = self.ended or "believed dead"
        elif self.ended is None:
            self.die("killed")

    def die(self, how: str) -> None:
        """As by SIGKILL."""
        is_news, self.ended, self.is_over = self.ended is None, how, True
        with failpoints.calling(lambda _: None):
            if is_news:  # else somebody else may be on its disk
                self._job.lose(self.host)
            if self.container is not None:
                self.container.close()  # of the old files; nothing is decided by it

    def turn(self) -> None:
        """What the process does in a while."""
        try:
            self._turn()
        except failpoints.Crash:
            self._job.crashes += 1
            self.die("crashed")
        except failpoints.FailpointError:
            self._job.crashes += 1
            self._fail()
        except Superseded:
            self.die("superseded")
        except IN_DOUBT:
            self._is_owner = False

    def _turn(self) -> None:
        roster = self._job.coordinator.roster
        if self._starts_in:
            self._starts_in -= 1
            return
        if self.container is None:
            assignment = roster.register(self.number, self._launch_id, self._incarnation, {"host": self.host, "pid": self.number + 1})
            if assignment is None:
                return
            spec = self._job.spec(self.number, self.host)
            supervision = Supervision(instructions=lambda: self._instructions)
            self.container = Container(
                spec, self._incarnation, assignment.run_id, assignment.end_offsets, self._job.log, self._job.clock,
                supervision=supervision,
            )
        if not self._is_owner:
            self.container.own()
            self._is_owner = True
        self.container.step(0.0)
        answer = roster.heartbeat(self.number, self._incarnation, self._report("STARTING" if self.container.is_starting else "RUNNING"))
        self._instructions = instructions_from(answer)
        if self.container.finished:
            self._leave(self.container, "finished")
        elif answer["command"] == STOP:
            self.container.stop()
            self._leave(self.container, "stopped")

    def _fail(self) -> None:
        """An error that nobody foresaw ends the process in an orderly way, as it ends the runner."""
        assert self.container is not None
        with failpoints.calling(lambda _: None):
            self._leave(self.container, "failed", "FAILED")

    def _leave(self, container: Container, outcome: str, state: str = "STOPPED") -> None:
        report = self._report(state)
        container.close()
        self._job.coordinator.roster.report_final(self.number, self._incarnation, {**report, "outcome": outcome, "error": None})
        self.ended, self.is_over = outcome, True

    def _report(self, state: str) -> dict[str, Any]:
        assert self.container is not None
        status = self.container.status()
        for part in ("tasks", "standbys"):
            status[part] = [{**one, "lag": self._job.lag(one["positions"])} for one in status[part]]
        return {**status, "state": state}


class MemoryJob:
    """A ChainTask job with as many containers as tasks, each on a host of its own; also the launcher of its coordinator.

    Args:
        keep_state: whether a host keeps its local stores when a container there crashes.
        start_turns: how many turns a container's process takes to start.
    """

    def __init__(self, folder: Path, tasks: int = 3, exactly_once: bool = True, keep_state: bool = True, start_turns: int = 0) -> None:
        self.clock = HandClock()
        self.cluster = MemoryCluster(self.clock)
        self.log = MemoryLog(self.cluster)
        self.tasks, self.topics, self.crashes, self.runs = tasks, ChainTopics.of(NAME), 0, 0
        self.start_turns = start_turns
        self.exit_code: int | None = None
        self._exactly_once, self._keep_state, self._folder = exactly_once, keep_state, folder
        self._sent = self._copies = self.launches = 0
        self._disks = {host: self._new_disk() for host in (f"h{n}" for n in range(tasks))}
        self._ends: dict[str, int] | None = None
        self.actors: list[Actor] = []
        document = {
            "job": NAME, "task": "tests.recovery.chain_task:ChainTask", "params": {"out": self.topics.output},
            "kafka": {"bootstrap.servers": "memory:9092"},
            "inputs": [{"topic": self.topics.input}], "outputs": [{"topic": self.topics.output, "value": "json"}],
            "stores": {CHAIN: {"key": "string", "value": "json"}, COUNTS: {"value": "integer"}, "scratch": {"changelog": False}},
            "commit": {"interval": "500ms", "guarantee": "exactly_once" if exactly_once else "at_least_once"},
            "containers": {"count": tasks, "lease": "3s", "heartbeat": "500ms"},
        }  # fmt: skip
        self.settings = settings_from_document(document, {})
        self.log.admin().create([TopicSpec(t, tasks) for t in (self.topics.input, self.topics.output)])
        self._models = prepare_topics(self.settings, self.log, self.clock)

    # -- the world outside -----------------------------------------------------------------------------------------------------------

    def feed(self, records: int) -> None:
        """So many records for every partition."""
        producer = self.log.plain_producer("feed")
        for _ in range(records):
            for partition in range(self.tasks):
                self._sent += 1
                producer.send(self.topics.input, str(self._sent).encode(), f"key-{self._sent % 7}".encode(), partition)
        producer.flush()
        producer.close()

    def verdict(self) -> Verdict:
        """Everything that is committed, judged as by `tests.recovery.chain.verify`."""
        return verdict(self._records, self.topics, self._exactly_once)

    def _records(self, topic: str) -> list[Record]:
        consumer = self.log.restore_consumer("look on")
        found = []
        for partition in range(self.tasks):
            for batch in read_to_end(consumer, TopicPartition(topic, partition), self.clock):
                found += [Record(partition, m.offset(), m.key(), m.value(), [], m.timestamp()) for m in batch]
        consumer.close()
        return found

    # -- runs ------------------------------------------------------------------------------------------------------------------------

    def start(self, until_end: bool = False) -> None:
        """A driver; `until_end`: it stops by itself at the inputs' ends as they are now."""
        self.runs += 1
        self._ends = {str(p): self._end(p) for p in self._places()} if until_end else None
        coordinator_settings = CoordinatorSettings(
            containers=self.tasks, standby=1, host_affinity_s=0.3, lease_s=3.0, max_restarts=100, restart_window_s=10.0,
            has_changelogs=True,
        )  # fmt: skip
        process = Process("d", self.runs, "s", lambda host, pid, start: True)
        checkpoints = self.topics.job.checkpoint_topic
        facts = self.log.admin().topics([self.topics.input, checkpoints])
        topic = facts[self.topics.input]
        input_topics = InputTopics({topic.topic_id: (topic.name, topic.partitions)}, first_run=FirstRun(facts[checkpoints].topic_id, topic.partitions))
        self.coordinator = JobCoordinator(
            job=job_of(self.settings),
            run_id=f"run-{self.runs}",
            tasks=self._models,
            payload={},
            ends=self._ends,
            settings=coordinator_settings,
            log=self.log,
            clock=self.clock,
            launcher=self,
            process=process,
            is_alive=lambda url: False,
            input_topics=input_topics,
        )
        self.coordinator.listens_at("http://127.0.0.1:1", "")
        self._has_begun, self.exit_code = False, None

    def kill_driver(self) -> None:
        """And with it every container."""
        self.close()
        self.actors = []

    def turn(self) -> None:
        """Everybody gets a turn. A driver that crashes is started anew, with the same command."""
        self.clock.passed += TURN_S
        try:
            self._drive()
        except (failpoints.Crash, failpoints.FailpointError):
            self.crashes += 1
            self.kill_driver()
            self.start(until_end=self._ends is not None)
        for actor in self.actors:
            if actor.ended is None and not actor.sleeps:
                self.let(actor)

    def let(self, actor: Actor) -> None:
        """A turn of a container's process."""
        actor.turn()

    def _drive(self) -> None:
        if self.exit_code is not None:
            return
        if not self._has_begun:
            self.coordinator.begin()
            self._has_begun = True
        if not self.coordinator.turn():
            self.close()
            self.exit_code = self.coordinator.end()

    def until(self, condition: Callable[[], bool], what: str, turns: int = 600) -> None:
        for _ in range(turns):
            self.turn()
            if condition():
                return
        raise AssertionError(f"not within {turns} turns: {what}; {self.coordinator.roster.status()}")

    def until_idle(self, containers: int) -> None:
        """Until so many containers run all tasks, and all that was fed is committed."""
        self.until(lambda: self._is_idle(containers), f"{containers} containers that have nothing left to do")

    def scale(self, containers: int) -> None:
        """And wait until it is so."""
        self._ask(lambda: self.coordinator.changes.scale(containers), lambda: self._is_idle(containers), f"{containers} containers")

    def restart(self, container: int) -> None:
        """And wait until everything runs again."""
        self._ask(lambda: self.coordinator.changes.restart(container), lambda: self._is_idle(self.tasks), f"a new container {container}")

    def stop(self) -> None:
        """As by Ctrl-C."""
        self._ask(lambda: self.coordinator.request_stop(), lambda: self.exit_code is not None, "the end of a run that was asked to stop")

    def pass_time(self, seconds: float) -> None:
        over = self.clock.passed + seconds
        self.until(lambda: self.clock.passed >= over, f"{seconds} s to pass")

    def _ask(self, request: Callable[[], object], is_done: Callable[[], bool], what: str) -> None:
        """Ask the driver for something, and a driver that comes after it again; return when it is done."""
        asked = 0

        def done() -> bool:
            nonlocal asked
            if asked != self.runs and self._has_begun:
                request()
                asked = self.runs
                return False
            return asked == self.runs and is_done()

        self.until(done, what)

    def _is_idle(self, containers: int) -> bool:
        live = [a.container for a in self.actors if a.ended is None and a.container is not None]
        tasks = [t for c in live for t in c.tasks.values()]
        done = self.coordinator.roster.state == "RUNNING" and not self.coordinator.roster.is_changing
        return (
            done
            and len(live) == containers
            and sorted(self._models) == sorted(t.name for t in tasks if t.state == "RUNNING")
            and all(self._end(p) == t.committed.inputs[str(p)].next_offset for t in tasks for p in t.model.inputs)
        )

    def until_end(self) -> None:
        """A bounded run, from its start to its end."""
        self.start(until_end=True)
        self.until(lambda: self.exit_code is not None, "the end of a bounded run")

    # -- what a coordinator and containers need --------------------------------------------------------------------------------------

    def hosts(self) -> Mapping[str, int | None]:
        return dict.fromkeys(self._disks, 1)

    def slots(self, needed: int) -> int | None:
        return len(self._disks)

    def leaving(self) -> Collection[str]:
        return ()

    def launch(self, container: int, payload: Mapping[str, Any], preferred_host: str | None) -> Actor:
        taken = {a.host for a in self.actors if a.ended is None}
        free = [h for h in self._disks if h not in taken]
        self.launches += 1
        host = preferred_host if preferred_host in free else free[0]
        actor = Actor(self, container, str(payload["launch_id"]), payload["model"], host)
        self.actors.append(actor)
        return actor

    def close(self) -> None:
        for actor in self.actors:
            actor.kill()

    def spec(self, number: int, host: str) -> Any:
        topics = self.log.admin().topics(JobTopics.of(self.settings).all)
        where = Location(number, host, self._disks[host], "memory")
        return container_spec(self.settings, self._models, topics, where, Tasks(ChainTask), Serdes(self.settings, ()))

    def lose(self, host: str) -> None:
        """A process on this host ends at once: what its disk has now is what is left, or nothing."""
        left = self._new_disk()
        if self._keep_state and self._disks[host].exists():
            shutil.copytree(self._disks[host], left)
        self._disks[host] = left

    def lag(self, positions: Mapping[str, int]) -> int:
        ends = {str(place): self._end(place) for place in self._places()}
        return sum(max(0, ends[at] - position) for at, position in positions.items())

    def _new_disk(self) -> Path:
        self._copies += 1
        return self._folder / f"disk-{self._copies}"

    def _places(self) -> list[TopicPartition]:
        topics = (self.topics.input, *(self.topics.job.changelog_topic(s) for s in (CHAIN, COUNTS)))
        return [TopicPartition(topic, p) for topic in topics for p in range(self.tasks)]

    def _end(self, place: TopicPartition) -> int:
        consumer = self.log.restore_consumer("look on")
        try:
            return consumer.bounds(place).end
        finally:
            consumer.close()
