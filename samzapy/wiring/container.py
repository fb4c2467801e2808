"""A container from its job's settings: the values that it needs, and its process from the payload that starts it."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from samzapy import failpoints
from samzapy.api import exit_codes
from samzapy.api.errors import ConfigurationError, TopicMissing
from samzapy.api.serde import Serde
from samzapy.clock import SystemClock
from samzapy.config.document import settings_from_document
from samzapy.config.errors import ConfigError
from samzapy.config.registered import stored_form
from samzapy.config.schema import InputSettings, Settings
from samzapy.container.container import Container
from samzapy.container.control_client import HttpControl
from samzapy.container.crash_place import Trace
from samzapy.container.long_poll import PARK_S, LongPoll
from samzapy.container.not_ready import tell_driver
from samzapy.container.profile import LoopProfile
from samzapy.container.runner import ContainerRunner
from samzapy.container.sampling import Sampler
from samzapy.container.settled_clock import SettledClock
from samzapy.container.spec import Between, ContainerSpec, DeadLetterSpec, InputSpec, OutputSpec, StoreSpec
from samzapy.ids import random_id
from samzapy.kafka.making import LONGEST_S, guard_clients
from samzapy.memory import collect_rarely
from samzapy.model import lease_times
from samzapy.model.checkpoint import MAX_BYTES
from samzapy.model.job_model import TaskModel, tasks_from_json
from samzapy.plan.store_memory import of_all_stores, of_each_store
from samzapy.ports import Assignment, Clock, StoreDirectory, StoreEngine, Supervision, TaskStore, TopicFacts
from samzapy.ports.log import DEFAULT_DELETE_RETENTION_MS
from samzapy.serde.unreserved import UnreservedKeys
from samzapy.signing import SteadyTime
from samzapy.store.directory import LocalStoreDirectory, MemoryStoreDirectory, store_path, sweep, tasks_there
from samzapy.store.holding import HoldingStore
from samzapy.store.rocks import RocksEngine, SharedMemory
from samzapy.store.ttl import ExpiringStore
from samzapy.wiring.clients import kafka_log
from samzapy.wiring.code_files import watch_files
from samzapy.wiring.event_time import time_spec
from samzapy.wiring.fingerprint import fingerprint
from samzapy.wiring.job_topics import JobTopics, partitions_of
from samzapy.wiring.local_state import local_state
from samzapy.wiring.serdes import KEY, VALUE, Serdes
from samzapy.wiring.tasks import Tasks
from samzapy.wiring.user_code import imported

LOG = logging.getLogger("samzapy")
ENTRY = "samzapy.wiring.container:run_container"
NOT_HERE = (
    "Variables and files that secret keys refer to must be there on every host where containers run: a variable in the environment that Spark's workers are started "
    "with (standalone: conf/spark-env.sh, then restart the worker; YARN: `spark.executorEnv.NAME`; Kubernetes: "
    "`spark.kubernetes.executor.secretKeyRef.NAME`), a file at the same path. Then start the job again."
)
MOVED_AWAY_S = 86_400.0
CLOCK = SystemClock()
TRACES = ".traces"  # beside the tasks' folders


@dataclass(frozen=True, slots=True)
class Location:
    """Which container it is, and where its state lies: below `state`, by cluster and host."""

    number: int
    host: str
    state: Path
    cluster_id: str


def container_spec(
    settings: Settings,
    tasks: Mapping[str, TaskModel],
    topics: Mapping[str, TopicFacts],
    where: Location,
    user: Tasks,
    serdes: Serdes,
    clock: Clock = CLOCK,
) -> ContainerSpec:
    """The values that one container needs. `topics` holds the facts of `JobTopics.all`, and of the checkpoint topic. `clock`: the time for `ttl`."""
    serde = serdes.of
    names = JobTopics.of(settings)
    job, letters = names.job, names.dead_letters
    seconds = 1000.0
    job_folder = where.state.expanduser() / where.cluster_id / where.host / str(job)
    stores = _store_specs(settings, topics, len(tasks), where, serdes, SettledClock(clock))
    return ContainerSpec(
        job=job,
        number=where.number,
        host=where.host,
        make_task=user.make,
        params=settings.params,
        tasks=tasks,
        inputs={
            i.topic: InputSpec(
                i.topic, topics[i.topic].topic_id, serde(i.key, i.topic, KEY), serde(i.value, i.topic, VALUE), i.start, i.bootstrap,
                i.on_out_of_range, time_spec(i, serdes.folders), fills=_filled(i, stores, user.tables),
                table=(user.tables or {}).get(i.topic, ""), delete_retention_ms=topics[i.topic].delete_retention_ms,
            )
            for i in settings.inputs
        } | _internal_inputs(settings, tasks, topics, serdes),
        outputs={
            o.topic: OutputSpec(
                o.topic, serde(o.key, o.topic, KEY), serde(o.value, o.topic, VALUE), topics[o.topic].partitions, topics[o.topic].max_message_bytes,
                0 if (kept := topics[o.topic].retention_ms) is None or topics[o.topic].gives_times else max(0, clock.now_ms() - kept),
            )
            for o in settings.outputs
        } | _internal_outputs(settings, topics, serdes),
        stores=stores,
        exactly_once=settings.commit.guarantee == "exactly_once",
        commit_interval_s=settings.commit.interval_ms / seconds,
        commit_timeout_s=settings.commit.timeout_ms / seconds,
        max_uncommitted_bytes=settings.commit.max_uncommitted_bytes,
        window_s=settings.window_ms / seconds if settings.window_ms else None,
        retries=settings.on_error.retries,
        on_error=settings.on_error.then,
        dead_letters=DeadLetterSpec(letters, topics[letters].max_message_bytes) if letters is not None and letters in topics else None,
        max_checkpoint_bytes=topics[job.checkpoint_topic].max_message_bytes if job.checkpoint_topic in topics else MAX_BYTES,
        lease_s=settings.containers.lease_ms / seconds,
        store_memory_bytes=of_all_stores(settings.containers.memory_bytes),
        fingerprint=fingerprint(settings, tasks, {t: topics[t].partitions for t in names.internal}, serdes, user.operators),
        keyed_inputs=partitions_of(names.keyed, tasks),  # as planned: they may have grown since
        joined=names.joined,
        timed=None if settings.stages is None else settings.stages.timed,
        prepare=serdes.ready,
        sweep=lambda held: sweep(job_folder, held, time.time() - MOVED_AWAY_S, lambda path: RocksEngine(path, None)),
    )


def _internal_inputs(
    settings: Settings, tasks: Mapping[str, TaskModel], topics: Mapping[str, TopicFacts], serdes: Serdes
) -> dict[str, InputSpec]:
    """The topics between the stages of a program, as its tasks read them."""
    found = {}
    for one in settings.stages.internal.values() if settings.stages is not None else ():
        writers = tuple(name for name, task in tasks.items() if any(p.topic in one.sources for p in task.inputs))
        facts = topics[one.topic]
        found[one.topic] = InputSpec(
            one.topic, facts.topic_id, serdes.of(one.key, one.topic, KEY), serdes.of(one.value, one.topic, VALUE),
            between=Between(one.sources, writers, facts.partitions, one.timed)
        )
    return found


def _internal_outputs(settings: Settings, topics: Mapping[str, TopicFacts], serdes: Serdes) -> dict[str, OutputSpec]:
    """The same, as its tasks write them."""
    return {
        one.topic: OutputSpec(
            one.topic, UnreservedKeys(serdes.of(one.key, one.topic, KEY)), serdes.of(one.value, one.topic, VALUE),
            topics[one.topic].partitions, topics[one.topic].max_message_bytes
        )
        for one in (settings.stages.internal.values() if settings.stages is not None else ())
    }


def _filled(of: InputSettings, stores: Mapping[str, StoreSpec], tables: Mapping[str, str] | None) -> frozenset[str]:
    """The stores that an input fills (`InputSpec.fills`): of a program its table, of a task's bootstrap input any."""
    logged = {name for name, store in stores.items() if store.changelog}
    if tables is not None:
        return frozenset(logged & {tables[of.topic]}) if of.topic in tables else frozenset()
    return frozenset(logged) if of.bootstrap else frozenset()


