"""Records that end their container: found by the deaths alone, over the in-memory log, with the container and the decisions as they are."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream, TaskError, failpoints
from samzapy.container.container import Container
from samzapy.container.first_offsets import condemned_before
from samzapy.container.spec import InputSpec
from samzapy.model.caution import Caution, Piece
from samzapy.model.checkpoint import MAX_CONDEMNED, InputMark, checkpoint_from_bytes
from samzapy.model.dead_letter import Origin
from samzapy.model.process_end import killed_by
from samzapy.plan.deadly_record_search import after_death
from samzapy.ports import Supervision
from tests.unit.container.bench import Bench

OUT = SystemStream("kafka", "out")
WATCH_S = 300.0


class Deadly(StreamTask):
    """Sums; what begins with `crash` is the end of the process, as far as a test can have that."""

    def init(self, context):
        self.sums = context.get_store("s")

    def process(self, envelope, collector, coordinator):
        total = (self.sums.get(envelope.key) or 0) + envelope.message
        self.sums.put(envelope.key, total)
        collector.send(OutgoingMessageEnvelope(OUT, key=envelope.key, message=total, partition=envelope.partition))
        if envelope.key.startswith("crash"):
            raise failpoints.Crash


class Coordinator:
    """Starts containers over a bench, and sees them die."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.caution = Caution()
        self.at: Piece | None = None
        self.told: list[Piece | None] = []
        self.deaths = 0

    def start(self) -> Container:
        spec = self.bench.adjust(self.bench.spec())
        incarnation = f"i{self.bench.epoch + 1}"
        self.bench.name(0, incarnation, spec.tasks)
        supervision = Supervision(announce=self._hear)
        container = Container(spec, incarnation, "run", None, self.bench.log, self.bench.clock, supervision=supervision, caution=self.caution)
        container.start()
        return container

    def _hear(self, piece: Piece | None) -> None:
        self.at = piece
        self.told.append(piece)

    def run(self, until: Callable[[Container], None]) -> Container:
        """Start containers until one gets through."""
        while True:
            container = self.start()
            try:
                until(container)
            except failpoints.Crash:
                container.close()
                self.deaths += 1
                assert self.deaths < 50, "the search does not end"
                self.caution = after_death(self.caution, self.at, killed_by(signal.SIGSEGV), 0, WATCH_S).caution
                self.at = None
            else:
                return container


@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize("then", ["skip", "dead_letter"])
def test_records_that_end_their_container_are_found_and_every_other_counts_once(tmp_path: Path, then: str, exactly_once: bool) -> None:
    bench = Bench(tmp_path, Deadly, partitions=2, on_error=then, exactly_once=exactly_once)
    keys = [f"crash{i}" if i in (0, 700, 701, 999) else f"k{i}" for i in range(1000)]
    bench.feed(*((k, 1) for k in keys))
    bench.feed(*((k, 1) for k in ("a", "crash", "b")), partition=1)
    office = Coordinator(bench)
    office.run(bench.drain)
    expected = [k for k in keys if not k.startswith("crash")]
    if exactly_once:
        assert [(k, 1) for k in expected] == bench.read("out")
    assert {(k, 1) for k in expected} == set(bench.read("out"))
    assert dict.fromkeys(expected, 1) == bench.changelog()
    assert {"a": 1, "b": 1} == bench.changelog(1)
    found = {("in", 0, i) for i in (0, 700, 701, 999)} | {("in", 1, 1)}
    assert found == {tuple(c.record) for c in office.caution.condemned}
    if then == "dead_letter":
        letters = [*bench.letters(0), *bench.letters(1)]
        assert found == {tuple(letter.origin) for letter in letters}
        assert len(found) == len(letters)
        assert all("killed by SIGSEGV" in letter.error for letter in letters)
        assert {2} == {letter.attempts for letter in letters}
    assert office.deaths <= 1 + len(found) * 5


def test_with_fail_the_job_stops_there_with_the_record_named_and_all_before_it_committed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Deadly)
    bench.feed(*((f"crash{i}" if i == 77 else f"k{i}", 1) for i in range(100)))
    office = Coordinator(bench)
    with pytest.raises(TaskError, match=r"Partition 0: process failed 2 times on record in\[0\]@77: .*killed by SIGSEGV"):
        office.run(bench.drain)
    assert [(f"k{i}", 1) for i in range(77)] == bench.read("out")
    assert Origin("in", 0, 77) == office.caution.condemned[0].record


