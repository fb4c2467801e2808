"""`samzapy chaos`: a user's own job, hit while it runs, against itself without faults.

The same records are given to the job twice, over topics made anew each time: once with nothing going wrong, once while its containers and its
driver are killed and stopped and its state is deleted. What both have committed must be the same. The job runs as child processes, under an
id and a state directory of its own. Topics that were there before are never touched: where one of the job's is, the whole is refused.

What depends on time (windows, clocks, the rate of input), on the order in which records of several partitions meet, or on anything outside of Kafka
differs between any two runs, faults or not. So if the two differ, the job runs a third time, without faults: where that differs too, nothing is proved.
"""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samzapy.api.errors import ConfigurationError, LogError
from samzapy.clock import SystemClock
from samzapy.config.load import LoadedJob
from samzapy.config.program import as_written
from samzapy.model.barrier import BARRIER_KEY
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.plan.internal_topics import internal_topics
from samzapy.ports import Admin, Log, Message, TopicSpec
from samzapy.readers import read_to_end
from samzapy.streams.operators.rows import CURSOR
from samzapy.streams.window_nodes import windows_of
from samzapy.testing.chaos_compare import Difference, Outcome, Output, compare, result
from samzapy.testing.chaos_plan import DELETE_STATE, KILL, KILL_DRIVER, PAUSE, Recorded, Strike, StrikeDone, due, placed, schedule
from samzapy.testing.chaos_process import JobProcess
from samzapy.wiring.clients import kafka_log
from samzapy.wiring.job_file import load_program
from samzapy.wiring.job_topics import JobTopics
from samzapy.wiring.program import graph_of

