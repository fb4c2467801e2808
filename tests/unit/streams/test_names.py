"""State is found by name: what a changed program may do with the state of earlier runs, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from msgspec import defstruct

from samzapy import IncomingMessageEnvelope, MessageCollector, StreamTask, TaskContext, TaskCoordinator
from samzapy.api.errors import StateMismatch
from samzapy.model.checkpoint import Checkpoint, InputMark, StoreMark
from samzapy.model.event_time import PartitionMark
from samzapy.plan.forgetting import without_store
from samzapy.plan.state_compatibility import refusal
from samzapy.streams import App, Stream, agg, tumbling
from samzapy.testing import Harness


def hours(stream: Stream[str, int], name: str = "hours") -> None:
    stream.aggregate(name, n=agg.count(), total=agg.sum()).to("out")


def program(write: Callable[[Stream[str, int]], None]) -> App:
    app = App()
    write(app.stream("in", key=str, value=int))
    return app


def after_a_run_with_state() -> Harness:
    h = Harness(program(hours))
    h.send("in", 5, key="k")
    h.run()
    return h


def test_a_renamed_store_is_refused_with_both_names() -> None:
    with after_a_run_with_state() as h:
        with pytest.raises(StateMismatch, match=r"'hours' has state, .* is it 'days', which is new\? Name it 'hours' .*state drop JOB.yaml hours"):
            h.restart(program(lambda stream: hours(stream, "days")))


def test_a_store_that_is_gone_is_refused() -> None:
    with after_a_run_with_state() as h:
        with pytest.raises(StateMismatch, match=r"'hours' has state, .* not in the program any more\. Put 'hours' back"):
            h.restart(program(lambda stream: stream.to("out")))


def by_lower(partitions: int | None) -> App:
    return program(lambda stream: hours(stream.key_by(lambda value: str(value), f"by-value-{partitions}", key=str, partitions=partitions)))


def test_a_store_stays_with_the_partitions_of_its_keys() -> None:
    """Behind a topic with another number of partitions, most keys would begin again in another task."""
    with Harness(program(hours), tasks=4) as h:
        for n in range(20):
            h.send("in", n, key=str(n))
        h.run()
        with pytest.raises(StateMismatch, match=r"the keys of 'hours' were in 4 partitions, and would be in 3 partitions of .* is new, give it `partitions=4`"):
            h.restart(by_lower(3))
        h.restart(by_lower(None))
        for n in range(20):
            h.send("in", n, key="any")
        h.run()
        assert {str(n): {"n": 2, "total": 2 * n} for n in range(20)} == h.store("hours")


def test_a_store_of_keys_does_not_become_one_of_every_task() -> None:
    """Each task would have its own count of a key, and only one of them the count so far."""
    with Harness(program(hours), tasks=2) as h:
        h.run()
        with pytest.raises(StateMismatch, match=r"the keys of 'hours' were in 2 partitions, and would be in every task: .* Put back what was before it"):
            h.restart(program(lambda stream: hours(stream.broadcast("all"))))


def test_a_new_store_may_have_another_number_of_partitions() -> None:
    with Harness(program(hours), tasks=4) as h:
        h.run()

        def both(stream: Stream[str, int]) -> None:
            hours(stream)
            hours(stream.key_by(lambda value: str(value), "by-value", key=str, partitions=2), "others")

        h.restart(program(both))
        h.send("in", 1, key="k")
        h.run()
        with pytest.raises(StateMismatch, match=r"the keys of 'others' were in 2 partitions of an internal topic, and would be in 4 partitions: "):
            h.restart(program(lambda stream: (hours(stream), hours(stream, "others"))))  # type: ignore[arg-type, func-returns-value]


class OwnSums(StreamTask):
    """Keeps text where a program of the same store would keep sums."""

    def init(self, context: TaskContext) -> None:
        self.hours = context.get_store("hours")

    def process(self, envelope: IncomingMessageEnvelope, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        self.hours[envelope.key] = {"n": "five", "total": 0}


def test_an_operator_does_not_take_over_a_store_of_a_task_class() -> None:
    sections = {"inputs": [{"topic": "in", "key": "string", "value": "json"}], "stores": {"hours": {"key": "string", "value": "json"}}}
    with Harness(OwnSums, **sections) as h:
        h.send("in", 5, key="k")
        h.run()
        with pytest.raises(StateMismatch, match=r"'hours' has state, in changelog test-1-hours-changelog, which no operator.*state drop JOB.yaml hours"):
            h.restart(program(hours))
        h.restart(OwnSums, **sections)
        assert {"n": "five", "total": 0} == h.store("hours")["k"]


def test_an_operator_without_state_may_come_between() -> None:
    with after_a_run_with_state() as h:
        h.restart(program(lambda stream: hours(stream.map(lambda n: n * 10, value=int))))
        h.send("in", 1, key="k")
        h.run()
        assert {"n": 2, "total": 15} == h.output("out")[-1][1]


def test_a_new_table_begins_empty_and_the_others_go_on() -> None:
    def more(stream: Stream[str, int]) -> None:
        hours(stream)
        stream.count("count").to("counts")

    with after_a_run_with_state() as h:
        h.restart(program(more))
        h.send("in", 1, key="k")
        h.run()
        assert ({"n": 2, "total": 6}, ("k", 1)) == (h.output("out")[-1][1], h.output("counts")[-1])


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda s: s.aggregate("hours", n=agg.count()), r"operator hours was 'aggregate\(n=count, total=sum\)'.* now says 'aggregate\(n=count\)'"),
        (lambda s: s.aggregate("hours", n=agg.count(), total=agg.mean()), r"now says 'aggregate\(n=count, total=mean\)'"),
        (lambda s: s.fold("hours", dict, lambda a, n: a), "now says 'fold'"),
        (lambda s: s.count("hours"), "now says 'count'"),
    ],
)
def test_an_operator_that_keeps_something_else_is_refused(write: Callable[[Stream[str, int]], None], said: str) -> None:
    with after_a_run_with_state() as h:
        with pytest.raises(StateMismatch, match=f"{said}.*give 'hours' another name"):
            h.restart(program(write))


def test_keys_of_another_kind_are_refused() -> None:
    app = App()
    app.stream("in", key=bytes, value=int).aggregate("hours", n=agg.count(), total=agg.sum()).to("out")
    with after_a_run_with_state() as h:
        with pytest.raises(StateMismatch, match=r"store 'hours' key serde was 'string'.* now says 'bytes'"):
            h.restart(app)


def checkpoint(fingerprint: dict[str, str], *stores: str) -> Checkpoint:
    return Checkpoint(
        job="j", id="1", task="Partition 0", container=0, incarnation="i", epoch=1, sequence=7, inputs={},
        stores={name: StoreMark(f"j-1-{name}-changelog", "id", 0, 3) for name in stores}, fingerprint=fingerprint,
    )  # fmt: skip


def test_a_dropped_stores_name_is_free_again() -> None:
    left = without_store(checkpoint({"operator a": "count", "operator b": "count", "store 'a' key serde": "string"}, "a", "b"), "a")
    assert {"operator b": "count"} == dict(left.fingerprint)
    assert None is refusal(left, {"operator a": "reduce", "operator b": "count"}, {"a": True, "b": True})


def test_of_a_plain_job_the_words_are_those_of_the_job_file() -> None:
    plain = checkpoint({"task count": "2"}, "a")
    gone = refusal(plain, {"task count": "2"}, {"b": True})
    other = refusal(plain, {"task count": "3"}, {"a": True})
    assert gone is not None
    assert other is not None
    assert ("is not in the job file any more, which has 'b' instead." in gone.reason, "`stores:`" in gone.remedy) == (True, True)
    assert "task count was '2' when its state was written; the job file now says '3'." == other.reason


def timed(time: Any) -> App:
    app = App()
    app.stream("in", key=str, value=int, time=time, watermark_delay="1s").window(tumbling("10s")).count("w").to("out")
    return app


def test_what_a_records_time_is_may_not_change_over_a_time_that_is_kept() -> None:
    with Harness(timed(lambda value: value)) as h:
        h.restart(timed("record"))  # no record has come: there is no time yet
        h.restart(timed(lambda value: value))
        h.send("in", 1_600_000_000_000, key="k")
        h.run()
        with pytest.raises(StateMismatch, match=r"time of in was 'of the value' so far, .* now it is \"Kafka's timestamp\".*--reset-state"):
            h.restart(timed("record"))
        h.restart(timed(lambda value: value + 0))


def test_once_the_time_is_deleted_it_may_change() -> None:
    mark = PartitionMark(5, False, 0, None)
    kept = replace(checkpoint({"time of in": "of the value"}), inputs={"in[0]": InputMark("t", 3, mark)})
    assert refusal(kept, {"time of in": "the clock's"}, {}) is not None
    assert refusal(kept.without_times(), {"time of in": "the clock's"}, {}) is None
    assert refusal(kept, {}, {}) is None, "the input has no time any more"


def by_key(cls: type, window: bool) -> App:
    def key(n: int) -> Any:
        return cls("k", str(n % 2))

    app = App()
    stream = app.stream("in", key=str, value=int, watermark_delay="1s").key_by(key, "by-key", key=cls)
    (stream.window(tumbling("1d")).count("counts") if window else stream.count("counts")).to("out")
    return app


@pytest.mark.parametrize("window", [False, True], ids=["rolling", "windows"])
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([("b", str), ("a", str)], r"were 'a str, b str' .* now has 'b str, a str'"),
        ([("a", str), ("b", str), ("c", str, "x")], "now has 'a str, b str, c str'"),
        ([("a", str), ("b", bytes)], "now has 'a str, b bytes'"),
    ],
)
def test_another_class_of_keys_under_the_same_name_is_refused(
    fields: list[Any], said: str, window: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(*fields: Any) -> type:
        cls = defstruct("Key", fields, frozen=True, module=__name__)
        monkeypatch.setattr(sys.modules[__name__], "Key", cls, raising=False)
        return cls

    with Harness(by_key(named(("a", str), ("b", str)), window)) as h:
        h.send("in", 5, key="k", timestamp=1)
        h.run()
        h.restart(by_key(named(("a", str), ("b", str)), window))
        with pytest.raises(StateMismatch, match=f"store 'counts' key fields .*{said}.*none would find its state"):
            h.restart(by_key(named(*fields), window))


@dataclass(frozen=True)
class Place:
    city: str
    country: str = "DE"


def test_a_key_on_the_wire_without_its_default_meets_the_state_of_the_key_with_it() -> None:
    app = App()
    app.stream("in", key=Place, value=int).count("counts").to("out")
    with Harness(app) as h:
        h.send("in", 1, key=Place("Ulm"))
        h.send_raw("in", b"1", key=b'{"city":"Ulm"}')
        h.run()
        assert [(Place("Ulm"), 1), (Place("Ulm"), 2)] == h.output("out")
