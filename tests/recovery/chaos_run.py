"""A chaos run from its stage to its report: `conduct` for `python -m tests.recovery.run --chaos`, and for the short run of the tests.

The jobs run as child processes first and, if there is a Spark, the first of them on its executors then, over the same topics: one load, one
verdict. (The second stays where it is: two drivers on Spark measure this machine, not the job.) A run that breaks off is told with its faults.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from samzapy.dev.kafka import LocalKafka
from samzapy.dev.spark import LocalSpark
from tests.broker import ends
from tests.errors_table import rows
from tests.proxy.proxy import KafkaProxy
from tests.recovery.aborted import AbortedReader
from tests.recovery.chaos import CORRUPTED, DISK_FULL, FLUSHED_S, LOCAL, OF_SPARK, SPARK, WEIGHTS, World, kinds_of, play, script
from tests.recovery.chaos_report import ChaosReport, Struck, demands
from tests.recovery.fault_run import FaultRun, now_ms
from tests.recovery.job import ChainJob
from tests.recovery.load import Load
from tests.recovery.phases import phases
from tests.recovery.repartition import RepartitionJob
from tests.recovery.said import Said, said
from tests.recovery.scenario import Step

DISK_MIB = 256
LOCAL_SHARE = 0.4  # of the time, where there is a Spark as well
CLEARING_S = 30.0
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is asked for: so many minutes, or `most_faults` if these come first. `brokers`: how many of our own, which can be hit; None: those
    at `servers`, which stay whole. `spark`: workers and cores."""

    seed: int
    minutes: float
    folder: Path
    name: str
    servers: str = ""
    brokers: int | None = 3
    spark: tuple[int, int] | None = None
    tasks: int = 6
    containers: int = 3
    rate: float = 360.0
    keys: int = 1000
    calm_s: float = 0.6
    impatient: float = 0.35
    lease_ms: int = 3000
    commit_interval: str = "200ms"
    guarantee: str = "exactly_once"
    kinds: tuple[str, ...] = ()
    look_every: int = 10
    small_disk: bool = True
    most_faults: int = 1 << 30
    sets: Sequence[str] = field(default=())

    def sections(self, containers: int) -> dict[str, object]:
        return {
            "commit": {"interval": self.commit_interval, "guarantee": self.guarantee},
            "containers": {
                "count": containers, "lease": f"{self.lease_ms}ms", "heartbeat": f"{self.lease_ms // 6}ms", "max_restarts": 100_000,
                "restart_window": "10s",
            },
            "spark": {"conf": {"spark.executor.memory": "512m"}},
        }  # fmt: skip


def conduct(plan: Plan, say: Say) -> ChaosReport:
    """The whole run.

    Raises:
        AssertionError: it broke off, with the faults up to then.
    """
    left_out: list[str] = []
    codes = [row.code for row in rows()]
    with contextlib.ExitStack() as blocks:
        world = stage(plan, blocks, left_out, say)
        try:
            with contextlib.ExitStack() as lives:
                lives.enter_context(world.first)
                lives.enter_context(world.second)
                return _run(plan, world, blocks, left_out, codes, say)
        except AssertionError as failure:
            told = "\n".join(f"{i}: {f}" for i, f in enumerate(world.faults(), 1))
            raise AssertionError(f"BROKEN OFF, seed {plan.seed}\n{told}\n{failure}") from failure


def stage(plan: Plan, blocks: contextlib.ExitStack, left_out: list[str], say: Say) -> World:
    """Brokers, proxy, disk and both jobs; what is ours ends with `blocks`."""
    servers, kafka = plan.servers, None
    if plan.brokers is not None:
        blocks.callback(shutil.rmtree, plan.folder / "kafka", ignore_errors=True)
        kafka = LocalKafka.start(port=0, brokers=plan.brokers, directory=plan.folder / "kafka", say=say, tied=True)
        blocks.callback(kafka.stop)
        servers = kafka.bootstrap_servers
    proxy = blocks.enter_context(KafkaProxy(servers))
    disk = plan.folder / "first" / "state"
    mounted = plan.small_disk and _mount(disk, blocks)
    if plan.small_disk and not mounted:
        left_out.append(f"{DISK_FULL}: a file system of its own cannot be mounted by this user")
    arguments = ("--local", *(word for pair in plan.sets for word in ("--set", pair)))
    first = ChainJob(
        servers, plan.folder / "first", f"{plan.name}-chain", plan.tasks, plan.containers, arguments, plan.sections(plan.containers),
        client_servers=proxy.bootstrap_servers,
    )  # fmt: skip
    second = RepartitionJob(
        first.topics.output, plan.tasks, servers, plan.folder / "second", f"{plan.name}-groups", plan.tasks, 2, arguments, plan.sections(2),
        client_servers=proxy.bootstrap_servers,
    )  # fmt: skip
    load = Load(servers, first.topics.input, plan.tasks, plan.rate, plan.keys, plan.seed)
    fault_runs = FaultRun(first, load, numbered=first.exactly_once), FaultRun(second, None, numbered=False)
    for fault_run in fault_runs:
        fault_run.part = LOCAL
    return World(*fault_runs, plan.folder / "copies", kafka, proxy, disk if mounted else None)


def _mount(disk: Path, blocks: contextlib.ExitStack) -> bool:
    """A small file system in memory at `disk`, if this user may."""
    disk.mkdir(parents=True)
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(disk)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        return False
    if done.returncode == 0:
        blocks.callback(subprocess.run, ["umount", "--lazy", str(disk)], check=False, stdin=subprocess.DEVNULL)
    return done.returncode == 0


