"""Records that end their container: found by the deaths alone, over the in-memory log, with the container and the decisions as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream, TaskError, failpoints
from samzapy.container.container import Container
from samzapy.model.caution import Caution, Piece
from samzapy.model.dead_letter import Origin
from samzapy.plan.suspects import after_death
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
                self.caution = after_death(self.caution, self.at, "killed by SIGSEGV", 0, WATCH_S).caution
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
