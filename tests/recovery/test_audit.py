"""The audit can fail: each way in which a task could have two live owners, planted in a faultless history, is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from samzapy.model.barrier import BARRIER_KEY, Barrier
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, InputMark, UnreadableCheckpoint
from samzapy.model.names import Job
from samzapy.model.ownership import LEASE_KEY, ContainerRecord, LeaseRecord, container_key
from tests.broker import create_topic, produce
from tests.recovery.audit import Began, Committed, Event, Leased, Named, Seen, audit, event_of, summary
from tests.recovery.observer import Observer

T0, T1 = "Partition 0", "Partition 1"


class History:
    """Events as they happen, 10 ms apart; each partition counts its own offsets."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._now_ms = 1_000_000
        self._offsets: dict[str, int] = {}
        self._sequences: dict[int, int] = {}

    def leased(self, run: str) -> History:
        self.events.append(Leased(self._at("coordinator"), LeaseRecord(run_id=run, url="", host="h", pid=1, process_start="", renewed_ms=self._now_ms)))
        return self

    def named(self, container: int, epoch: int, incarnation: str, *tasks: str) -> History:
        self.events.append(Named(self._at("coordinator"), container, ContainerRecord(container, epoch, incarnation, tasks, "run", "h", 1)))
        return self

    def removed(self, container: int) -> History:
        self.events.append(Named(self._at("coordinator"), container, None))
        return self

    def began(self, epoch: int, incarnation: str, task: int = 0, nonce: str = "nonce") -> History:
        barrier = Barrier("j", "1", f"Partition {task}", "", epoch, incarnation, nonce)
        self.events.append(Began(self._at(f"checkpoint-{task}", task), barrier))
        return self

    def committed(self, container: int, epoch: int, incarnation: str, task: int = 0, **changes: Any) -> History:
        sequence = changes.pop("sequence", self._sequences.get(task, -1) + 1)
        self._sequences[task] = sequence
        name = changes.pop("name", f"Partition {task}")
        mark = InputMark("t", changes.pop("position", 10 * sequence))
        made = Checkpoint(
            job="j",
            id="1",
            task=name,
            container=container,
            incarnation=incarnation,
            epoch=epoch,
            sequence=sequence,
            inputs={f"in[{task}]": mark},
            stores={},
        )
        self.events.append(Committed(self._at(f"checkpoint-{task}", task), replace(made, **changes)))
        return self

    def marker(self) -> History:
        """The end of a transaction in the coordinator topic; without it records are of one."""
        self._at("coordinator")
        return self

    def later(self, passed_ms: int) -> History:
        self._now_ms += passed_ms
        return self

    def _at(self, log: str, partition: int = 0) -> Seen:
        self._now_ms += 10
        self._offsets[log] = self._offsets.get(log, -1) + 1
        return Seen(partition, self._offsets[log], self._now_ms, self._now_ms + 5)


def two_owners() -> History:
    """Container 0 dies and comes back as another incarnation; container 1 lives on."""
    return (
        History()
        .leased("r1")
        .named(0, 1, "a", T0)
        .named(1, 2, "b", T1)
        .began(1, "a")
        .committed(0, 1, "a")
        .began(2, "b", 1)
        .committed(1, 2, "b", 1)
        .committed(0, 1, "a")
        .named(0, 3, "", T0)
        .named(0, 4, "c", T0)
        .began(4, "c")
        .committed(0, 4, "c")
        .committed(1, 2, "b", 1)
    )


def test_a_faultless_history_has_no_problems() -> None:
    assert [] == audit(two_owners().events)
    ahead_of_a_commit = two_owners().began(4, "c", nonce="").committed(0, 4, "c")
    assert "6 checkpoints of 2 tasks, 3 starts of tasks, 3 incarnations in 1 runs" == summary(ahead_of_a_commit.events)


def test_a_task_may_move_by_agreement_and_come_back_to_a_live_incarnation_under_a_higher_epoch() -> None:
    history = (
        History()
        .named(0, 1, "a", T0, T1)
        .named(1, 2, "b")
        .committed(0, 1, "a")
        .committed(0, 1, "a", 1)
        .named(0, 3, "a", T0)
        .named(1, 4, "b", T1)
        .committed(0, 1, "a")
        .committed(1, 4, "b", 1)
        .named(1, 5, "b")
        .named(0, 6, "a", T0, T1)
        .committed(0, 6, "a", 1)
        .committed(0, 6, "a")
    )

    assert [] == audit(history.events)