def _run(plan: Plan, world: World, blocks: contextlib.ExitStack, left_out: list[str], codes: Sequence[str], say: Say) -> ChaosReport:
    readers = [AbortedReader(t.job.servers, t.job) for t in world.fault_runs]
    world.looks += [r.look for r in readers]
    local_s = 60 * plan.minutes * (LOCAL_SHARE if plan.spark else 1.0)
    _hit(plan, world, local_s, False, say)
    if plan.spark:
        cluster = LocalSpark.start(directory=plan.folder / "spark", workers=plan.spark[0], cores=plan.spark[1], say=say, tied=True)
        blocks.callback(cluster.stop)
        say("the first job moves to Spark")
        world.recovered()
        world.brokers_back()
        world.look()
        world.first.run_elsewhere(("--master", cluster.url, *world.first.job.arguments[1:]), cluster)
        world.first.part = SPARK
        _hit(plan, world, 60 * plan.minutes - local_s, True, say)
    last_ms = max((max(f.at_ms, f.over_ms) for f in world.faults()), default=now_ms())
    world.brokers_back()
    load_s = world.first.loaded_s()
    records = world.first.stop_load()
    for fault_run in world.fault_runs:
        fault_run.caught_up()
    lag_s = (now_ms() - last_ms) / 1000
    say(f"caught up {lag_s:.1f} s after the last fault")
    # Most damage is found when its store is flushed. At a stop it is too late to build the store again: the next start does that. A compaction may
    # find damage after the last flush; only the flush of the stop tells it then (`verify_stores`).
    damaged_ms = max((f.at_ms for f in world.faults() if f.kind == CORRUPTED), default=0)
    if (rest_s := FLUSHED_S - (now_ms() - damaged_ms) / 1000) > 0:
        world.passed(rest_s)
        for fault_run in world.fault_runs:
            fault_run.caught_up()
    world.look()
    return _conclude(plan, world, readers, left_out, codes, records, load_s, lag_s, say)


def _hit(plan: Plan, world: World, seconds: float, spark: bool, say: Say) -> None:
    until = time.monotonic() + seconds
    there = kinds_of(spark, world.kafka is not None, world.proxy is not None, world.disk is not None)
    kinds = tuple(k for k in there if not plan.kinds or k in plan.kinds)
    # what only Spark has comes first there: all else has had its turn
    turns = script(plan.seed + spark, kinds, plan.calm_s, plan.impatient)

    def enough() -> bool:
        return time.monotonic() >= until or len(world.faults()) >= plan.most_faults

    play(world, _sorted_first(turns, len(kinds)) if spark else turns, enough, plan.lease_ms / 1000, plan.look_every, say)


def _sorted_first(turns: Iterator[Step], count: int) -> Iterator[Step]:
    """The first round with Spark's own kinds in front."""
    first = [next(turns) for _ in range(count)]
    yield from sorted(first, key=lambda step: step.kind not in OF_SPARK)
    yield from turns


def _conclude(
    plan: Plan,
    world: World,
    readers: Sequence[AbortedReader],
    left_out: Sequence[str],
    codes: Sequence[str],
    records: int,
    load_s: float,
    lag_s: float,
    say: Say,
) -> ChaosReport:
    reports = {}
    for fault_run in world.fault_runs:
        say(f"stopping and verifying {fault_run.job.name}")
        reports[fault_run.job.name] = fault_run.conclude(any(f.kind == CORRUPTED for f in fault_run.faults))
    struck = [
        Struck(fault_run.job.name.rpartition("-")[2], fault, met)
        for fault_run, reader in zip(world.fault_runs, readers, strict=True)
        for fault, met in zip(fault_run.faults, phases(fault_run.faults, reader.found, fault_run.observer.events()), strict=True)
    ]
    problems = [*world.problems, *(p for t in world.fault_runs for p in (*_open_transactions(t), *_fresh_restore(t)))]
    aborted: dict[str, int] = {}
    for reader in readers:
        for record in reader.found:
            aborted[record.kind] = aborted.get(record.kind, 0) + 1
    return ChaosReport(
        reports, sorted(struck, key=lambda s: s.fault.at_ms), problems, _said(world, plan.folder, codes),
        [r for t in world.fault_runs for r in t.watch.restores()], records, load_s, lag_s, world.woken, aborted,
        demands(plan.minutes, plan.rate, plan.spark is not None, plan.guarantee == "exactly_once"), left_out,
    )  # fmt: skip


def _open_transactions(fault_run: FaultRun) -> list[str]:
    """Topics of the job that end, for a committed reader, before they end."""
    found = []
    deadline = time.monotonic() + CLEARING_S
    for topic in (fault_run.job.topics.input, *fault_run.job.own_topics):
        while (stable := ends(fault_run.job.servers, topic)) != (ends(fault_run.job.servers, topic, "read_uncommitted")):
            if time.monotonic() > deadline:
                found.append(f"a transaction is open on {topic}: committed readers stop at {stable}")
                break
    return found


def _fresh_restore(fault_run: FaultRun) -> list[str]:
    """Build every store anew where there is none, and compare it with what is committed."""
    elsewhere = ("--set", f"state.dir={fault_run.job.folder / 'fresh'}")
    found = []
    for words in (("state", "restore", *elsewhere), ("state", "verify", *elsewhere)):
        done = fault_run.job.command(*words)
        if done.returncode != 0:
            found.append(
                f"{fault_run.job.name}: {' '.join(words[:2])} of a fresh directory: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            )
    return found


def _said(world: World, folder: Path, codes: Sequence[str]) -> Said:
    """What the drivers' logs, and those of Spark's executors, say."""
    files = [t.job.log for t in world.fault_runs] + sorted((folder / "spark").glob("**/stderr"))
    return said((line for f in files for line in f.read_text(errors="replace").splitlines()), codes)


def unknown_kinds(kinds: Sequence[str]) -> list[str]:
    return sorted(set(kinds) - set(WEIGHTS))