CALM, STORMY, AGAIN = "a", "b", "c"  # at the end of the job's id: of the run without faults, of the one with faults, of a second one without
AGAIN_S = 60.0  # for so long at most that one is fed
LEASE_S = 3.0
KEPT = {"retention.ms": "-1"}  # records may have event times of years ago, which Kafka would delete in one of the runs
FEED_TICK_S = 0.05
GONE_S = 60.0
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the run is asked for. `partitions`: of every topic that says nothing else."""

    seed: int
    seconds: float
    partitions: int = 4
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """The end of it. `result`: CLEAN, DIFFERS or INVALID; `why` in words."""

    strikes: Sequence[StrikeDone]
    differences: Sequence[Difference]
    result: str
    why: str


class Chaos:
    """One job on a cluster that is ours, or that we may use.

    Args:
        kafka: the job file's section in place of its own; None: its own.
        scratch: an empty folder for job files, state and logs.
    """

    def __init__(self, loaded: LoadedJob, kafka: Mapping[str, Any] | None, scratch: Path, asked: Asked, say: Say) -> None:
        self._loaded, self._scratch, self._asked, self._say = loaded, scratch, asked, say
        self._kafka = kafka
        self._name = f"chaos{time.time_ns() // 1_000_000 % 10**9}"
        self._jobs = {which: self._job_file(which) for which in (CALM, STORMY, AGAIN)}
        self._log: Log = kafka_log(self._jobs[CALM].settings)
        self._made: set[str] = set()
        settings = loaded.settings
        self._windows = {node.name for node in windows_of(graph_of(settings, loaded.folders)[0])} if settings.app is not None else set()

    def run(self, records: Sequence[Recorded]) -> Told:
        """The runs and their comparison; every topic that was made is deleted.

        Raises:
            ConfigurationError: a topic of the job exists. LauncherError: the job fails, with or without faults.
        """
        partitions = max([self._asked.partitions, *(r.partition + 1 for r in records if r.partition is not None)])
        known = {i.topic for i in self._loaded.settings.inputs}
        if strange := sorted({r.topic for r in records} - known):
            raise ConfigurationError(
                f"records of {', '.join(strange)}, which the job does not read.", f"Its inputs: {', '.join(sorted(known))}."
            )
        feed = placed(records, partitions, time.time_ns() // 1_000_000)
        try:
            self._say(f"without faults: {len(feed)} records")
            calm = self._calm(feed, partitions)
            self._say(f"with faults: seed {self._asked.seed}, {self._asked.seconds:.0f} s")
            strikes, stormy = self._fed(STORMY, feed, partitions, self._asked.seconds)
            exactly_once = self._loaded.settings.commit.guarantee == "exactly_once"
            differences, unlike = compare(calm, stormy, exactly_once, self._asked.ordered), list[Difference]()
            if differences:
                seconds = min(self._asked.seconds, AGAIN_S)
                self._say(f"the results differ; again without faults, to see whether two such runs differ too: {seconds:.0f} s")
                unlike = compare(calm, self._fed(AGAIN, feed, partitions, seconds)[1], exactly_once, self._asked.ordered)
        finally:
            self._delete_topics()
        return Told(strikes, differences, *result(strikes, differences, calm, unlike))

    # -- the runs ----------------------------------------------------------------------------------------------------------------------

    def _calm(self, feed: Sequence[Recorded], partitions: int) -> Outcome:
        self._make_topics(partitions)
        self._send(feed)
        process = self._process(CALM)
        try:
            process.until_end()
        finally:
            process.end()
        return self._outcome(CALM)

    def _fed(self, which: str, feed: Sequence[Recorded], partitions: int, seconds: float) -> tuple[list[StrikeDone], Outcome]:
        """A run whose records come while it runs, within so many seconds; with faults if it is the one with faults."""
        self._make_topics(partitions)
        early = {i.topic for i in self._loaded.settings.inputs if i.bootstrap}
        self._send([r for r in feed if r.topic in early])
        process = self._process(which)
        try:
            process.start()
            process.whole()
            feeder = _Feeder(self._log, [r for r in feed if r.topic not in early], seconds)
            strikes = self._hit(process, feeder) if which == STORMY else []
            feeder.finish()
            process.whole()
            process.stop()
            process.until_end()
        finally:
            process.end()
        return strikes, self._outcome(which)

    def _hit(self, process: JobProcess, feeder: _Feeder) -> list[StrikeDone]:
        done: list[StrikeDone] = []
        began = time.monotonic()
        for strike in schedule(self._asked.seed, self._asked.seconds):
            time.sleep(max(0.0, began + strike.at_s - time.monotonic()))
            at_s = time.monotonic() - began
            if at_s > self._asked.seconds:
                break
            fed = not feeder.is_done()
            status = process.whole()
            struck = time.monotonic()
            target, gone, note = self._strike(process, strike, status)
            process.whole(gone)
            done.append(StrikeDone(at_s, strike.kind, target, time.monotonic() - struck, fed, note))
            self._say(f"{at_s:6.1f} s  {strike.kind}: {target}, whole again after {time.monotonic() - struck:.1f} s{note}")
        time.sleep(max(0.0, began + self._asked.seconds - time.monotonic()))
        return done

    def _strike(self, process: JobProcess, strike: Strike, status: Mapping[str, Any]) -> tuple[str, frozenset[int], str]:
        """What was hit, the processes that it ends, a remark."""
        containers = status["containers"]
        everyone = frozenset(int(c["pid"]) for c in containers)
        if strike.kind in (KILL_DRIVER, DELETE_STATE):
            process.kill()
            if strike.kind == DELETE_STATE:
                shutil.rmtree(self._state(STORMY), ignore_errors=True)
            process.start()
            return ("driver" if strike.kind == KILL_DRIVER else "every store, while the job was down"), everyone, ""
        victim = containers[int(strike.pick * len(containers)) % len(containers)]
        target, pid = f"container {victim['id']}", int(victim["pid"])
        if not process.signal(pid, signal.SIGKILL if strike.kind == KILL else signal.SIGSTOP):
            return target, frozenset(), "it had ended already"
        if strike.kind == PAUSE:
            time.sleep(LEASE_S + 1.0)
            process.signal(pid, signal.SIGCONT)
        return target, frozenset({pid}), ""

    # -- the stage ---------------------------------------------------------------------------------------------------------------------

    def _state(self, which: str) -> Path:
        return self._scratch / f"state-{which}"

    def _job_file(self, which: str) -> LoadedJob:
        """The job as the user wrote it, under another id, with state of its own, and patient with containers that die."""
        own = as_written(self._loaded.document)
        containers = {
            **own.get("containers", {}), "lease": f"{LEASE_S:g}s", "heartbeat": "500ms", "max_restarts": 100_000, "restart_window": "10s",
        }  # fmt: skip
        own |= {"id": f"{self._name}{which}", "state": {"dir": str(self._state(which))}, "containers": containers, "web": {"port": 0}}
        if self._kafka is not None:
            own["kafka"] = dict(self._kafka)
        path = self._scratch / f"job-{which}.yaml"
        path.write_text(json.dumps(own, indent=1))
        return load_program([path])

    def _process(self, which: str) -> JobProcess:
        return JobProcess(self._scratch / f"job-{which}.yaml", self._scratch / f"run-{which}.log", self._loaded.folders)

    def _users_topics(self) -> list[str]:
        settings = self._loaded.settings
        named = [s.changelog for s in settings.stores.values() if isinstance(s.changelog, str)]
        return sorted({*(i.topic for i in settings.inputs), *(o.topic for o in settings.outputs), *named})

    def _make_topics(self, partitions: int) -> None:
        self._delete_topics()
        settings = self._loaded.settings
        with self._log.admin() as admin:
            there = sorted(admin.topics(self._users_topics()))
            if there:
                raise ConfigurationError(
                    f"{', '.join(there)}: exists already, and this command changes no existing topic.",
                    "Use another cluster; by default, one is started.",
                )
            counts = {i.topic: partitions for i in settings.inputs} | {o.topic: o.partitions or partitions for o in settings.outputs}
            self._made = set(self._users_topics())
            admin.create([TopicSpec(topic, count, KEPT) for topic, count in counts.items()])

    def _delete_topics(self) -> None:
        """What was made, and what the runs made; returns when it is gone."""
        names = set(self._made)
        for which in self._jobs if self._made else ():
            job = Job(self._loaded.settings.job, f"{self._name}{which}")
            between = JobTopics.of(self._jobs[which].settings).internal
            names |= {*(s.name for s in internal_topics(job, 1, self._changelogs(which), True)), *between}
        with self._log.admin() as admin:
            self._delete(admin, names)
        self._made = set()

    def _delete(self, admin: Admin, names: set[str]) -> None:
        there = sorted(admin.topics(names))
        admin.delete(there)
        deadline = time.monotonic() + GONE_S
        while there and (left := sorted(admin.topics(there))):
            if time.monotonic() > deadline:
                raise LogError(
                    f"{', '.join(left)}: still there {GONE_S:.0f} s after being deleted.", "See the brokers' logs; delete them by hand."
                )
            time.sleep(FEED_TICK_S)

    def _changelogs(self, which: str) -> list[str]:
        settings = self._jobs[which].settings
        return list(JobTopics.of(settings).changelogs.values())

    # -- records -----------------------------------------------------------------------------------------------------------------------

    def _send(self, records: Sequence[Recorded]) -> None:
        feeder = _Feeder(self._log, records, 0.0)
        feeder.finish()

    def _outcome(self, which: str) -> Outcome:
        settings = self._jobs[which].settings
        outputs = {
            o.topic: [Output(p, m.key(), m.value(), tuple(m.headers() or ())) for p, m in self._read(o.topic)] for o in settings.outputs
        }  # fmt: skip
        states: dict[str, dict[int, dict[bytes, bytes]]] = {}
        for store in settings.stores:
            topic = JobTopics.of(settings).changelogs.get(store)
            if topic is not None:
                states[store] = self._folded(topic, CURSOR if store in self._windows else BARRIER_KEY)
        return Outcome(outputs, states)

    def _folded(self, topic: str, own_key: bytes) -> dict[int, dict[bytes, bytes]]:
        """What a changelog keeps, without samzapy's own records: the barrier, and how far windows have fired, which is another time in each run."""
        folded: dict[int, dict[bytes, bytes]] = {}
        for partition, message in self._read(topic):
            key, value = message.key(), message.value()
            if key is None or key in (BARRIER_KEY, own_key):
                continue
            entries = folded.setdefault(partition, {})
            if value is None:
                entries.pop(key, None)
            else:
                entries[key] = value
        return folded

    def _read(self, topic: str) -> Iterator[tuple[int, Message]]:
        """Everything that is committed, by partition and offset."""
        with self._log.admin() as admin:
            facts = admin.topics([topic]).get(topic)
        if facts is None:
            return
        clock = SystemClock()
        with self._log.restore_consumer("chaos") as consumer:
            for partition in range(facts.partitions):
                for batch in read_to_end(consumer, TopicPartition(topic, partition), clock):
                    for message in batch:
                        yield partition, message


class _Feeder:
    """Sends records in order, at a pace that ends in time; 0 seconds: at once."""

    def __init__(self, log: Log, records: Sequence[Recorded], seconds: float) -> None:
        self._log, self._records, self._seconds = log, records, seconds
        self._failure: LogError | None = None
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        self._thread.start()

    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def finish(self) -> None:
        """Until the brokers have everything.

        Raises:
            LogError: a record was not delivered.
        """
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._send_all()
        except LogError as error:
            self._failure = error  # told by `finish`

    def _send_all(self) -> None:
        producer = self._log.plain_producer("samzapy-chaos")
        began, sent = time.monotonic(), 0
        try:
            while sent < len(self._records):
                upto = due(len(self._records), time.monotonic() - began, self._seconds)
                for record in self._records[sent:upto]:
                    producer.send(record.topic, record.value, record.key, record.partition or 0, record.timestamp_ms, record.headers or None)
                sent = max(sent, upto)
                producer.poll()
                if sent < len(self._records):
                    time.sleep(FEED_TICK_S)
            producer.flush()
        finally:
            producer.close()
