"""Every failpoint, struck: whatever process ends at whatever step of the protocol, nothing is lost, doubled or out of step afterwards.

On the in-memory log, with the real coordinator, containers and RocksDB stores of `MemoryJob`: by default each point once, several in one life
of a job; `make prove` takes each alone. On a real broker, with real processes (`StruckJob`): by default a handful, under `make prove` all of
them, several in one life. Both proofs take both guarantees, local state kept and gone, and the first and the third hit.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from samzapy import failpoints
from samzapy.coordinator.coordinator_log import CoordinatorLog
from samzapy.store.overlay import OverlayStore
from tests.recovery.chain import DOUBLED, WRONG_STATE
from tests.recovery.failpoint_job import FailpointJob, rule
from tests.recovery.frozen_container import FrozenContainerJob
from tests.recovery.memory_job import MemoryJob

BY_PROCESS_ONLY = {"end.report.before"}  # stands in the runner, which MemoryJob has no use for
OF_PROGRAMS = {"marks.sent", "purge.before", "purge.after"}  # between stages: test_failpoints_of_programs.py
POINTS = [name for name in failpoints.POINTS if name not in BY_PROCESS_ONLY | OF_PROGRAMS]
GROUPS = 9
TABLE = [(exactly_once, keep_state) for exactly_once in (True, False) for keep_state in (True, False)]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where disks are cheap to write to, if there is such a place: dozens of stores are opened and flushed."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="samzapy-failpoints-", dir=memory if memory.is_dir() else None) as made:
        yield Path(made)


def live(job: MemoryJob) -> None:
    """A life in which every point is met three times: killed, scaled, restarted, stopped, and run to the end twice."""
    job.start()
    job.feed(20)
    job.until_idle(3)
    job.feed(5)
    job.turn()
    job.kill_driver()
    job.start()
    job.until_idle(3)
    job.scale(1)
    job.feed(5)
    job.scale(3)
    job.feed(5)
    job.until_idle(3)
    job.restart(1)
    job.restart(2)
    job.feed(3)
    job.until_idle(3)
    job.pass_time(12.0)  # stores are flushed every ten seconds
    job.stop()
    for _ in range(2):
        job.feed(5)
        job.until_end()


class Strikes:
    """A callback that crashes whoever meets one of these points for the nth time, or raises something else there; once each."""

    def __init__(self, names: Sequence[str], nth: int, error: type[BaseException] = failpoints.Crash) -> None:
        self._names, self._nth, self._error = set(names), nth, error
        self.hits = Counter[str]()

    def __call__(self, name: str) -> None:
        self.hits[name] += 1
        if name in self._names and self.hits[name] == self._nth:
            raise self._error(name)

    def struck(self) -> set[str]:
        return {name for name in self._names if self.hits[name] >= self._nth}


def strike(
    folder: Path, names: Sequence[str], nth: int, exactly_once: bool, keep_state: bool, error: type[BaseException] = failpoints.Crash
) -> None:  # fmt: skip
    job = MemoryJob(folder, exactly_once=exactly_once, keep_state=keep_state)
    strikes = Strikes(names, nth, error)
    with failpoints.calling(strikes):
        live(job)
    assert set(names) == strikes.struck()
    assert error is not failpoints.Crash or len(names) == job.crashes
    verdict = job.verdict()
    assert verdict.clean, str(verdict)
    assert 0 == job.exit_code


def test_without_a_crash_every_point_is_met_three_times(folder: Path) -> None:
    strikes = Strikes([], 1)
    job = MemoryJob(folder)
    with failpoints.calling(strikes):
        live(job)

    assert [] == [name for name in POINTS if strikes.hits[name] < 3]
    assert job.verdict().clean, str(job.verdict())


@pytest.mark.parametrize("group", range(GROUPS))
def test_every_point_crashed_at_once_in_the_life_of_a_job(folder: Path, group: int) -> None:
    exactly_once, keep_state = TABLE[group % len(TABLE)]
    strike(folder, POINTS[group::GROUPS], 1, exactly_once, keep_state)


@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "nth", "exactly_once", "keep_state"),
    [
        pytest.param(name, nth, *way, id=f"{name}-{nth}-{'exactly' if way[0] else 'at_least'}-{'kept' if way[1] else 'gone'}")
        for name, nth, way in itertools.product(POINTS, (1, 3), TABLE)
    ],
)
def test_each_point_alone_in_every_way(folder: Path, name: str, nth: int, exactly_once: bool, keep_state: bool) -> None:
    strike(folder, [name], nth, exactly_once, keep_state)


@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.parametrize("name", POINTS)
def test_an_error_that_nobody_foresaw_at_each_point(folder: Path, name: str) -> None:
    strike(folder, [name], 2, True, True, failpoints.FailpointError)


def test_the_verdict_sees_a_restore_that_loses_a_record(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: without it a clean verdict would say nothing."""
    load = OverlayStore.load
    monkeypatch.setattr(OverlayStore, "load", lambda store, records, stamp: load(store, records[1:], stamp))
    job = MemoryJob(folder, keep_state=False)
    live(job)

    assert WRONG_STATE in job.verdict().kinds()


