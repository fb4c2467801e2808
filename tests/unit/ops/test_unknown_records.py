"""Records in an internal topic that no checkpoint knows are of a stage that was given up: they go. Those that one knows stay."""

from __future__ import annotations

import logging

import pytest

from samzapy.config.document import settings_from_document
from samzapy.model.checkpoint import CHECKPOINT_KEY, Checkpoint, InputMark
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.ops.unknown_records import remove_unknown_records
from samzapy.plan.forgetting import topic_subject
from samzapy.ports import TopicSpec
from samzapy.streams import App
from samzapy.streams.expand import sections
from samzapy.testing.manual_clock import ManualClock
from samzapy.testing.memory_log import MemoryCluster, MemoryLog

APP = App()
APP.stream("in", key=str, value=dict).key_by(lambda v: v["k"], "by-k", key=str).count("counts").to("out")
TOPIC, CHECKPOINTS = "test-1-by-k", Job("test", "1").checkpoint_topic
DOCUMENT = {"job": "test", "app": "program:app", "kafka": {"bootstrap.servers": "x:1"}, **sections(APP.graph, {}, {}).to_json()}
SETTINGS = settings_from_document(DOCUMENT, {})


def checkpoint(fingerprint: dict[str, str], inputs: dict[str, InputMark]) -> Checkpoint:
    return Checkpoint(
        job="test", id="1", task="Partition 0", container=0, incarnation="i", epoch=1, sequence=1, inputs=inputs, stores={}, fingerprint=fingerprint
    )


@pytest.mark.parametrize(
    ("fingerprint", "inputs", "is_known"),
    [
        ({}, {}, False),
        ({topic_subject("by-j"): "2"}, {"in[0]": InputMark("i", 5)}, False),
        ({topic_subject("by-k"): "2"}, {}, True),
        ({}, {f"{TOPIC}[1]": InputMark("i", 0)}, True),
        (None, {}, False),
    ],
    ids=["forgotten", "another", "named", "read", "no checkpoint"],
)
def test_what_no_checkpoint_knows_is_removed(
    fingerprint: dict[str, str] | None, inputs: dict[str, InputMark], is_known: bool, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    log = MemoryLog(MemoryCluster(clock))
    log.admin().create([TopicSpec(TOPIC, 2), *([] if fingerprint is None else [TopicSpec(CHECKPOINTS, 1, {"cleanup.policy": "compact"})])])
    producer = log.plain_producer("test")
    producer.send(TOPIC, b"1", b"k", 1)
    if fingerprint is not None:
        producer.send(CHECKPOINTS, checkpoint(fingerprint, inputs).to_bytes(), CHECKPOINT_KEY, 0)
    producer.flush()
    with caplog.at_level(logging.WARNING):
        remove_unknown_records(SETTINGS, log, clock)
        remove_unknown_records(SETTINGS, log, clock)
    bounds = log.restore_consumer("test").bounds(TopicPartition(TOPIC, 1))
    assert (0 if is_known else 1, 1) == (bounds.start, bounds.end)
    assert (0 if is_known else 1) == len([m for m in caplog.messages if TOPIC in m]), "said once"


class _MarkerComes(ManualClock):
    """The marker that is held comes while somebody waits."""

    def __init__(self, cluster: MemoryCluster | None = None) -> None:
        super().__init__()
        self.cluster = cluster

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.cluster is not None:
            self.cluster.deliver_held("marker")


def test_what_is_committed_with_a_checkpoint_stays_while_the_checkpoint_is_not_seen_yet() -> None:
    clock = _MarkerComes()
    clock.cluster = MemoryCluster(clock)
    log = MemoryLog(clock.cluster)
    log.admin().create([TopicSpec(TOPIC, 2), TopicSpec(CHECKPOINTS, 1, {"cleanup.policy": "compact"})])
    producer = log.transactional_producer("test")
    producer.init()
    producer.begin()
    producer.send(CHECKPOINTS, checkpoint({topic_subject("by-k"): "2"}, {}).to_bytes(), CHECKPOINT_KEY, 0)
    producer.send(TOPIC, b"1", b"k", 1)
    producer.flush()
    clock.cluster.disturb_next("marker", "held")
    producer.commit()

    consumer = log.restore_consumer("test")
    assert (1, 0) == (consumer.bounds(TopicPartition(TOPIC, 1)).end - 1, consumer.bounds(TopicPartition(CHECKPOINTS, 0)).end), "one is seen, one is not"
    remove_unknown_records(SETTINGS, log, clock)
    assert 0 == consumer.bounds(TopicPartition(TOPIC, 1)).start