def test_within_a_transaction_a_task_may_be_given_before_it_is_taken() -> None:
    start = History().named(0, 1, "a", T0, T1).named(1, 2, "b").marker()
    assert [] == audit(start.named(1, 3, "b", T1).named(0, 4, "a", T0).events)

    start = History().named(0, 1, "a", T0, T1).named(1, 2, "b").marker()
    assert ["coordinator[0]@3: Partition 1 is given to container 1 (b) while container 0 (a) has it"] == audit(
        start.named(1, 3, "b", T1).marker().named(0, 4, "a", T0).events
    )


PLANTED: dict[str, tuple[Callable[[History], History], list[str]]] = {
    "a gap": (lambda h: h.committed(0, 4, "c", sequence=4), ["checkpoint[0]@5: checkpoint 4 of Partition 0, where 3 is expected"]),
    "a repeat": (
        lambda h: h.committed(0, 4, "c", sequence=2),
        ["checkpoint[0]@5: checkpoint 2 of Partition 0, where 3 is expected"],
    ),
    "a position that goes back": (lambda h: h.committed(0, 4, "c", position=3), ["checkpoint[0]@5: Partition 0 goes back in in[0]"]),
    "another's task": (
        lambda h: h.committed(0, 4, "c", name=T1),
        [
            "checkpoint[0]@5: a checkpoint of Partition 1 in the partition of Partition 0",
            "checkpoint[0]@5: checkpoint 3 of Partition 1 by incarnation c (epoch 4), whose record (coordinator[0]@4) does not list that task",
        ],
    ),
    "an owner that comes back": (
        lambda h: h.committed(0, 1, "a"),
        [
            "checkpoint[0]@5: checkpoint 3 of Partition 0 with epoch 1 after epoch 4",
            "checkpoint[0]@5: checkpoint 3 of Partition 0 by incarnation a (epoch 1), which incarnation c (epoch 4) had followed",
            "checkpoint[0]@5: checkpoint 3 of Partition 0 by incarnation a (epoch 1), 40 ms after c was named for it (coordinator[0]@4)",
        ],
    ),
    "a barrier that comes back": (
        lambda h: h.began(1, "a"),
        [
            "checkpoint[0]@5: the barrier of Partition 0 with epoch 1 after epoch 4",
            "checkpoint[0]@5: the barrier of Partition 0 by incarnation a (epoch 1), which incarnation c (epoch 4) had followed",
            "checkpoint[0]@5: the barrier of Partition 0 by incarnation a (epoch 1), 40 ms after c was named for it (coordinator[0]@4)",
        ],
    ),
    "nobody's checkpoint": (
        lambda h: h.committed(0, 5, "x"),
        ["checkpoint[0]@5: checkpoint 3 of Partition 0 by incarnation x (epoch 5), which the coordinator topic never named"],
    ),
    "an epoch that another record of the incarnation has": (
        lambda h: h.named(1, 5, "b").committed(1, 5, "b", 1),
        [
            "checkpoint[1]@3: checkpoint 2 of Partition 1 by incarnation b (epoch 5), whose record (coordinator[0]@5) does not list that task"
        ],
    ),
    "another container's incarnation": (
        lambda h: h.committed(1, 4, "c"),
        ["checkpoint[0]@5: checkpoint 3 of Partition 0 by incarnation c (epoch 4) in container 1, which was named for container 0"],
    ),
    "long after the end": (
        lambda h: h.named(0, 5, "", T0).later(3000).committed(0, 4, "c"),
        ["checkpoint[0]@5: checkpoint 3 of Partition 0 by incarnation c (epoch 4), 3010 ms after that was ended (coordinator[0]@5)"],
    ),
    "long after the record was removed": (
        lambda h: h.removed(0).later(3000).committed(0, 4, "c"),
        ["checkpoint[0]@5: checkpoint 3 of Partition 0 by incarnation c (epoch 4), 3010 ms after that was ended (coordinator[0]@5)"],
    ),
    "long after the task was taken from its list": (
        lambda h: h.named(0, 5, "c").later(3000).committed(0, 4, "c"),
        ["checkpoint[0]@5: checkpoint 3 of Partition 0 by incarnation c (epoch 4), 3010 ms after that was ended (coordinator[0]@5)"],
    ),
    "after a successor was named, before that one began": (
        lambda h: h.named(0, 5, "", T0).named(1, 6, "b", T0, T1).committed(0, 4, "c"),
        ["checkpoint[0]@5: checkpoint 3 of Partition 0 by incarnation c (epoch 4), 10 ms after b was named for it (coordinator[0]@6)"],
    ),
    "two containers with one task": (
        lambda h: h.named(1, 5, "b", T0, T1),
        ["coordinator[0]@5: Partition 0 is given to container 1 (b) while container 0 (c) has it"],
    ),
    "an epoch that falls": (lambda h: h.named(1, 3, "d", T1), ["coordinator[0]@5: epoch 3 of container 1 after epoch 4"]),
    "an epoch for two": (lambda h: h.named(1, 4, "d", T1), ["coordinator[0]@5: epoch 4 names d, and c before"]),
    "an incarnation that is named again": (
        lambda h: h.named(0, 5, "a", T0),
        ["coordinator[0]@5: incarnation a of container 0 is named again after it was ended"],
    ),
    "a coordinator that comes back": (
        lambda h: h.leased("r2").leased("r1"),
        ["coordinator[0]@6: run r1 renews its lease after run r2 had taken over"],
    ),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_problem_is_named(planted: str) -> None:
    plant, problems = PLANTED[planted]
    history = plant(two_owners())

    assert problems == audit(history.events)


def test_a_checkpoint_made_before_its_owner_was_named_is_a_problem_beyond_the_clocks_skew() -> None:
    history = History().committed(0, 1, "a").named(0, 1, "a", T0)

    assert [
        "checkpoint[0]@0: checkpoint 0 of Partition 0 by incarnation a (epoch 1), 10 ms before it was named (coordinator[0]@0)"
    ] == audit(history.events)
    assert [] == audit(history.events, skew_ms=10)


def test_an_owner_may_commit_between_the_record_that_ends_it_and_its_fence() -> None:
    history = two_owners().named(0, 5, "", T0).later(1000).committed(0, 4, "c")

    assert [] == audit(history.events)
    assert 1 == len(audit(history.events, fence_ms=1000))


def test_the_first_checkpoint_is_number_0_if_all_was_seen() -> None:
    history = History().named(0, 1, "a", T0).committed(0, 1, "a", sequence=7).committed(0, 1, "a")

    assert ["checkpoint[0]@0: checkpoint 7 of Partition 0, where 0 is expected"] == audit(history.events)
    assert [] == audit(history.events, from_start=False)


def test_a_startpoint_may_take_a_task_back() -> None:
    history = two_owners().committed(0, 4, "c", position=0, startpoint_id="s1")

    assert [] == audit(history.events)


def test_records_become_events_and_damage_is_not_passed_over() -> None:
    at = Seen(0, 0, 1, 2)
    named = ContainerRecord(3, 1, "a", (T0,), "r", "h", 1)
    lease = LeaseRecord(run_id="r", url="http://u", host="h", pid=1, process_start="", renewed_ms=5)

    assert Named(at, 3, named) == event_of(container_key(3), named.to_bytes(), at)
    assert Named(at, 3, None) == event_of(container_key(3), None, at)
    assert Leased(at, lease) == event_of(LEASE_KEY, lease.to_bytes(), at)
    assert None is event_of(b"locality/x", b"anything", at)
    with pytest.raises(UnreadableCheckpoint):
        event_of(CHECKPOINT_KEY, b"{}", at)
    with pytest.raises(ValueError, match="unknown version"):
        event_of(BARRIER_KEY, b"{}", at)


@pytest.mark.kafka
def test_the_observer_sees_topics_that_come_later_and_all_up_to_the_end(kafka: str, unique: str) -> None:
    job = Job(unique, "1")
    with Observer(kafka, job) as observer:
        for topic, partitions in ((job.coordinator_topic, 1), (job.checkpoint_topic, 2)):
            create_topic(kafka, topic, partitions)
        named = ContainerRecord(0, 1, "a", (T0, T1), "r", "h", 1)
        produce(kafka, job.coordinator_topic, [(container_key(0), named.to_bytes())])
        made = [
            Checkpoint(job=unique, id="1", task=f"Partition {p}", container=0, incarnation="a", epoch=1, sequence=i, inputs={}, stores={})
            for i in range(50)
            for p in (0, 1)
        ]
        produce(kafka, job.checkpoint_topic, [(CHECKPOINT_KEY, c.to_bytes(), i % 2) for i, c in enumerate(made)])
        events = observer.finish()

    assert 101 == len(events)
    assert [] == audit(events)