# -- who wakes up --------------------------------------------------------------------------------------------------------------------

OF_CONTAINERS = [name for name in POINTS if not name.startswith("coordinator.")]
AT_ONCE, LATE = 0, 40  # turns between being given up and waking up
ZOMBIES = (
    "own.init.before",
    pytest.param("own.init.after", marks=pytest.mark.prove),
    pytest.param("restore.batch.applied", marks=pytest.mark.prove),
    "commit.C4.before",
    pytest.param("store.flush.before", marks=pytest.mark.prove),
    "move.released.before_ack",
)


def sleep(folder: Path, name: str, nth: int, wake_after: int, exactly_once: bool) -> None:
    """The life of a job in which a container sleeps at a point, is given up, and wakes up beside its successor."""
    job = FrozenContainerJob(folder, name, nth, wake_after, exactly_once=exactly_once)
    with failpoints.calling(job):
        live(job)
        if not job.woke_up:
            job.wake_up()
    assert job.frozen is not None, "nobody met the point"
    verdict = job.verdict()
    assert verdict.clean, str(verdict)
    assert 0 == job.exit_code


@pytest.mark.parametrize("name", ZOMBIES)
def test_a_container_that_wakes_up_after_it_was_given_up_does_no_harm(folder: Path, name: str) -> None:
    sleep(folder, name, 2, LATE, True)


@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly", "at_least"])
@pytest.mark.parametrize("wake_after", [AT_ONCE, LATE], ids=["at_once", "late"])
@pytest.mark.parametrize("name", OF_CONTAINERS)
def test_whoever_wakes_up_anywhere_does_no_harm(folder: Path, name: str, wake_after: int, exactly_once: bool) -> None:
    sleep(folder, name, 3, wake_after, exactly_once)


@pytest.mark.parametrize("fenced", [True, False])
def test_without_the_fence_whoever_wakes_up_does_harm(folder: Path, monkeypatch: pytest.MonkeyPatch, fenced: bool) -> None:
    """A planted bug. The sleeper holds no transaction open, and its container is slow to start again: only the fence stands in its way."""
    if not fenced:
        monkeypatch.setattr(CoordinatorLog, "fence", lambda topic, container: None)
    job = FrozenContainerJob(folder, "process.batch", 2, 10, start_turns=30)
    with failpoints.calling(job):
        live(job)

    assert job.woke_up
    assert (set() if fenced else {DOUBLED}) == job.verdict().kinds()


# -- on a broker, in processes -------------------------------------------------------------------------------------------------------

ON_ONE_HOST_NEVER = {name for name in failpoints.POINTS if name.startswith("standby.")}  # a copy never lies on its owner's host
IN_PROCESSES = [name for name in failpoints.POINTS if name not in ON_ONE_HOST_NEVER | OF_PROGRAMS]
LIVES = 4
TWICE_AT_MOST = {"start.first_checkpoint.before", "start.first_checkpoint.after"}  # the first start of each container, and never again
INSIDE_C4_S = (0.0005, 0.001, 0.002, 0.004)
HANDFUL = (
    "restore.batch.applied", "commit.C3.sent", "move.released.before_ack", "coordinator.moved.after", "end.report.before",
)  # fmt: skip


def prove(servers: str, folder: Path, name: str, rules: Sequence[failpoints.Rule], exactly_once: bool, keep_state: bool) -> None:
    job = FailpointJob(servers, folder, name, rules, exactly_once, keep_state)
    job.live()
    verdict = job.verdict()
    assert verdict.clean, f"{verdict}\n{job.job.log_tail(20_000)}"
    assert [] == job.problems
    assert [] == job.left(), "these did not strike"


@pytest.mark.prove
@pytest.mark.kafka
@pytest.mark.slow
def test_processes_that_are_killed_at_a_handful_of_points(kafka: str, tmp_path: Path, unique: str) -> None:
    prove(kafka, tmp_path, unique, [rule(name, 1, True) for name in HANDFUL], True, True)


@pytest.mark.prove
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("life", range(LIVES))
@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly", "at_least"])
@pytest.mark.parametrize("keep_state", [True, False], ids=["kept", "gone"])
def test_processes_that_are_ended_at_every_point_in_every_way(
    kafka: str, tmp_path: Path, unique: str, life: int, nth: int, exactly_once: bool, keep_state: bool
) -> None:
    rules = [rule(name, min(nth, 2) if name in TWICE_AT_MOST else nth, keep_state) for name in IN_PROCESSES[life::LIVES]]
    inside_c4 = rule("commit.C4.before", 5 * nth, keep_state, INSIDE_C4_S[life])
    prove(kafka, tmp_path, unique, [*rules, inside_c4], exactly_once, keep_state)
