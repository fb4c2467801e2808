"""`checkpoint set` of a program with internal topics: inputs, what waits between the stages, and the state of all stages go back together."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.coordinator.checkpoint_set import CheckpointSet, CheckpointSetOptions, Plan
from samzapy.coordinator.settings import CoordinatorSettings, Process
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.plan.checkpoint_orders import Choice, Target
from samzapy.plan.grouping import group
from samzapy.ports import TopicSpec
from samzapy.streams import App, tumbling
from samzapy.testing import Harness

T0, TASKS = 1_600_041_600_000, 3
EARLIEST, LATEST = Target("earliest"), Target("latest")
TOPICS = ("lines", "names", "test-1-by-word", "test-1-by-length")
INTERNAL = {"test-1-by-word", "test-1-by-length"}
LOGS = {name: f"test-1-{name}-changelog" for name in ("counts", "lengths", "panes", "names")}

APP = App()
_names = APP.table("names", key=str, value=str, store="names")
_words = APP.stream("lines", key=str, value=str, watermark_delay="0s").flat_map(str.split, value=str).key_by(lambda w: w, "by-word", key=str)
_words.lookup(_names).map(lambda pair: str(pair[1]), value=str).to("named")
_words.window(tumbling("10s")).count("panes").to("panes")
_words.count("counts").updates().filter(lambda n: n == 1).key_by(lambda n, key: len(key), "by-length", key=int).count("lengths").to("lengths")


def command(h: Harness) -> CheckpointSet:
    with h.log.admin() as admin:
        counts = {topic: facts.partitions for topic, facts in admin.topics(TOPICS).items()}
    process = Process("h", 1, "s", lambda host, pid, start: False)
    return CheckpointSet(
        Job("test", "1"), group(counts, set(), True), LOGS, CoordinatorSettings(), h.log, h.clock, process, lambda url: False,
        internal=INTERNAL, tables={"names"},
    )  # fmt: skip


def ordered(h: Harness, target: Target, choice: Choice = Choice(), reset: bool = True) -> Plan:  # noqa: B008  a frozen value
    """The job is stopped, and the order given."""
    h.crash()
    epochs = range(h._incarnations + 5)  # the harness names owners without a coordinator: the epochs of both must not meet
    plan = command(h).execute(CheckpointSetOptions(target, choice, reset))
    h._incarnations = epochs.stop
    return plan


def feed(h: Harness, draw: random.Random, words: list[str]) -> None:
    """So that some of it waits in internal topics, sometimes."""
    for number, word in enumerate(words):
        h.send("lines", word, key="k", partition=draw.randrange(TASKS), timestamp=T0 + number * 1000)
        if draw.random() < 0.4:
            h.container.step(0.0)
        if draw.random() < 0.2:
            h.container.commit()
    if draw.random() < 0.5:
        h.run()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.prove) for seed in range(2, 60))])
def test_with_its_state_emptied_all_is_as_if_it_had_run_once(seed: int) -> None:
    draw = random.Random(seed)
    words = [draw.choice(["a", "bb", "cc", "ddd"]) for _ in range(25)]
    with Harness(APP, tasks=TASKS) as h:
        feed(h, draw, words)
        for _ in range(draw.randint(1, 2)):
            plan = ordered(h, EARLIEST)
            assert {at.topic for at in (s.topic_partition for s in plan.steps if s.chosen)} == set(TOPICS)
            if draw.random() < 0.5:
                h.run(commit=draw.random() < 0.5)
        if draw.random() < 0.5:
            h.crash(keep_state=False)
        h.end()
        assert Counter(words) == h.store("counts")
        assert Counter(map(len, set(words))) == h.store("lengths")
        windows = Counter((word, number // 10 * 10_000 + T0) for number, word in enumerate(words))
        newest = {(word, pane["start"]): pane["value"] for word, pane in h.output("panes")}
        assert windows == newest
        assert 0 == h.late("panes")


def test_with_its_state_kept_what_is_read_again_counts_again_and_what_waited_counts_once() -> None:
    with Harness(APP, tasks=TASKS) as h:
        h.send("lines", "a b", key="k", partition=1, timestamp=T0)
        h.run()
        plan = ordered(h, EARLIEST, reset=False)
        assert {"lines", "names"} == {s.topic_partition.topic for s in plan.steps if s.chosen}
        assert plan.keeps_times
        h.run()
        assert {"a": 2, "b": 2} == h.store("counts")


def test_a_record_of_an_internal_topic_can_be_passed_over() -> None:
    """As what is said of a record that ends its containers says."""
    with Harness(APP, tasks=TASKS) as h:
        h.send("lines", "a a a", key="k", partition=1, timestamp=T0)
        h.run()
        (last,) = [m for m in h.records("test-1-by-word") if m.key() == b"a"][2:]
        h.send("lines", "a b", key="k", partition=1, timestamp=T0)
        place = TopicPartition("test-1-by-word", last.partition())
        plan = ordered(h, Target(offset=last.offset()), Choice(place.topic, place.partition), reset=False)
        assert [place] == [s.topic_partition for s in plan.steps if s.chosen]
        h.run()
        assert {"a": 5, "b": 1} == h.store("counts")  # the third one was read again


@pytest.mark.parametrize("choice", [Choice("lines"), Choice(None, 0), Choice("test-1-by-word")])
def test_a_part_of_its_state_cannot_be_emptied(choice: Choice) -> None:
    with Harness(APP, tasks=TASKS) as h:
        h.send("lines", "a", key="k")
        h.run()
        with pytest.raises(ConfigurationError, match="comes from all inputs and partitions") as refused:
            ordered(h, EARLIEST, choice)
        assert "Leave --topic and --partition out" in refused.value.remedy
        ordered(h, EARLIEST)


def test_a_table_is_read_from_its_start_wherever_the_others_go_on() -> None:
    with Harness(APP, tasks=TASKS) as h:
        h.send("names", "Anna", key="a")
        h.run()
        h.send("lines", "a", key="k")
        h.run()
        assert ("names",) == ordered(h, LATEST).whole
        h.send("lines", "a", key="k")
        h.run()
        assert {"a": "Anna"} == h.store("names")
        assert {"a": 1} == h.store("counts")
        assert ["Anna", "Anna"] == [name for _, name in h.output("named")]


def test_without_checkpoints_what_waits_between_stages_is_passed_over() -> None:
    """The state stays and inputs go on at their ends, as the remedy for lost checkpoints says."""
    with Harness(APP, tasks=TASKS) as h:
        h.send("lines", "a b", key="k", partition=1)
        h.run()
        h.crash()
        checkpoints = Job("test", "1").checkpoint_topic
        h.cluster.delete(checkpoints)
        h.cluster.create(TopicSpec(checkpoints, TASKS, {"cleanup.policy": "compact"}))
        ordered(h, LATEST, reset=False)
        h.send("lines", "a", key="k", partition=1)
        h.run()
        assert {"a": 2, "b": 1} == h.store("counts")


def test_before_its_first_run_there_is_nothing_to_pass_over() -> None:
    with Harness(APP, tasks=TASKS) as h:
        h.send("lines", "a b", key="k")
        ordered(h, LATEST)
        h.send("lines", "a", key="k")
        h.run()
        counts: dict[Any, Any] = h.store("counts")
        assert {"a": 1} == counts
