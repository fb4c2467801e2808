"""Taking tasks by force: the end of an incarnation is written, read back, and its id fenced, in this order."""

from __future__ import annotations

import pytest

from samzapy import failpoints
from samzapy.api.errors import Fenced, InDoubt
from samzapy.coordinator.coordinator_log import CoordinatorLog
from samzapy.coordinator.ownership_records import Named, OwnershipRecords
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import LEASE_KEY, ContainerRecord, LeaseRecord, Ledger
from samzapy.ports import TopicSpec
from samzapy.readers import read_ledger
from samzapy.testing.manual_clock import ManualClock
from samzapy.testing.memory_log import Chance, MemoryCluster, MemoryLog
from tests.unit.coordinator.parts import Parts

JOB = Job("job", "1")
TASKS = ("Partition 0", "Partition 1")


def test_a_strangers_transaction_that_hides_what_was_written_is_told(caplog: pytest.LogCaptureFixture) -> None:
    topic = Topic()
    topic.ownership.name([Named(0, "one", TASKS, "h", 1)])
    stranger = topic.log.transactional_producer("stranger")
    stranger.init()
    stranger.begin()
    stranger.send(JOB.coordinator_topic, b"value", b"key", 0)
    stranger.flush()
    waits = 0
    sleep = topic.clock.sleep

    def until_it_ends(seconds: float) -> None:
        nonlocal waits
        waits += 1
        sleep(seconds)
        if waits == 500:  # ten seconds
            stranger.abort()

    topic.ownership._clock.sleep = until_it_ends  # type: ignore[method-assign]
    topic.ownership.end([ContainerRecord(0, 1, "one", TASKS, "run", "h", 1)])
    told = [record.getMessage() for record in caplog.records if "cannot be read yet" in record.getMessage()]
    assert 1 == len(told)
    assert told[0].startswith(f"{JOB.coordinator_topic}: what this run has written there cannot be read yet: another application's transaction is open")
    assert f"describe-producers --topic {JOB.coordinator_topic} --partition 0`" in told[0]


class Topic:
    """A job's coordinator topic, its coordinator, and what anybody reads there."""

    def __init__(self, chance: Chance | None = None) -> None:
        self.clock = ManualClock()
        self.cluster = MemoryCluster(self.clock, chance)
        self.log = MemoryLog(self.cluster)
        self.log.admin().create([TopicSpec(JOB.coordinator_topic, 1)])
        self.ownership = OwnershipRecords(CoordinatorLog(JOB, "run", self.log, self.clock), "run", self.clock)
        self.ownership.take_over()

    def read(self) -> Ledger:
        return read_ledger(self.log.restore_consumer("test"), JOB.coordinator_topic, self.clock)

    def record(self) -> ContainerRecord:
        return self.read().containers[0]


def test_an_id_is_fenced_only_when_the_end_of_its_incarnation_can_be_read() -> None:
    """Else its container could make a new producer after the fence, and still find itself named."""
    topic = Topic(Chance(3, {"marker.late": 1.0}))
    topic.ownership.name([Named(0, "one", TASKS, "h", 1)])
    record = ContainerRecord(0, 1, "one", TASKS, "run", "h", 1)
    seen: dict[str, str] = {}
    fenced_at: list[str] = []

    def look(name: str) -> None:
        if name.startswith("coordinator.end."):
            seen[name] = topic.record().incarnation if 0 in topic.read().containers else "nobody yet"

    fence = topic.ownership.fence
    topic.ownership.fence = lambda container: (fenced_at.append(topic.record().incarnation), fence(container))[1]  # type: ignore[method-assign]
    with failpoints.calling(look):
        topic.ownership.end([record])

    assert "" != seen["coordinator.end.a"], "the commit has returned and is not visible yet: the test would prove nothing"
    assert ("", "") == (seen["coordinator.end.b"], seen["coordinator.end.c"])
    assert [""] == fenced_at