def _store_specs(
    settings: Settings,
    topics: Mapping[str, TopicFacts],
    task_count: int,
    where: Location,
    serdes: Serdes,
    wall: SettledClock,
) -> dict[str, StoreSpec]:
    stores = len(settings.stores) * max(1, -(-task_count // settings.containers.count))
    all_bytes = of_all_stores(settings.containers.memory_bytes)
    cache_bytes = of_each_store(all_bytes, stores)
    memory = SharedMemory(all_bytes, stores) if settings.stores else None
    names = JobTopics.of(settings)
    job = names.job
    result = {}
    for name, store in settings.stores.items():
        topic = names.changelogs.get(name)
        facts = topics[topic] if topic else None
        log = topic or job.changelog_topic(name)
        key, value = serdes.of_keys(name, log), serdes.of(store.value, log, VALUE)
        limit = facts.max_message_bytes if facts else 1 << 30

        def open_directory(task: str, name: str = name, engine: str = store.engine) -> StoreDirectory:
            if engine == "memory":
                return MemoryStoreDirectory()
            path = store_path(where.state, where.cluster_id, where.host, str(job), task, name)
            return LocalStoreDirectory(path, lambda p: RocksEngine(p, memory), where.state.expanduser())

        def make(
            task: str, engine: StoreEngine | None, name: str = name, key: Serde = key, value: Serde = value,
            limit: int = limit, topic: str | None = topic, committed_bytes: int = 0 if store.engine == "memory" else cache_bytes // 4,
            ttl_ms: int | None = store.ttl_ms,
        ) -> TaskStore:  # fmt: skip
            named = f"{task}, {f'changelog {topic}' if topic else 'no changelog'}"
            sizes = (cache_bytes - 2 * committed_bytes, limit, named, committed_bytes)
            if ttl_ms is None:
                return HoldingStore(name, engine, key, value, *sizes)
            return ExpiringStore(name, engine, key, value, *sizes, ttl_ms=ttl_ms, now_ms=wall.now_ms, put_ms=wall.put_ms)

        retention = int(facts.config.get("delete.retention.ms", DEFAULT_DELETE_RETENTION_MS)) if facts else DEFAULT_DELETE_RETENTION_MS
        topic_id = facts.topic_id if facts else ""
        result[name] = StoreSpec(
            name=name,
            changelog=topic,
            topic_id=topic_id,
            delete_retention_ms=retention,
            key_serde=store.key,
            value_serde=stored_form(store.value),
            open_directory=open_directory,
            make=make,
            ttl_ms=store.ttl_ms,
        )
    return result


def trace_path(settings: Settings, cluster_id: str, host: str, number: int) -> Path:
    """Where a container's process on a host says where it was when it could say nothing else."""
    return store_path(Path(settings.state.dir), cluster_id, host, str(JobTopics.of(settings).job), TRACES, str(number))


def _settings_here(payload: Mapping[str, Any]) -> Settings:
    """The settings of the job, secrets resolved on this host.

    Raises:
        ConfigurationError: a variable or a file is missing here; the driver was told.
    """
    try:
        return settings_from_document(payload["document"], os.environ)
    except ConfigError as error:
        number, host = int(payload["container"]), str(payload["host"])
        what = "; ".join(f"{p.path}: {p.message}" for p in error.problems)
        missing = ConfigurationError(f"container {number} cannot begin on host {host}, where secrets of the job file are resolved: {what}.", NOT_HERE)
        control = HttpControl(payload["control_url"], payload["token"], number, payload["launch_id"])
        tell_driver(control, random_id(), {"host": host, "pid": os.getpid()}, missing)
        raise missing from None


def run_container(payload: Mapping[str, Any]) -> int:
    """A container's process: everything it needs is in `payload` (JSON), secrets excepted, which are resolved here.

    `payload`: container, launch_id, control_url, token, document, folders, host, model, cluster_id; with `run --profile`, profile: a folder. Returns the exit code.
    """
    collect_rarely()
    settings = _settings_here(payload)
    folders = [Path(f) for f in payload["folders"]]
    for folder in reversed(folders):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    number, host = int(payload["container"]), str(payload["host"])
    failpoints.arm(os.environ, number)
    names = JobTopics.of(settings)
    clock: Clock = SystemClock()
    log = kafka_log(settings)
    heartbeat_s, lease_s = settings.containers.heartbeat_ms / 1000, settings.containers.lease_ms / 1000
    guard_clients(min(LONGEST_S, lease_times.CLIENT * lease_s))
    driver = payload["control_url"], payload["token"], number, payload["launch_id"]
    steady = SteadyTime()
    control = HttpControl(*driver, timeout_s=min(5.0, lease_times.ANSWER * lease_s), steady=steady)
    long_poll = LongPoll(HttpControl(*driver, timeout_s=PARK_S + 10, steady=steady))

    serdes = Serdes(settings, folders)
    user_tasks = imported(settings, payload["document"], folders, serdes)

    def build(assignment: Assignment, incarnation: str, supervision: Supervision) -> Container:
        tasks = tasks_from_json(payload["model"]["tasks"])
        with log.admin() as admin:
            topics = admin.topics([*names.all, names.job.checkpoint_topic])
        gone = [t for t in names.all if t not in topics]
        if gone:
            raise TopicMissing(
                f"there is no topic {', no topic '.join(gone)}: deleted after the job started.",
                "`samzapy stop JOB.yaml`; then `samzapy topics JOB.yaml` shows what can be done.",
            )
        user = user_tasks()
        where = Location(number, host, Path(settings.state.dir), str(payload["cluster_id"]))
        spec = replace(container_spec(settings, tasks, topics, where, user, serdes), replaced_files=watch_files(folders))
        return Container(spec, incarnation, assignment.run_id, assignment.end_offsets, log, clock, supervision=supervision, caution=assignment.caution)

    def die(why: str) -> None:
        LOG.critical("container %d ends at once: %s", number, why)
        os._exit(exit_codes.OWNED_ELSEWHERE)

    holds = tasks_there(local_state(settings, str(payload["cluster_id"]), host).expanduser())
    trace = Trace(trace_path(settings, str(payload["cluster_id"]), host, number), lease_s, Path(settings.state.dir))
    before = {"predecessor_at": trace.predecessor_at, "predecessor_pid": trace.predecessor_pid}
    facts = {"host": host, "pid": os.getpid(), "holds": holds, "held": trace.held, **before}
    hang_s = settings.commit.timeout_ms / 1000
    into = payload.get("profile")
    sampler = Sampler() if threading.current_thread() is threading.main_thread() else None  # with --inline it is not
    profile = LoopProfile(Path(into), f"container-{number}-{time.strftime('%Y%m%dT%H%M%S')}", sampler) if into else None
    try:
        with profile or nullcontext():
            return ContainerRunner(
                number=number,
                build=build,
                control=control,
                log=log,
                clock=clock,
                facts=facts,
                heartbeat_s=heartbeat_s,
                lease_s=lease_s,
                stuck_hook_s=hang_s,
                die=die,
                arm=trace.arm,
                before_end=profile.end if profile else lambda: None,
                long_poll=long_poll,
                sampler=sampler,
            ).run()
    finally:
        if sampler is not None:
            sampler.close()
        trace.close()
