"""`process_batch`: what a task is given, that a batch takes effect together or not at all, and how the record is found that makes one fail."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from samzapy import IncomingMessageEnvelope, StreamTask, TaskError
from samzapy.api.context import RequestScope
from samzapy.api.errors import Fenced, RecordRejected
from samzapy.container.batches import CACHED_RECORDS, CACHED_S, MAX_RAW_RECORDS, MAX_RECORDS, BatchSize
from samzapy.container.stuck_hook import user_frames
from samzapy.model.dead_letter import Origin
from tests.unit.container.bench import Bench

Given = list[list[tuple[str, int]]]


class Summing(StreamTask):
    """Sum per key in a store, every update sent; notes what it was given. `boom` fails when all before it was put and sent."""

    def init(self, context):
        self.sums = context.get_store("s")
        self.given: Given = []
        self.failures = 1 << 30

    def process_batch(self, envelopes, collector, coordinator):
        self.given.append([(e.stream, e.offset) for e in envelopes])
        for envelope in envelopes:
            total = (self.sums.get(envelope.key) or 0) + envelope.message
            self.sums.put(envelope.key, total)
            collector.send("out", total, key=envelope.key, partition=envelope.partition)
            if envelope.key == "boom" and self.failures > 0:
                self.failures -= 1
                raise ValueError("boom!")


def given(container, task: str = "Partition 0") -> Given:
    return container.tasks[task].user.given


def sizes(container, task: str = "Partition 0") -> list[int]:
    return [len(batch) for batch in given(container, task)]


def many(count: int) -> list[tuple[str, int | None]]:
    return [(f"k{n % 7}", 1) for n in range(count)]


# -- what a task is given --------------------------------------------------------------------------------------------------------------


def test_batches_are_records_of_one_partition_in_order_and_each_record_comes_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, partitions=2, inputs={"in": {}, "more": {}}, poll_records=2000)
    for topic in ("in", "more"):
        for partition in (0, 1):
            bench.feed(*many(900), topic=topic, partition=partition)
    container = bench.start()
    bench.drain(container)
    for partition in (0, 1):
        batches = given(container, f"Partition {partition}")
        assert all(len({topic for topic, _ in batch}) == 1 for batch in batches)
        for topic in ("in", "more"):
            assert list(range(900)) == [offset for batch in batches for t, offset in batch if t == topic]
        assert max(len(batch) for batch in batches) in (CACHED_RECORDS, MAX_RECORDS)
        assert 1800 == len(bench.read("out", partition))
        assert 1800 == sum(bench.changelog(partition).values())
        assert 1800 == container.status()["tasks"][partition]["processed"]


def test_nothing_waits_for_a_batch_to_fill(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    container = bench.start()
    bench.feed(*many(5))
    bench.drain(container)
    assert [1, 2, 2] == sizes(container)
    assert 0.0 == bench.clock.passed


def test_a_task_that_defines_both_is_given_batches_only(tmp_path: Path) -> None:
    class Both(Summing):
        def process(self, envelope, collector, coordinator):
            raise AssertionError

    bench = Bench(tmp_path, Both, on_error="skip")
    bench.feed(*many(10), ("boom", 1), *many(10))
    container = bench.start()
    bench.drain(container)
    assert 20 == len(bench.read("out"))


def test_an_envelope_of_a_batch_is_like_any_other_and_decoded_once(tmp_path: Path) -> None:
    seen = []

    class Looking(StreamTask):
        def process_batch(self, envelopes, collector, coordinator):
            for e in envelopes:
                assert isinstance(e, IncomingMessageEnvelope)
                seen.append((e.key, e.message, e.offset, e.system, e.stream, e.partition, e.headers, e.timestamp > 0, repr(e)))
                assert e.key is e.key

    bench = Bench(tmp_path, Looking)
    bench.feed(("a", 1000), ("b", None))
    bench.drain(bench.start())
    assert [
        ("a", 1000, 0, "kafka", "in", 0, [], True, "IncomingMessageEnvelope(kafka.in.0@0, key='a', message=1000)"),
        ("b", None, 1, "kafka", "in", 0, [], True, "IncomingMessageEnvelope(kafka.in.0@1, key='b', message=None)"),
    ] == seen


def test_a_partition_that_several_tasks_read_comes_record_by_record_to_each(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, partitions=2, inputs={"in": {}, "all": {}}, broadcast=("all",))
    bench.feed(*many(20), topic="all", partition=0)
    for partition in (0, 1):
        bench.feed(*many(20), partition=partition)
    container = bench.start()
    bench.drain(container)
    for partition in (0, 1):
        batches = given(container, f"Partition {partition}")
        assert [[("all", n)] for n in range(20)] == [batch for batch in batches if batch[0][0] == "all"]
        assert 40 == sum(bench.changelog(partition).values())


# -- a batch that fails ----------------------------------------------------------------------------------------------------------------


def test_the_record_that_fails_is_found_and_all_before_it_is_committed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    bench.feed(*many(100), ("boom", 1), *many(10))
    container = bench.start()
    with pytest.raises(TaskError, match=r"Partition 0: process_batch failed on record in\[0\]@100: ValueError: boom! \(test_batches.py:\d+\)"):
        bench.drain(container)
    assert 100 == len(bench.read("out"))
    assert 100 == sum(bench.changelog().values())
    assert 100 == container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset


@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize("on_error", ["skip", "dead_letter"])
def test_of_a_batch_with_bad_records_all_others_count_once(tmp_path: Path, on_error: str, exactly_once: bool) -> None:
    bench = Bench(tmp_path, Summing, on_error=on_error, exactly_once=exactly_once)
    bench.feed(*many(300), ("boom", 1), *many(50), ("boom", 1), ("boom", 1), *many(300))
    container = bench.start()
    bench.drain(container)
    assert 650 == len(bench.read("out"))
    totals = [value for key, value in bench.read("out") if key == "k0"]
    assert list(range(1, len(totals) + 1)) == totals
    assert 650 == sum(bench.changelog().values())
    status = container.status()["tasks"][0]
    bad = (3, 0) if on_error == "skip" else (0, 3)
    assert (650, *bad) == (status["processed"], status["skipped"], status["dead_letters"])
    assert [Origin("in", 0, n) for n in (300, 351, 352) if on_error == "dead_letter"] == [letter.origin for letter in bench.letters()]


def test_after_a_batch_that_failed_its_records_come_alone_until_the_bad_one_and_then_batches_grow_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, on_error="skip")
    bench.feed(*many(12), ("boom", 1), *many(30))
    container = bench.start()
    bench.drain(container)
    # 0 | 1 2 | 3-6 | 7-14 fails | 7 8 9 10 11 alone, 12 is the one | 13 | 14 15 | …
    assert [1, 2, 4, 8, *[1] * 6, 1, 2, 4, 8, 15] == sizes(container)


def test_a_batch_that_fails_while_each_of_its_records_alone_does_not(tmp_path: Path) -> None:
    class Choosy(Summing):
        def process_batch(self, envelopes, collector, coordinator):
            super().process_batch(envelopes, collector, coordinator)
            if len(envelopes) == 4:
                raise ValueError("four at once!")

    bench = Bench(tmp_path, Choosy)
    bench.feed(*many(30))
    container = bench.start()
    bench.drain(container)
    assert 30 == len(bench.read("out"))
    assert 30 == sum(bench.changelog().values())


def test_retries_are_of_the_record_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, retries=2)
    bench.feed(*many(8), ("boom", 1), *many(8))
    container = bench.start()
    container.tasks["Partition 0"].user.failures = 3  # once among others, twice alone
    bench.drain(container)
    assert 17 == len(bench.read("out"))
    assert 0.03 == pytest.approx(bench.clock.passed), "10 ms, then 20 ms"


def test_a_record_in_a_batch_that_cannot_be_decoded_is_named_and_the_others_count(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, on_error="dead_letter")
    bench.feed(*many(9))
    bench.feed_raw(b"no integer", b"k")
    bench.feed(*many(9))
    container = bench.start()
    bench.drain(container)
    (letter,) = bench.letters()
    assert (Origin("in", 0, 9), b"k", b"no integer", "SerdeError") == (letter.origin, letter.key, letter.value, letter.error.split(":")[0])
    assert 18 == len(bench.read("out"))


def test_what_is_not_asked_for_is_not_decoded(tmp_path: Path) -> None:
    class Counting(StreamTask):
        def process_batch(self, envelopes, collector, coordinator):
            for envelope in envelopes:
                collector.send("out", envelope.offset, key=envelope.key)

    bench = Bench(tmp_path, Counting)
    bench.feed_raw(b"no integer", b"k")
    bench.feed_raw(b"no integer", b"k")
    bench.drain(bench.start())
    assert [("k", 0), ("k", 1)] == bench.read("out")


def test_a_record_that_kafka_refuses_is_found_and_all_others_count(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, on_error="dead_letter")
    bench.feed(*many(40), ("refused", 5), *many(40))
    container = bench.start()
    send_all = type(container.ownership.open()).send_all

    def refusing(self, records):
        records = list(records)
        send_all(self, records)
        if any(key == b"refused" and topic == "out" for topic, _, key, *_ in records):
            raise RecordRejected("refused", "")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(container.ownership.open()), "send_all", refusing)
        for _ in range(200):
            bench.clock.passed += 0.0 if container.step(0.0) else 2.0
    assert [40] == [letter.origin.offset for letter in bench.letters()]
    assert 80 == len(bench.read("out"))
    assert 80 == sum(bench.changelog().values())


def test_a_fenced_container_raises_and_nothing_of_its_batch_is_seen(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    bench.feed(*many(30))
    first = bench.start()
    first.step(0.0)
    second = bench.start()
    with pytest.raises(Fenced):
        first.commit()
    bench.drain(second)
    assert 30 == len(bench.read("out"))


def test_what_a_batch_returns_is_judged_as_what_process_returns(tmp_path: Path) -> None:
    class Yielding(StreamTask):
        def process_batch(self, envelopes, collector, coordinator):
            yield from envelopes

    bench = Bench(tmp_path, Yielding)
    bench.feed(("a", 1))
    with pytest.raises(TaskError, match="process_batch is a generator: none of its code has run"):
        bench.drain(bench.start())


# -- requests, ends, gates ---------------------------------------------------------------------------------------------------------------


def test_a_commit_asked_for_in_a_batch_comes_after_it_and_holds_all_of_it(tmp_path: Path) -> None:
    class Asking(Summing):
        def process_batch(self, envelopes, collector, coordinator):
            coordinator.commit()
            super().process_batch(envelopes, collector, coordinator)

    bench = Bench(tmp_path, Asking, poll_records=7)
    bench.feed(*many(7))
    container = bench.start()
    container.step(0.0)
    assert [1, 2, 4] == sizes(container)
    assert 3 == container.status()["commits"]
    assert 7 == len(bench.read("out"))


def test_a_shutdown_in_the_middle_of_a_batch_stops_the_task_after_it(tmp_path: Path) -> None:
    class Ending(Summing):
        def process_batch(self, envelopes, collector, coordinator):
            super().process_batch(envelopes, collector, coordinator)
            if any(e.key == "last" for e in envelopes):
                coordinator.shutdown(RequestScope.CURRENT_TASK)

    bench = Bench(tmp_path, Ending)
    bench.feed(*many(4), ("last", 1), *many(40))
    container = bench.start()
    bench.drain(container)
    assert container.finished
    done = [offset for batch in given(container) for _, offset in batch]
    assert list(range(7)) == done, "1 and 2 and 4 records: the last is in the third batch"
    assert 7 == container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset
    assert 7 == len(bench.read("out"))


def test_a_bounded_run_ends_exactly_at_its_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing)
    bench.feed(*many(50))
    container = bench.start(ends={"in[0]": 33})
    bench.drain(container)
    assert container.finished
    assert 33 == len(bench.read("out"))
    assert 33 == container.tasks["Partition 0"].committed.inputs["in[0]"].next_offset


def test_a_bootstrap_input_is_read_to_its_end_before_the_others(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Summing, inputs={"in": {}, "table": {"bootstrap": True}})
    bench.feed(*many(60), topic="in")
    bench.feed(*many(60), topic="table")
    container = bench.start()
    bench.drain(container)
    assert ["table"] * 60 + ["in"] * 60 == [topic for batch in given(container) for topic, _ in batch]


def test_a_hook_that_is_stuck_in_a_batch_is_told_with_its_records(tmp_path: Path) -> None:
    told = []

    class Looking(StreamTask):
        def process_batch(self, envelopes, collector, coordinator):
            looker = threading.Thread(target=lambda: told.append(user_frames(threading.main_thread().ident or 0)))
            looker.start()
            looker.join()

    bench = Bench(tmp_path, Looking)
    bench.feed(*many(3))
    bench.drain(bench.start())
    assert [" on record in[0]@0", " on record in[0]@1 or one of the 1 after it"] == [record for _, record in told]


# -- the size of batches ---------------------------------------------------------------------------------------------------------------


def test_a_batch_that_takes_longer_than_a_second_is_halved() -> None:
    size = BatchSize()
    for expected in (1, 2, 4, 8):
        assert expected == size.limit
        size.succeeded(size.limit, 0.01)
    size.succeeded(16, 1.5)
    assert 8 == size.limit
    size.succeeded(3, 0.01)
    assert 8 == size.limit, "a poll that brought few says nothing"


def test_a_batch_has_no_more_records_than_the_cache_holds_unless_its_hook_takes_time() -> None:
    size = BatchSize()
    for _ in range(20):
        size.succeeded(size.limit, CACHED_S / 2)
    assert CACHED_RECORDS == size.limit
    size.succeeded(size.limit, CACHED_S)
    assert MAX_RECORDS == size.limit


def test_a_batch_that_was_slow_by_chance_does_not_make_batches_larger_for_good() -> None:
    size = BatchSize()
    for _ in range(20):
        size.succeeded(size.limit, CACHED_S / 2)
    size.succeeded(size.limit, CACHED_S * 3)
    assert MAX_RECORDS == size.limit
    size.succeeded(size.limit - 1, CACHED_S / 2)
    assert MAX_RECORDS == size.limit, "a poll that brought fewer says nothing"
    size.succeeded(size.limit, CACHED_S)
    assert MAX_RECORDS == size.limit, "as many take time each time: a hook with a cost per call"
    size.succeeded(size.limit, CACHED_S / 2)
    assert CACHED_RECORDS == size.limit


def test_a_program_takes_more_records_at_once_as_long_as_that_is_quick() -> None:
    size, own = BatchSize(), BatchSize()
    for _ in range(20):
        size.succeeded(size.limit, 0.002, is_raw=True)
        own.succeeded(own.limit, 0.002)
    assert (MAX_RAW_RECORDS, MAX_RECORDS) == (size.limit, own.limit)
    size.succeeded(size.limit, 0.004, is_raw=True)
    assert MAX_RAW_RECORDS == size.limit, "neither quick enough for more nor too slow"
    size.succeeded(size.limit, 0.01, is_raw=True)
    assert MAX_RECORDS == size.limit
    size.succeeded(size.limit, 0.004, is_raw=True)
    assert MAX_RECORDS == size.limit