def test_a_container_that_is_not_watched_says_nothing_and_one_that_is_says_it_before_and_after(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Deadly)
    bench.feed(("a", 1), ("b", 1))
    office = Coordinator(bench)
    container = office.run(bench.drain)
    assert [] == office.told
    container.close()
    office.caution = Caution(WATCH_S)
    bench.feed(("c", 1), ("d", 1))
    container = office.run(bench.drain)
    assert ["in[0]@2..3", "None"] == [str(piece) for piece in office.told]
    bench.clock.passed += WATCH_S
    bench.feed(("e", 1))
    bench.drain(container)
    assert 2 == len(office.told)


def test_suspects_are_alone_in_their_transactions_and_are_none_when_they_are_passed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Deadly, exactly_once=True)
    bench.feed(*((f"crash{i}" if i == 499 else f"k{i}", 1) for i in range(500)))
    office = Coordinator(bench)
    with pytest.raises(TaskError):
        office.run(bench.drain)
    pieces = [piece.count for piece in office.told if piece is not None]
    assert [500, *([15] * 33), 5, *([1] * 5), 1, 1] == pieces  # it is told once more when it is passed by


class Filling(Deadly):
    """As `Deadly`, on a bootstrap input; of others it sends how many entries there are."""

    def process(self, envelope, collector, coordinator):
        if envelope.stream == "users":
            super().process(envelope, collector, coordinator)
        else:
            collector.send("out", len(list(self.sums.all())), envelope.key)


BOOTSTRAP = {"inputs": {"in": {}, "users": {"bootstrap": True}}, "stores": {"s": {"changelog": False}}}


@pytest.mark.parametrize("on_error", ["dead_letter", "skip"])
def test_a_bootstrap_record_that_ends_its_container_is_passed_by_when_it_is_read_again(tmp_path: Path, on_error: str) -> None:
    bench = Bench(tmp_path, Filling, on_error=on_error, **BOOTSTRAP)  # type: ignore[arg-type]
    bench.feed(("a", 1), ("crash", 1), ("c", 1), ("crash too", 1), topic="users")
    deaths = []
    for number in range(3):
        bench.feed((f"m{number}", 1))
        coordinator = Coordinator(bench)  # it knows nothing of the runs before
        coordinator.run(bench.drain).close()
        deaths.append(coordinator.deaths)
    assert deaths[0] > 0
    assert [0, 0] == deaths[1:]
    assert ([Origin("users", 0, 1), Origin("users", 0, 3)] if on_error == "dead_letter" else []) == [x.origin for x in bench.letters()]
    assert [("m0", 2), ("m1", 2), ("m2", 2)] == [(k, v) for k, v in bench.read("out") if k.startswith("m")]


def test_a_bootstrap_record_that_kafka_refused_is_passed_by_when_it_is_read_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Filling, on_error="skip", **BOOTSTRAP)  # type: ignore[arg-type]
    bench.cluster.configure("out", {"max.message.bytes": "500"})
    bench.feed(("a", 1), ("x" * 600, 1), topic="users")
    for number in range(3):
        bench.feed((f"m{number}", 1))
        container = Coordinator(bench).start()
        idle = 0
        while idle < 3:
            bench.clock.passed += 2.0
            idle = 0 if container.step(0.0) else idle + 1
        container.commit()
        container.close()
    assert [("m0", 1), ("m1", 1), ("m2", 1)] == [(k, v) for k, v in bench.read("out") if k.startswith("m")]


def test_a_record_that_was_condemned_counts_where_the_checkpoint_is_set_before_it_or_the_topic_is_another() -> None:
    mark = InputMark("id", 9, None, (3, 5))
    spec = InputSpec("users", "id", None, None, bootstrap=True)  # type: ignore[arg-type]
    assert (3, 5) == condemned_before(9, spec, mark)
    assert (3,) == condemned_before(5, spec, mark)
    assert () == condemned_before(9, replace(spec, topic_id="other"), mark)
    assert () == condemned_before(9, spec, None)


def test_the_newest_condemned_records_are_remembered(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Filling, on_error="skip", **BOOTSTRAP)  # type: ignore[arg-type]
    bench.feed(("a", 1), topic="users")
    container = bench.start()
    task = container.tasks["Partition 0"]
    (users,) = (i for i in task.inputs if i.spec.bootstrap)
    for offset in range(MAX_CONDEMNED + 1):
        users.condemn(offset)
    bench.drain(container)
    assert tuple(range(1, MAX_CONDEMNED + 1)) == task.committed.inputs["users[0]"].condemned
    assert task.committed == checkpoint_from_bytes(task.committed.to_bytes())
