"""Dead letters seen from outside, and sent back at most once each, whatever happens to the replay."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.api.errors import ConfigurationError, Fenced, LogError, NotAuthorized, RecordTooLarge, TopicMissing, TransactionAborted
from samzapy.cli.dlq import _tell_passed_by, send_back
from samzapy.cli.dlq_filter import filter_of
from samzapy.container.container import Container
from samzapy.model.acls import Access
from samzapy.model.dead_letter import Origin, parse_origin
from samzapy.model.offsets import TopicPartition
from samzapy.ops.dead_letters import DeadLetters
from samzapy.ops.letter_choice import Filter, replay_of
from samzapy.ops.letters import Entry, Found
from samzapy.ops.replay_time import why_not_own
from samzapy.ports import Consumer, Message, TopicSpec, TransactionalProducer
from samzapy.readers import read_to_end
from samzapy.testing.memory_log import MemoryAdmin, MemoryLog
from tests.unit.container.bench import JOB, Bench

OUT = SystemStream("kafka", "out")


class Fragile(StreamTask):
    """Sends what it gets, but not `boom`."""

    def process(self, envelope, collector, coordinator):
        if envelope.key.startswith("boom"):
            raise ValueError(envelope.key)
        collector.send(OutgoingMessageEnvelope(OUT, key=envelope.key, message=envelope.message, partition=envelope.partition))


def bench_of(tmp_path: Path, letters: int = 3, partitions: int = 2) -> tuple[Bench, Container]:
    """A job with so many dead letters in each partition, all committed."""
    bench = Bench(tmp_path, Fragile, partitions=partitions, on_error="dead_letter")
    container = bench.start()
    for partition in range(partitions):
        bench.feed(*((f"boom{partition}{i}", i) for i in range(letters)), ("good", 1), partition=partition)
    bench.drain(container)
    return bench, container


def letters_of(bench: Bench, inputs: Sequence[str] = ("in",)) -> DeadLetters:
    return DeadLetters(JOB, inputs, bench.log, bench.clock)


def records(bench: Bench, partition: int = 0, topic: str = "in") -> list[Message]:
    return [m for batch in read_to_end(bench.log.restore_consumer("t"), TopicPartition(topic, partition), bench.clock) for m in batch]


def quiet(done: int, of: int) -> None:
    """Nobody listens."""


def test_that_older_ones_were_deleted_is_known(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path)
    assert 0 == letters_of(bench).read().deleted
    bench.cluster.delete_records(TopicPartition(JOB.dead_letter_topic, 1), 2)
    found = letters_of(bench).read()
    assert (2, 4) == (found.deleted, len(found.entries))


def test_the_oldest_comes_first_with_where_it_lies(tmp_path: Path) -> None:
    bench, container = bench_of(tmp_path, letters=1)
    bench.clock.passed += 1
    bench.feed(("boom", 1), partition=0)
    bench.drain(container)
    found = letters_of(bench).read()
    assert [Origin("in", 0, 0), Origin("in", 1, 0), Origin("in", 0, 2)] == [e.letter.origin for e in found.entries]
    assert {JOB.dead_letter_topic} == {e.place.topic for e in found.entries}
    assert [None] * 3 == [e.replayed_ms for e in found.entries]


def test_a_number_names_the_same_dead_letter_whatever_comes_or_goes(tmp_path: Path) -> None:
    bench, container = bench_of(tmp_path, letters=2)
    before = {e.number: e.letter.origin for e in letters_of(bench).read().entries}
    assert 4 == len(before)
    bench.clock.passed -= 60  # what comes now says that it is older, as from a host whose clock is slow
    bench.feed(("boom", 1), partition=0)
    bench.drain(container)
    gone = min((e.place for e in letters_of(bench).read().entries if e.place.partition == 1), key=lambda place: place.offset)
    bench.cluster.delete_records(TopicPartition(JOB.dead_letter_topic, 1), gone.offset + 1)

    found = letters_of(bench).read()
    assert Origin("in", 0, 3) == found.entries[0].letter.origin, "the order has changed"
    after = {e.number: e.letter.origin for e in found.entries}
    kept = before.keys() & after.keys()
    assert {n: before[n] for n in kept} == {n: after[n] for n in kept}
    assert (3, {f"1.{gone.offset}"}) == (len(kept), before.keys() - after.keys())
    number, origin = next(iter(before.items()))
    assert [origin] == [e.letter.origin for e in found.named(number)] == [e.letter.origin for e in found.named(str(origin))]
    with pytest.raises(ConfigurationError, match=r"no dead letter '3'"):
        found.named("3")


def test_what_lies_there_and_is_no_dead_letter_is_counted(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path)
    for name in ("x", "\udcff"):  # the second is not UTF-8: the client gives no headers of this record, but an error
        bench.log.plain_producer("other").send(JOB.dead_letter_topic, b"v", b"k", 0, headers=[(name, b"1")])
    found = letters_of(bench).read()
    assert (6, 2) == (len(found.entries), found.strangers)


@pytest.mark.parametrize(
    ("header", "value"), [("partition", b"-1"), ("offset", b"-1"), ("partition", b"one"), ("offset", "\u0663".encode())]
)
def test_a_forged_one_that_names_no_place_is_none(tmp_path: Path, header: str, value: bytes) -> None:
    """Sent to partition -1 it would go anywhere."""
    bench, _ = bench_of(tmp_path, letters=0)
    good = {"topic": b"in", "partition": b"0", "offset": b"0", "timestamp": b"-1", "task": b"t", "error": b"e", "stack": b"s"}
    headers = [(f"samzapy-{k}", v) for k, v in {**good, "attempts": b"1", "time": b"1", header: value}.items()]
    bench.log.plain_producer("other").send(JOB.dead_letter_topic, b"v", b"k", 0, headers=headers)
    found = letters_of(bench).read()
    assert (0, 1) == (len(found.entries), found.strangers)
    assert [] == letters_of(bench).replay(None, quiet)


@pytest.mark.parametrize("timestamp", [-5000, -(1 << 63), (1 << 63) - 1, 1 << 62])
def test_a_record_of_any_time_that_a_broker_takes_has_a_dead_letter(tmp_path: Path, timestamp: int) -> None:
    bench, _ = bench_of(tmp_path, letters=0)
    told = {"topic": "in", "partition": 0, "offset": 0, "timestamp": timestamp, "task": "t", "error": "e", "stack": "s", "attempts": 1, "time": 1}
    headers: list[tuple[str, bytes | None]] = [(f"samzapy-{name}", str(value).encode()) for name, value in told.items()]
    bench.log.plain_producer("job").send(JOB.dead_letter_topic, b"v", b"k", 0, headers=headers)
    found = letters_of(bench).read()
    assert [timestamp] == [entry.letter.timestamp_ms for entry in found.entries]
    assert 0 == found.strangers
    assert "" != why_not_own(timestamp, 0, {"message.timestamp.after.max.ms": "3600000"})  # it is sent back with a new time


def test_dead_letters_that_age_away_while_they_are_read_are_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("samzapy.readers.BATCH", 1)
    bench, _ = bench_of(tmp_path, partitions=1)

    class Overtaken(DeadLetters):
        def _read(self, consumer: Consumer, ends: Mapping[TopicPartition, int]) -> Found:
            return super()._read(Ageing(consumer, bench), ends)  # type: ignore[arg-type]

    with pytest.raises(LogError, match="by age while they were read"):
        Overtaken(JOB, ["in"], bench.log, bench.clock).read()
    assert 1 == len(letters_of(bench).read().entries)


class Ageing:
    """A consumer whose topic loses its first records after the first poll."""

    def __init__(self, consumer: Consumer, bench: Bench) -> None:
        self._consumer, self._bench = consumer, bench

    def __getattr__(self, name: str) -> object:
        return getattr(self._consumer, name)

    def poll(self, most: int, timeout_s: float) -> Sequence[Message]:
        batch = self._consumer.poll(most, timeout_s)
        self._bench.cluster.delete_records(TopicPartition(JOB.dead_letter_topic, 0), 2)
        return batch


def test_a_record_goes_back_as_it_was_and_says_which_dead_letter_it_is(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Fragile, partitions=2, on_error="dead_letter")
    bench.log.plain_producer("feed").send("in", None, b"boom", 1, 99, [("trace", b"1"), ("samzapy-topic", None)])
    container = bench.start()
    bench.drain(container)
    letters_of(bench).replay([Origin("in", 1, 0)], quiet)
    again = records(bench, 1)[1]
    place = str(letters_of(bench).read().entries[0].place)
    assert (b"boom", None) == (again.key(), again.value())
    assert [("trace", b"1"), ("samzapy-topic", None), ("samzapy-replay-of", place.encode())] == again.headers()
    bench.drain(container)
    first, second = letters_of(bench).read().entries
    assert (Origin("in", 1, 0), True) == (first.letter.origin, first.replayed_ms is not None)
    assert (Origin("in", 1, again.offset()), None) == (second.letter.origin, second.replayed_ms)
    letters_of(bench).replay(None, quiet)
    third = records(bench, 1)[2]
    assert [("trace", b"1"), ("samzapy-topic", None), ("samzapy-replay-of", str(second.place).encode())] == third.headers()


def test_a_header_of_the_records_own_with_the_name_of_ours_is_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Fragile, on_error="dead_letter")
    own: list[tuple[str, bytes | None]] = [("samzapy-replay-of", b"in[0]@1"), ("trace", b"1"), ("samzapy-replay-of", b"mine")]
    bench.log.plain_producer("feed").send("in", None, b"boom", 0, 99, own)
    container = bench.start()
    for _ in range(2):
        bench.drain(container)
        letters_of(bench).replay(None, quiet)
    first, second = (e.place for e in letters_of(bench).read().entries)
    assert [
        [*own, ("samzapy-replay-of", str(first).encode())],
        [*own, ("samzapy-replay-of", str(second).encode())],
    ] == [m.headers() for m in records(bench)[1:]]


def test_once_is_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path)
    assert 2 == len(letters_of(bench).replay([Origin("in", 0, 1), Origin("in", 1, 2)], quiet))
    assert 4 == len(letters_of(bench).replay(None, quiet))
    assert [] == letters_of(bench).replay(None, quiet)
    assert [] == letters_of(bench).replay([Origin("in", 0, 1)], quiet)
    for partition in (0, 1):
        keys = [m.key() for m in records(bench, partition)]
        assert sorted([*(f"boom{partition}{i}".encode() for i in range(3))] * 2 + [b"good"]) == sorted(keys)


@pytest.mark.parametrize("kind", ["aborted", "in_doubt_lost", "in_doubt_committed", "fenced", "suspicious"])
@pytest.mark.parametrize("commit", range(4))
def test_a_replay_that_is_cut_short_is_finished_by_the_next_and_nothing_goes_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, commit: int
) -> None:
    monkeypatch.setattr("samzapy.ops.dead_letters.BATCH_RECORDS", 2)
    bench, _ = bench_of(tmp_path)
    batches = itertools.count(1)

    class Struck(DeadLetters):
        def _send(self, producer: TransactionalProducer, batch: Sequence[Entry]) -> bool:
            if next(batches) == commit:
                bench.cluster.fail_next("commit", kind)
            return super()._send(producer, batch)

    if commit == 0:
        bench.cluster.fail_next("commit", kind)  # that of the barriers
    for _ in range(3):
        try:
            Struck(JOB, ["in"], bench.log, bench.clock).replay(None, quiet)
            break
        except LogError:
            bench.clock.passed += 1
    for partition in (0, 1):
        keys = [m.key() for m in records(bench, partition)]
        assert sorted([*(f"boom{partition}{i}".encode() for i in range(3))] * 2 + [b"good"]) == sorted(keys)


@pytest.mark.parametrize(
    ("batch", "told"),
    [
        (1, "nothing is known to be sent back; the next replay sends the rest, and nothing twice"),
        (3, "sent back 4 of 6; the next replay sends the rest, and nothing twice"),
    ],
)
def test_a_ctrl_c_says_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], batch: int, told: str
) -> None:
    monkeypatch.setattr("samzapy.ops.dead_letters.BATCH_RECORDS", 2)
    bench, _ = bench_of(tmp_path)
    batches = itertools.count(1)

    class Interrupted(DeadLetters):
        def _send(self, producer: TransactionalProducer, entries: Sequence[Entry]) -> bool:
            if next(batches) == batch:
                signal.raise_signal(signal.SIGINT)
            return super()._send(producer, entries)

    with pytest.raises(KeyboardInterrupt):
        send_back(Interrupted(JOB, ["in"], bench.log, bench.clock), None)

    assert told == capsys.readouterr().err.splitlines()[-1]
    assert 6 - 2 * (batch - 1) == len(letters_of(bench).replay(None, quiet))


@pytest.mark.parametrize("is_discard", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), LogError("the disk is full.", ""), ValueError("a defect")])
def test_one_that_ends_early_leaves_no_transaction_open(tmp_path: Path, error: BaseException, is_discard: bool) -> None:
    """An open one would hide all later records from those that read the inputs, until it times out."""
    bench, _ = bench_of(tmp_path, partitions=1)

    class Ending(DeadLetters):
        def _send(self, producer: TransactionalProducer, batch: Sequence[Entry]) -> bool:
            producer.begin()
            for topic in ("in", JOB.dead_letter_topic):
                producer.send(topic, b"v", b"k", 0)
            producer.flush()
            raise error

        _mark = _send

    letters = Ending(JOB, ["in"], bench.log, bench.clock)
    with pytest.raises(type(error)):
        letters.discard({e.place for e in letters.read().entries}, quiet) if is_discard else letters.replay(None, quiet)
    bench.feed(("later", 1))
    for place in (TopicPartition("in", 0), TopicPartition(JOB.dead_letter_topic, 0)):
        bounds = bench.log.restore_consumer("t").bounds_of([place])[place]
        assert bounds.end == bench.cluster.partition(place).end, "all of it can be read"


@pytest.mark.parametrize("is_abort_refused", [False, True])
@pytest.mark.parametrize(("is_discard", "missing"), [(False, "in"), (True, JOB.dead_letter_topic)])
def test_who_may_not_is_told_what_is_missing_for_what_was_asked(tmp_path: Path, is_discard: bool, missing: str, is_abort_refused: bool) -> None:
    bench, _ = bench_of(tmp_path, partitions=1)

    class Forbidding(MemoryAdmin):
        def missing_access(self, wanted: Iterable[Access]) -> list[Access]:
            return list(wanted)

    class Guarded(MemoryLog):
        def admin(self) -> MemoryAdmin:
            return Forbidding(bench.cluster)

    def forbid(producer: TransactionalProducer) -> None:
        def abort() -> bool:  # as Kafka does where no partition had been added to the transaction
            raise Fenced("abort: INVALID_TXN_STATE", "")

        if is_abort_refused:
            producer.abort = abort  # type: ignore[method-assign]
        raise NotAuthorized("not authorized.", "")

    class Forbidden(DeadLetters):
        def _send(self, producer: TransactionalProducer, batch: Sequence[Entry]) -> bool:
            forbid(producer)
            return True

        def _mark(self, producer: TransactionalProducer, batch: Sequence[Entry]) -> bool:
            forbid(producer)
            return True

    letters = Forbidden(JOB, ["in"], Guarded(bench.cluster), bench.clock)
    with pytest.raises(NotAuthorized, match=f"Write on topic {missing} is missing") as refused:
        letters.discard({e.place for e in letters.read().entries}, quiet) if is_discard else letters.replay(None, quiet)
    assert refused.value.message.startswith("discarding" if is_discard else "sending")


def test_a_process_that_is_killed_between_send_and_commit_has_sent_nothing(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    class Dying(DeadLetters):
        def _send(self, producer: TransactionalProducer, batch: Sequence[Entry]) -> bool:
            producer.begin()
            for entry in batch:
                producer.send("in", entry.letter.value, entry.letter.key, entry.letter.origin.partition)
            producer.flush()
            producer.abort = lambda: False  # type: ignore[method-assign]  # nobody is left to do it
            raise Killed

    bench, container = bench_of(tmp_path)
    with pytest.raises(Killed):
        Dying(JOB, ["in"], bench.log, bench.clock).replay(None, quiet)
    assert 6 == len(letters_of(bench).replay(None, quiet))
    bench.drain(container)
    assert 12 == len(letters_of(bench).read().entries), "each failed once more"


def test_the_second_of_two_replays_fences_the_first(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path)

    class Overtaken(DeadLetters):
        def _send(self, producer: TransactionalProducer, batch: Sequence[Entry]) -> bool:
            letters_of(bench).replay(None, quiet)
            return super()._send(producer, batch)

    with pytest.raises(Fenced, match="another replay"):
        Overtaken(JOB, ["in"], bench.log, bench.clock).replay(None, quiet)
    assert [7, 7] == [len(records(bench, partition)) for partition in (0, 1)]


def test_who_was_fenced_says_so_also_where_the_client_wanted_an_abort_first(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path)

    class Overtaken(DeadLetters):
        def _send(self, producer: TransactionalProducer, batch: Sequence[Entry]) -> bool:
            producer.begin()
            producer.send("in", b"\0" * 8, b"good", 0)
            letters_of(bench).replay(None, quiet)
            raise TransactionAborted("a record: failed to add partitions to the transaction.", "")  # the client's first word; its abort finds out

    with pytest.raises(Fenced, match="another replay"):
        Overtaken(JOB, ["in"], bench.log, bench.clock).replay(None, quiet)


def test_traces_after_an_open_transaction_are_waited_for(tmp_path: Path) -> None:
    bench, container = bench_of(tmp_path, partitions=1)

    class Racing(DeadLetters):
        def _send(self, producer: TransactionalProducer, batch: Sequence[Entry]) -> bool:
            bench.feed(("boom", 1))
            container.step(0.0)  # a dead letter, not committed: the traces will come after it
            return super()._send(producer, batch)

    assert 3 == len(Racing(JOB, ["in"], bench.log, bench.clock).replay(None, quiet))
    assert [] == letters_of(bench).replay(None, quiet), "it waits until the container's transaction is over: here, until it times out"
    assert 5 + 3 == len(records(bench))
    with pytest.raises(Fenced):
        container.commit()
    container.start()
    bench.drain(container)
    assert [4, 5, 6, 7] == [e.letter.origin.offset for e in letters_of(bench).replay(None, quiet)], "those that failed since"


def test_dead_letters_of_one_record_go_back_as_one_record(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Fragile, partitions=3, inputs={"in": {}, "rules": {}}, broadcast={"rules"}, on_error="dead_letter")
    bench.feed(("boom", 1), topic="rules")
    bench.drain(bench.start())
    letters = letters_of(bench, ["in", "rules"])
    assert 3 == len(letters.replay(None, quiet))
    assert 2 == len(records(bench, 0, "rules"))
    assert [] == letters.replay(None, quiet)


class FailsOnce(Fragile):
    """Of a broadcast record, `boom` fails in every task, `some` in the first only."""

    def init(self, context):
        self.is_first = context.task_name == "Partition 0"

    def process(self, envelope, collector, coordinator):
        if envelope.key == "some" and self.is_first:
            raise ValueError(envelope.key)
        super().process(envelope, collector, coordinator)


def test_a_broadcast_record_that_some_tasks_have_processed_goes_back_only_if_that_is_asked_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path, FailsOnce, partitions=2, inputs={"in": {}, "all": {}}, broadcast=("all",), on_error="dead_letter")
    container = bench.start()
    bench.feed(("boom", 1), ("some", 2), topic="all")
    bench.feed(("boom", 3))
    bench.drain(container)
    checked = DeadLetters(JOB, ("in", "all"), bench.log, bench.clock, {"all": 2})
    found = checked.read()
    assert [2, 1, 1] == [sum(e.letter.origin == o for e in found.entries) for o in (("all", 0, 0), ("all", 0, 1), ("in", 0, 0))]

    with pytest.raises(
        ConfigurationError, match=r"all\[0\]@1: all is a broadcast input, and the only waiting dead letters of this record are those of Partition 0\."
    ) as refused:
        checked.replay([Origin("all", 0, 1)], quiet)
    assert "--to-all-tasks" in refused.value.remedy
    assert {Origin("all", 0, 0), Origin("in", 0, 0)} == {e.letter.origin for e in checked.replay(None, quiet)}
    assert 1 == len(checked.passed_by(checked.read()))
    for chosen, passed_by in ((Filter(), 1), (Filter(topic="all"), 1), (Filter(task="Partition 0"), 1), (Filter(topic="in"), 0), (Filter(error="other"), 0)):
        plan = replay_of(checked, checked.read(), None, chosen)
        assert ([], passed_by) == (list(plan.waiting), len(plan.passed_by)), chosen
    assert [Origin("all", 0, 1)] == [e.letter.origin for e in DeadLetters(JOB, ("in", "all"), bench.log, bench.clock).replay(None, quiet)]


def test_of_a_broadcast_record_none_goes_back_if_one_of_its_dead_letters_is_refused_or_discarded(tmp_path: Path) -> None:
    """Every task would get it: also one that reads it again, and one for which it was given up."""
    bench = Bench(tmp_path, FailsOnce, partitions=2, inputs={"in": {}, "all": {}}, broadcast=("all",), on_error="dead_letter")
    container = bench.start()
    bench.feed(("boom", 1), topic="all")
    bench.drain(container)
    letters = DeadLetters(JOB, ("in", "all"), bench.log, bench.clock, {"all": 2})
    first, second = letters.read().entries
    letters.standing = lambda: lambda letter: 0 if letter.task == second.letter.task else None
    found = letters.read()
    assert [] == letters.replay(None, quiet)
    for chosen in (Filter(task=first.letter.task), Filter(task=second.letter.task)):
        assert ["continues at 0" in str(e) for e in letters.passed_by(found, chosen.takes)] == [True]
    with pytest.raises(ConfigurationError, match="continues at 0 there"):
        letters.replay([Origin("all", 0, 0)], quiet)

    letters.discard({second.place}, quiet)
    with pytest.raises(ConfigurationError, match=f"the only waiting dead letters of this record are those of {first.letter.task}"):
        letters.replay([Origin("all", 0, 0)], quiet)
    assert [first.place] == [e.place for e in DeadLetters(JOB, ("in", "all"), bench.log, bench.clock).replay(None, quiet)]


def test_what_cannot_go_back_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, partitions=1)
    with pytest.raises(ConfigurationError, match=r"no dead letter of in\[0\]@77"):
        letters_of(bench).replay([Origin("in", 0, 0), Origin("in", 0, 77)], quiet)
    one = [Origin("in", 0, 0)]
    with pytest.raises(ConfigurationError, match=r"in\[0\]@0: no task of this job reads in,"):
        letters_of(bench, ["other"]).replay(one, quiet)
    bench.cluster.configure("in", {"max.message.bytes": "150"})
    with pytest.raises(RecordTooLarge, match=r"in\[0\]@0.*the topic takes 150"):
        letters_of(bench).replay(one, quiet)
    bench.cluster.delete("in")
    with pytest.raises(TopicMissing, match=r"in\[0\]@0: that partition no longer exists"):
        letters_of(bench).replay(one, quiet)


def forged(topic: bytes, partition: bytes = b"0", offset: bytes = b"0") -> list[tuple[str, bytes]]:
    """The headers of a dead letter that no container wrote."""
    told = {"topic": topic, "partition": partition, "offset": offset, "timestamp": b"1", "task": b"Partition 0", "error": b"E: x"}
    told |= {"stack": b"s", "attempts": b"1", "time": b"1"}
    return [(f"samzapy-{name}", value) for name, value in told.items()]


def forge(bench: Bench, headers: list[tuple[str, bytes]]) -> None:
    bench.log.plain_producer("forger").send(JOB.dead_letter_topic, b"forged", b"k", 0, headers=headers)


def test_what_somebody_forged_is_passed_by_and_the_others_go_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench, _ = bench_of(tmp_path, partitions=1)
    bench.log.admin().create([TopicSpec("victim", 1)])
    forge(bench, forged(b"victim"))
    forge(bench, forged(b"in", b"999"))
    letters = letters_of(bench)
    found = letters.read()
    assert ["ConfigurationError", "TopicMissing"] == [type(e).__name__ for e in letters.passed_by(found)]
    assert all("Add" not in str(e) for e in letters.passed_by(found))
    _tell_passed_by(letters.passed_by(found))
    assert "1 dead letter skipped; the first: the dead letter of victim[0]@0: no task of this job reads victim" in capsys.readouterr().err
    sent = letters.replay(None, quiet)
    assert {"in"} == {e.letter.origin.topic for e in sent}
    assert (3, []) == (len(sent), records(bench, 0, "victim"))


def test_a_forged_dead_letter_does_not_take_the_place_of_the_one_it_names(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=1, partitions=1)
    forge(bench, forged(b"in"))
    before = len(records(bench))
    letters_of(bench).replay(None, quiet)
    back = [m.key() for m in records(bench)[before:]]
    assert {b"boom00", b"k"} == {key.strip(b'"') for key in back if key is not None}


def test_without_a_dead_letter_topic_there_are_none(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Fragile)
    bench.cluster.delete(JOB.dead_letter_topic)
    assert [] == letters_of(bench).read().entries
    assert [] == letters_of(bench).replay(None, quiet)


@pytest.mark.parametrize("text", ["", "in", "in[0]", "in[x]@1", "in[0]@-1", "in[0]@1 ", "[0]@1"])
def test_what_names_no_record(text: str) -> None:
    assert parse_origin(text) is None


def test_a_record_is_named_as_it_is_printed() -> None:
    assert Origin("a.b-c_d", 3, 17) == parse_origin(str(Origin("a.b-c_d", 3, 17)))


def test_a_shortened_dead_letter_is_not_sent_back(tmp_path: Path) -> None:
    """It is not the record: that lies at its origin."""
    bench = Bench(tmp_path, Fragile, on_error="dead_letter")
    bench.cluster.configure(JOB.dead_letter_topic, {"max.message.bytes": "2000"})
    bench.feed(("boom", 1), ("boom" * 1000, 1))
    bench.drain(bench.start())
    letters = letters_of(bench)
    found = letters.read()
    assert ["", "key=4000 value=8 headers=0"] == [e.letter.truncated for e in found.entries]
    assert [Origin("in", 0, 1)] == [e.letter.origin for e in found.shortened(None)]
    assert [Origin("in", 0, 0)] == [e.letter.origin for e in letters.waiting(found, None)]
    assert [Origin("in", 0, 0)] == [e.letter.origin for e in letters.replay(None, quiet)]
    assert [] == letters.replay([Origin("in", 0, 1)], quiet)
    assert 3 == len(records(bench))


# -- discarding ----------------------------------------------------------------------------------------------------------------------------


def test_what_was_discarded_is_not_sent_back_and_says_so(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=2)
    letters = letters_of(bench)
    first, second, *_ = letters.read().entries
    assert [first.place, second.place] == [e.place for e in letters.discard({first.place, second.place}, quiet)]
    assert [] == letters.discard({first.place}, quiet), "once is enough"
    found = letters.read()
    assert [False, False, True, True] == [e.is_waiting for e in found.entries]
    assert found.entries[0].discarded_ms is not None
    assert (None, 0) == (found.entries[0].replayed_ms, found.strangers)
    assert [] == letters.replay([first.letter.origin], quiet)
    assert 2 == len(letters.replay(None, quiet))


def test_a_discard_that_is_cut_short_is_finished_by_the_next(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=2)
    places = {e.place for e in letters_of(bench).read().entries}
    bench.cluster.fail_next("commit", "in_doubt_lost")
    for _ in range(3):
        try:
            letters_of(bench).discard(places, quiet)
            break
        except LogError:
            bench.clock.passed += 1
    assert [False] * 4 == [e.is_waiting for e in letters_of(bench).read().entries]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((None, None, None, None), 3),
        (("Partition 0", None, None, None), 2),
        ((None, "other", None, None), 0),
        ((None, None, "boom", None), 3),
        ((None, None, "bang", None), 0),
        ((None, None, None, "10m"), 1),
        ((None, None, None, "2001-01-01T00:00:00"), 3),
        (("Partition 1", "in", "boom", "1d"), 1),
    ],
)
def test_options_choose_by_task_topic_error_and_time(options: tuple[str | None, ...], expected: int, tmp_path: Path) -> None:
    bench, container = bench_of(tmp_path, letters=1)
    bench.clock.passed += 3600
    bench.feed(("boom", 1), partition=0)
    bench.drain(container)
    chosen = filter_of(*options, bench.clock.now_ms())  # type: ignore[call-arg,arg-type]
    assert expected == len([e for e in letters_of(bench).read().entries if chosen.takes(e)])


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--since yesterday"):
        filter_of(None, None, None, "yesterday", 0)
