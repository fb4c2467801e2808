"""A store that begins empty although its input was read before: that input is read again, for it alone, and each record counts once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.container.container import Container
from samzapy.model.checkpoint import VERSION, WITH_REFILL, Checkpoint, InputMark, checkpoint_from_bytes
from samzapy.plan.refill import refill_at_commit, refill_at_start
from samzapy.streams import App
from samzapy.testing import Harness
from tests.unit.container.bench import Bench
from tests.unit.container.test_failing_places import run_until_idle

RECORDS = 7


class Counting(StreamTask):
    """Sums in each store there is, and sends each record on."""

    def init(self, context: Any) -> None:
        self.stores = list(context._stores.values())

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        for store in self.stores:
            store.update_with(envelope.key, lambda total: total + envelope.message, 0)
        collector.send("out", envelope.message, envelope.key)


class CountingBatches(Counting):
    def process_batch(self, envelopes: Any, collector: Any, coordinator: Any) -> None:
        for envelope in envelopes:
            self.process(envelope, collector, coordinator)


def with_stores(bench: Bench, *names: str) -> Container:
    bench.stores = {name: {} for name in names}
    bench.input_settings["users"]["fills"] = frozenset(names)
    return bench.start()


def contents(container: Container, store: str) -> dict[str, int]:
    return {key: value for task in container.tasks.values() for key, value in task.stores[store].all()}


def before(tmp_path: Path, task: type[StreamTask] = Counting) -> Bench:
    """A bench whose job has read all, with store `s` alone."""
    bench = Bench(tmp_path, task, inputs={"in": {}, "users": {"bootstrap": True}}, stores={"s": {}, "n": {}, "m": {}}, poll_records=2)
    bench.feed(*[("k", 1) for _ in range(RECORDS)], topic="users")
    container = with_stores(bench, "s")
    bench.drain(container)
    container.close()
    return bench


@pytest.mark.parametrize("task", [Counting, CountingBatches])
@pytest.mark.parametrize("commits", [False, True])
def test_killed_again_and_again_each_record_counts_once_in_each_store_and_is_sent_once(
    tmp_path: Path, task: type[StreamTask], commits: bool
) -> None:
    bench = before(tmp_path, task)
    for steps in (0, 1, 2, 1):
        container = with_stores(bench, "s", "n")
        for _ in range(steps):
            container.step(0.0)
            if commits:
                container.commit()
        container.close()  # as after a kill
    container = with_stores(bench, "s", "n")
    bench.feed(("k", 1), topic="users")
    bench.drain(container)
    assert [{"k": RECORDS + 1}] * 2 == [contents(container, name) for name in ("s", "n")]
    assert RECORDS + 1 == len(bench.read("out"))
    checkpoint = container.tasks["Partition 0"].committed
    assert not checkpoint.inputs["users[0]"].refill, "then nothing of it is left in the checkpoint"
    assert checkpoint.version == VERSION


def test_the_other_inputs_wait_until_the_store_is_filled(tmp_path: Path) -> None:
    seen = []

    class Looking(Counting):
        def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
            if envelope.stream == "in":
                seen.append(self.stores[-1].get("k"))
            else:
                super().process(envelope, collector, coordinator)

    bench = before(tmp_path)
    bench.task = Looking
    bench.feed(("x", 1))
    container = with_stores(bench, "s", "n")
    assert container.tasks["Partition 0"].state == "BOOTSTRAPPING"
    bench.drain(container)
    assert seen == [RECORDS]


def test_a_second_store_that_comes_while_the_first_is_being_filled_gets_everything_too(tmp_path: Path) -> None:
    bench = before(tmp_path)
    container = with_stores(bench, "s", "n")
    container.step(0.0)
    container.commit()
    checkpoint = container.tasks["Partition 0"].committed
    assert (checkpoint.inputs["users[0]"].refill, checkpoint.version) == ({"n": 2}, WITH_REFILL)
    assert checkpoint_from_bytes(checkpoint.to_bytes()) == checkpoint
    container.close()
    container = with_stores(bench, "s", "n", "m")
    assert container.tasks["Partition 0"].committed.inputs["users[0]"].refill == {"m": 0, "n": 2}
    bench.drain(container)
    assert [{"k": RECORDS}] * 3 == [contents(container, name) for name in ("s", "n", "m")]
    assert RECORDS == len(bench.read("out"))


def test_an_abort_on_the_way_repeats_nothing(tmp_path: Path) -> None:
    bench = before(tmp_path)
    bench.settings["on_error"] = "skip"
    bench.cluster.configure("out", {"max.message.bytes": "500"})
    bench.feed(("x" * 600, 1), ("k", 1), topic="users")  # Kafka refuses what is sent of the first
    container = with_stores(bench, "s", "n")
    run_until_idle(bench, container)
    assert sum(i.skipped for i in container.tasks["Partition 0"].inputs) == 1
    assert [{"k": RECORDS + 1}] * 2 == [contents(container, name) for name in ("s", "n")]
    assert RECORDS + 1 == len(bench.read("out"))


def test_an_input_that_fills_no_store_is_not_read_again(tmp_path: Path) -> None:
    bench = before(tmp_path)
    bench.stores = {"s": {}, "n": {}}
    bench.input_settings["users"]["fills"] = frozenset({"s"})
    container = bench.start()
    assert container.tasks["Partition 0"].state == "RUNNING"


@pytest.mark.parametrize(
    ("mark", "empty", "refill"),
    [
        (None, {"n"}, {}),
        (InputMark("t", 5), set(), {}),
        (InputMark("t", 5), {"n"}, {"n": 1}),
        (InputMark("t", 5, refill={"n": 3, "gone": 2}), set(), {"n": 3}),
        (InputMark("t", 5, refill={"n": 3}), {"n"}, {"n": 1}),
        (InputMark("t", 5, refill={"n": 0}), set(), {"n": 1}),
        (InputMark("old", 5, refill={"n": 3}), set(), {}),
    ],
)
def test_what_is_read_again(mark: InputMark | None, empty: set[str], refill: dict[str, int]) -> None:
    assert refill_at_start(mark, "t", 1, 5, empty, {"n", "s"}) == refill


def test_what_is_still_to_be_read_again() -> None:
    assert refill_at_commit({"n": 0, "m": 4}, 3, 5) == {"n": 3, "m": 4}
    assert refill_at_commit({"n": 0, "m": 4}, 5, 5) == {}


# -- programs, and job files -------------------------------------------------------------------------------------------------------------


def program(how: str) -> App:
    app = App()
    if how == "stream":
        app.stream("tab", key=str, value=dict).to("copy")
    if how not in ("stream", "none"):
        settings: dict[str, Any] = {"broadcast": {"broadcast": True}, "renamed": {"store": "names"}, "later": {"ready": False}}.get(how, {})
        table = app.table("tab", key=str, value=dict, **settings)
        app.stream("in", key=str, value=int).lookup(table).to("out", value=list)
    else:
        app.stream("in", key=str, value=int).map(lambda v: [v, None], value=list).to("out", value=list)
    return app


@pytest.mark.parametrize("hows", ["stream own", "broadcast none own", "broadcast later"])
def test_a_table_whose_topic_was_read_before_is_full(hows: str) -> None:
    first, *others = hows.split()
    with Harness(program(first)) as h:
        h.send("tab", {"a": 1}, key="k")
        h.send("in", 0, key="k")
        h.run()
        for how in others:
            h.restart(program(how))
            h.run()
        h.send("in", 1, key="k")
        h.run()
        assert h.output("out")[-1] == ("k", [1, {"a": 1}])


class Remembering(StreamTask):
    def init(self, context: Any) -> None:
        self.store = context.get_store("s")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        if envelope.stream == "b":
            self.store.put(envelope.key, envelope.message)
        else:
            collector.send("out", self.store.get(envelope.key), key=envelope.key)


def test_a_changelog_that_is_switched_on_is_filled_from_the_bootstrap_input() -> None:
    def sections(changelog: bool) -> dict[str, Any]:
        topic = {"key": "string", "value": "json"}
        return {
            "inputs": [{"topic": "b", "bootstrap": True, **topic}, {"topic": "in", **topic}],
            "outputs": [{"topic": "out", **topic}],
            "stores": {"s": {**topic, "changelog": changelog}},
        }

    with Harness(Remembering, **sections(False)) as h:
        h.send("b", 7, key="k")
        h.run()
        h.restart(**sections(True))
        h.send("in", 1, key="k")
        h.run()
        assert h.output("out") == [("k", 7)]


def test_the_checkpoint_of_a_job_that_fills_nothing_again_is_as_it_was() -> None:
    with Harness(program("own")) as h:
        h.send("tab", {"a": 1}, key="k")
        h.run()
        checkpoint = h.checkpoint()
        assert isinstance(checkpoint, Checkpoint)
        assert checkpoint.version == VERSION
        assert b"refill" not in checkpoint.to_bytes()
