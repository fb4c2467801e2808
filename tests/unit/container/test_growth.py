"""An input of a job with state that grows, or a topic that is made again: what was read after that is not committed, and what may be wrong is said with
its offsets."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from samzapy import StreamTask
from samzapy.api.errors import StateMismatch, StateRefused
from samzapy.container.container import Container
from samzapy.container.growth import Growth
from samzapy.model.offsets import TopicPartition
from samzapy.plan.grown_topics import KEEPS_PARTITIONS, STATE_IS_LOST
from samzapy.ports import TopicSpec
from samzapy.testing.memory_log import MemoryLog
from tests.unit.container.bench import JOB, Bench

HERE = "container"


class Counting(StreamTask):
    def init(self, context):
        self.store = context.get_store("s")

    def process(self, envelope, collector, coordinator):
        self.store.put(envelope.key, (self.store.get(envelope.key) or 0) + 1)


class Silent(StreamTask):
    def process(self, envelope, collector, coordinator):
        pass


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path, Counting, partitions=2, commit_interval_s=1000.0)
    made.adjust = lambda spec: dataclasses.replace(spec, keyed_inputs={"in": 2})
    made.log = MemoryLog(made.cluster, origin=HERE)
    return made


def _take(bench: Bench, container: Container, *keys: str, partition: int = 0) -> None:
    """Have these records processed; nothing is committed."""
    bench.feed(*((key, 1) for key in keys), partition=partition)
    while container.step(0.0):
        continue


def test_nothing_that_was_read_after_an_input_grew_is_committed_also_not_when_it_stops(bench: Bench) -> None:
    container = bench.start()
    _take(bench, container, "a", "b")
    container.commit()
    _take(bench, container, "c", partition=1)
    bench.clock.sleep(1.0)
    bench.log.admin().grow("in", 4)
    said = (
        r"^input in grew from 2 to 4 partitions while the job ran: keys go to other partitions now.* "
        r"Container 0 committed none of the records that it read between 2023-11-14T22:13:20Z, when no topic had grown, and 2023-11-14T22:13:21Z"
    )
    with pytest.raises(StateMismatch, match=said) as caught:
        container.commit()
    assert "samzapy reset JOB.yaml" in caught.value.remedy
    with pytest.raises(StateMismatch):
        container.stop()
    container.close()
    assert ({"a": 1, "b": 1}, {}) == (bench.changelog(0), bench.changelog(1))


def test_a_container_that_stops_looks_however_short_the_time_since_it_last_did(bench: Bench) -> None:
    container = bench.start()
    _take(bench, container, "a")
    container.commit()
    bench.log.admin().grow("in", 3)
    _take(bench, container, "b")
    with pytest.raises(StateMismatch):
        container.stop()
    container.close()
    assert {"a": 1} == bench.changelog(0)


def test_what_was_committed_between_two_looks_is_named_with_its_offsets(bench: Bench) -> None:
    container = bench.start()
    _take(bench, container, "a")
    container.commit()  # with a look
    bench.log.admin().grow("in", 4)
    _take(bench, container, "b", "c")
    bench.clock.sleep(0.5)
    container.commit()  # too soon for another
    assert {"a": 1, "b": 1, "c": 1} == bench.changelog(0)
    bench.clock.sleep(1.0)
    _take(bench, container, "d")
    said = (
        r"Before container 0 noticed this, it committed records that it had read between 2023-11-14T22:13:20Z and 2023-11-14T22:13:21Z: "
        r"in\[0\] offsets 1 to 2\. They may have been counted in the wrong task"
    )
    with pytest.raises(StateMismatch, match=said):
        container.commit()
    container.close()
    assert "d" not in bench.changelog(0)


def _make_again(bench: Bench, topic: str) -> None:
    admin = bench.log.admin()
    admin.delete([topic])
    admin.create([TopicSpec(topic, 2)])


@pytest.mark.parametrize("stores", [{"s": {}}, {}], ids=["with state", "without"])
def test_nothing_of_an_input_that_was_made_again_is_committed_as_the_old_ones(tmp_path: Path, stores: dict[str, object]) -> None:
    bench = Bench(tmp_path, Counting if stores else Silent, partitions=2, commit_interval_s=1000.0, stores=stores)
    container = bench.start()
    _take(bench, container, "a", "b")
    container.commit()
    _make_again(bench, "in")
    _take(bench, container, "c", "d", "e")  # the third is where the old topic was read to
    bench.clock.sleep(1.0)
    with pytest.raises(StateRefused, match=r"^in: deleted and created again while the job ran; nothing more is committed\. Restore the topic") as caught:
        container.commit()
    assert "samzapy reset JOB.yaml" in caught.value.remedy
    with pytest.raises(StateRefused):
        container.stop()
    assert {"in[0]": 2, "in[1]": 0} == {place: mark.next_offset for t in container.tasks.values() for place, mark in t.committed.inputs.items()}
    container.close()


def test_what_was_committed_of_a_topic_made_again_between_two_looks_is_named(bench: Bench) -> None:
    container = bench.start()
    _take(bench, container, "a")
    container.commit()  # with a look
    _make_again(bench, "in")
    _take(bench, container, "b", "c")
    bench.clock.sleep(0.5)
    container.commit()  # too soon for another
    _take(bench, container, "d")
    bench.clock.sleep(0.5)
    with pytest.raises(StateRefused, match=r"container 0 noticed this, it committed records that .*: in\[0\] offsets 1 to 1\. They may be records of the new"):
        container.commit()
    container.close()


def test_a_topic_made_again_that_is_shorter_than_the_old_one_is_named_as_that(bench: Bench) -> None:
    container = bench.start()
    _take(bench, container, "a", "b")
    container.commit()
    _make_again(bench, "in")
    with pytest.raises(StateRefused, match=r"^in: deleted and created again while the job ran"):
        container.step(0.0)
    container.close()


def test_nothing_is_committed_into_a_changelog_that_was_made_again(bench: Bench) -> None:
    container = bench.start()
    _take(bench, container, "a")
    container.commit()
    _make_again(bench, JOB.changelog_topic("s"))
    _take(bench, container, "b")
    bench.clock.sleep(1.0)
    with pytest.raises(StateRefused, match=r"^test-1-s-changelog: deleted and created again while the job ran"):
        container.commit()
    container.close()
    assert {} == bench.changelog(0)


def test_of_an_internal_topic_only_its_own_records_are_in_doubt_and_with_an_input_all_are(bench: Bench) -> None:
    topics = {"a": 2, "between": 2}
    bench.log.admin().create([TopicSpec(t, n) for t, n in topics.items()])
    ids = {t: f.topic_id for t, f in bench.log.admin().topics(topics).items()}
    growth = Growth(topics, ids, 0, bench.log, bench.clock, {"between"})
    at_first, later = ({TopicPartition(t, 0): n for t in topics} for n in (0, 3))
    growth.check(at_first, at_first)
    bench.log.admin().grow("between", 4)
    for grown, named, doubtful, remedy in (
        ("between", "internal topic between grew from 2 to 4 partitions while", ": between[0] offsets 0 to 2. ", KEEPS_PARTITIONS),
        ("a", "input a grew from 2 to 5 partitions, internal topic between grew from 2 to 4 partitions while", ": a[0] offsets 0 to 2, between[0] ", STATE_IS_LOST),
    ):
        if grown == "a":
            bench.log.admin().grow("a", 5)
        with pytest.raises(StateMismatch) as caught:
            growth.look(later)
        assert caught.value.message.startswith(named)
        assert doubtful in caught.value.message
        assert remedy == caught.value.remedy
    growth.close()


class LogOfAnAdminThatIsAway(MemoryLog):
    """Whose admin clients alone are cut off from the cluster."""

    def admin(self):
        return MemoryLog(self._cluster, origin="admin").admin()


def test_a_broker_that_does_not_tell_holds_a_commit_up_for_a_second_and_ends_nothing(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.log = LogOfAnAdminThatIsAway(bench.cluster, origin=HERE)
    container = bench.start()
    bench.cluster.cut_off(1000.0, origin="admin")
    _take(bench, container, "a")
    before = bench.clock.monotonic()
    container.commit()
    assert bench.clock.monotonic() - before <= 1.5
    assert {"a": 1} == bench.changelog(0)
    assert ["container 0: cannot check whether its topics have changed"] == [m.split(",")[0] for m in caplog.messages if "cannot check" in m]
    _take(bench, container, "b")
    at = bench.clock.monotonic()
    container.commit()  # not asked again so soon
    assert at == bench.clock.monotonic()
    bench.cluster.cut_off(0.0, origin="admin")
    bench.cluster.add_partitions("in", 4)
    bench.clock.sleep(5.0)
    _take(bench, container, "c")
    with pytest.raises(StateMismatch, match=r"read between its start and .*: in\[0\] offsets 0 to 1\."):
        container.commit()
    container.close()