def test_what_an_ended_container_had_open_is_never_seen() -> None:
    topic = Topic()
    topic.log.admin().create([TopicSpec("out", 1)])
    topic.ownership.name([Named(0, "one", TASKS, "h", 1)])
    zombie = topic.log.transactional_producer(JOB.container_transactional_id(0))
    zombie.init()
    zombie.begin()
    zombie.send("out", b"late", b"k", 0)
    zombie.flush()

    topic.ownership.end([topic.record()])

    with pytest.raises(Fenced):
        zombie.commit()
    assert ("", TASKS, 2) == (topic.record().incarnation, topic.record().tasks, topic.record().epoch)


def test_every_name_and_every_end_has_an_epoch_of_its_own() -> None:
    topic = Topic()

    assert {0: 1, 1: 2} == topic.ownership.name([Named(0, "a", TASKS[:1], "h", 1), Named(1, "b", TASKS[1:], "h", 2)])
    topic.ownership.end(list(topic.read().containers.values()))
    assert [3, 4] == [r.epoch for r in topic.read().containers.values()]
    assert {0: 5} == topic.ownership.name([Named(0, "c", TASKS, "h", 3)])


def test_owners_that_are_named_together_are_in_one_transaction() -> None:
    """A task that moves is taken out of one record and put into another: no reader sees it in both, or in none."""
    topic, place = Topic(), TopicPartition(JOB.coordinator_topic, 0)
    before = topic.cluster.bounds(place).end

    topic.ownership.name([Named(0, "a", TASKS[:1], "", 1), Named(1, "b", TASKS[1:], "", 2)])

    assert 2 + 1 == topic.cluster.bounds(place).end - before  # two records and one marker


@pytest.mark.parametrize(("kind", "named"), [("in_doubt_committed", "one"), ("in_doubt_lost", "nobody")])
def test_a_write_in_doubt_is_decided_by_a_new_producer_before_it_is_read(kind: str, named: str) -> None:
    topic = Topic()
    topic.cluster.fail_next("commit", kind)
    with pytest.raises(InDoubt):
        topic.ownership.name([Named(0, "one", TASKS, "h", 1)])
    assert topic.ownership.is_in_doubt

    record = topic.ownership.read().containers.get(0)

    assert named == (record.incarnation if record else "nobody")
    assert not topic.ownership.is_in_doubt


def test_the_hosts_with_state_of_a_task_are_kept_newest_last_owner_first_to_go_is_the_oldest() -> None:
    topic = Topic()
    for number, host in enumerate(["a", "b", "c", "d", "e", "b"]):
        topic.ownership.name([Named(0, f"i{number}", TASKS[:1], host, 1)])

    assert {"b": 6, "c": 3, "d": 4, "e": 5} == topic.ownership.locality[TASKS[0]] == topic.read().locality[TASKS[0]]

    topic.ownership.confirm("c", ["another task"])
    assert {"b", "d", "e"} == set(topic.ownership.locality[TASKS[0]])


def test_one_that_begins_again_after_a_doubt_does_not_take_over_from_its_successor() -> None:
    parts = Parts()
    ownership, successor = (OwnershipRecords(CoordinatorLog(JOB, run, parts.log, parts.clock), run, parts.clock) for run in ("first", "second"))
    ownership.take_over()
    ownership.write((LEASE_KEY, LeaseRecord(run_id="first", url="", host="h", pid=1, process_start="s", renewed_ms=0).to_bytes()))
    successor.take_over()
    successor.write((LEASE_KEY, LeaseRecord(run_id="second", url="", host="h", pid=2, process_start="s", renewed_ms=0).to_bytes()))
    with pytest.raises(Fenced):
        ownership.write((LEASE_KEY, b"late"))

    for _ in range(2):
        with pytest.raises(Fenced, match="second has taken over"):
            ownership.take_over()
        assert ownership.is_replaced
    successor.write((LEASE_KEY, b"of a run that nobody fenced"))  # an init would have
