"""Of three brokers one is down, and with it some partitions of an input that has no other replica: told, waited for, and exact afterwards."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from samzapy.api.errors import ClusterUnreachable, NoLeader, TopicMissing
from samzapy.dev.kafka import LocalKafka
from samzapy.kafka.admin import KafkaAdmin
from samzapy.kafka.consumer import KafkaConsumer
from samzapy.model.offsets import TopicPartition
from tests.broker import LIMIT_S, admin, produce, read_all
from tests.integration.job import Job

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(900)]
LONG_S = 240.0
PARTITIONS = 3


@pytest.fixture(scope="module")
def kafka3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    cluster = LocalKafka.start(port=0, brokers=3, directory=tmp_path_factory.mktemp("three"), tied=True, timeout_s=LONG_S)
    try:
        yield cluster
    finally:
        cluster.stop()


def until(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONG_S
    while not done():
        assert time.monotonic() < deadline, f"not within {LONG_S:.0f} s: {what}"


def single(kafka: LocalKafka, name: str) -> str:
    """A topic each of whose partitions is on one broker: partition p on broker p + 1."""
    placed = [[broker] for broker in (1, 2, 3)]
    client = admin(kafka.bootstrap_servers)  # kept: its futures end with it
    client.create_topics([NewTopic(name, len(placed), replica_assignment=placed)])[name].result(LIMIT_S)
    until(lambda: [1, 2, 3] == [p.leader for _, p in sorted(client.list_topics(name, timeout=10).topics[name].partitions.items())], "leaders")
    return name


def down(kafka: LocalKafka, looks: KafkaAdmin, topic: str, broker: int = 2) -> TopicPartition:
    kafka.kill_broker(broker)
    place = TopicPartition(topic, broker - 1)
    until(lambda: _told(lambda: place in looks.leaderless([topic])), f"{place} has no leader")
    return place


def _told(ask: Callable[[], bool]) -> bool:
    try:
        return ask()
    except ClusterUnreachable:
        return False


def back(kafka: LocalKafka, broker: int = 2) -> None:
    kafka.start_broker(broker, tied=True)
    until(kafka.is_answering, f"broker {broker} is back")


def test_a_partition_whose_broker_is_down(kafka3: LocalKafka, unique: str) -> None:
    """As the fake answers: tests/unit/container/test_leaderless.py."""
    topic = single(kafka3, unique)
    produce(kafka3.bootstrap_servers, topic, [("a", "1", p) for p in range(PARTITIONS)])
    settings = {"bootstrap.servers": kafka3.bootstrap_servers}
    places = [TopicPartition(topic, p) for p in range(PARTITIONS)]
    knew, knows_not = KafkaAdmin(settings), KafkaAdmin(settings)
    assert dict.fromkeys(places, 1) == knew.ends(places)
    place = down(kafka3, knows_not, topic)
    led = {p: 1 for p in places if p != place}
    for one in (knew, knows_not):  # one of them asks the dead broker, and gets an answer that is none
        assert led == one.ends(places)
        until(lambda one=one: {place} == one.leaderless([topic]), "both know it")  # type: ignore[misc]
        assert led == one.ends(places)
        with pytest.raises(ClusterUnreachable):
            one.high_watermarks(places)
    assert (1,) == knew.topics([topic])[topic].leaderless
    consumer = KafkaConsumer(settings, "t", "t")
    for ask in (lambda: consumer.bounds(place), lambda: consumer.bounds_of(places)):
        with pytest.raises(NoLeader, match=r"\[1\]"):
            ask()
    with pytest.raises(TopicMissing):
        consumer.assign({TopicPartition(topic, 7): 0})
    consumer.assign(dict.fromkeys(places, 0))
    found: list[int] = []
    until(lambda: found.extend(m.partition() for m in consumer.poll(10, 0.5)) or len(found) == 2, "those that are led are read")
    assert {0, 2} == set(found)
    back(kafka3)
    until(lambda: found.extend(m.partition() for m in consumer.poll(10, 0.5)) or len(found) == 3, "the third is read, too")
    consumer.close()


def test_it_is_told_and_waited_for_and_each_record_counts_once(kafka3: LocalKafka, tmp_path: Path, unique: str) -> None:
    topic = single(kafka3, f"{unique}-single")
    job = Job(kafka3.bootstrap_servers, tmp_path, unique, partitions=PARTITIONS, inputs=[{"topic": topic, "value": "string"}])
    looks = KafkaAdmin({"bootstrap.servers": kafka3.bootstrap_servers})

    def feed(word: str, *partitions: int) -> None:
        produce(kafka3.bootstrap_servers, topic, [(None, word.encode(), p) for p in partitions for _ in range(50)])

    def counted(word: str) -> int:
        return len([r for r in read_all(kafka3.bootstrap_servers, job.output) if r.key == word.encode()])

    def log() -> str:
        return (tmp_path / "run.log").read_text()

    feed("before", 0, 1, 2)
    with job.running("--local") as running:
        until(lambda: 150 == counted("before"), "what was there is read")
        place = down(kafka3, looks, topic)
        why = f"{place}: no broker leads this partition, so it cannot be read"

        running.until(lambda status: any(why in t["reason"] for t in status["tasks"]))
        feed("during", 0, 2)
        until(lambda: 100 == counted("during"), "the others go on")
        assert f"{why}: the broker that holds it is down. Start the broker that holds it." in log()

        for verb in (("validate", str(job.file), "--connect"), ("topics", str(job.file)), ("plan", str(job.file))):
            told = job.command(*verb)
            assert (4, True) == (told.returncode, "no broker leads" in told.stdout + told.stderr), told
        behind = job.command("lag", str(job.file))
        assert (0, True) == (behind.returncode, f"no broker leads {place}" in behind.stderr)

        os.kill(running.until_running()["containers"][0]["pid"], signal.SIGKILL)
        until(lambda: log().count("killed by SIGKILL") == 1, "its end is told")
        back(kafka3)
        feed("after", 0, 1, 2)
        until(lambda: 150 == counted("after"), "it goes on by itself")
        assert 0 == running.stop()
    assert "SZ302" not in log()
    assert 400 == sum(job.stored().values())
    words = [r.key for r in read_all(kafka3.bootstrap_servers, job.output)]
    assert (150, 100, 150) == (words.count(b"before"), words.count(b"during"), words.count(b"after"))

    down(kafka3, looks, topic)
    refused = job.run_to_end()
    assert (4, True) == (refused.returncode, f"error[SZ307]: no broker leads {place}" in refused.stderr)
    back(kafka3)


def test_a_partition_of_an_output_is_waited_for_and_said_within_the_commit_timeout(kafka3: LocalKafka, tmp_path: Path, unique: str) -> None:
    """The outage lasts for more commits than a container may fail in a row."""
    topic = single(kafka3, f"{unique}-single")
    times = {"commit": {"interval": "200ms", "timeout": "8s"}, "containers": {"count": 1, "lease": "5s", "heartbeat": "1s", "max_restarts": 1}}
    outputs = [{"topic": topic, "key": "string", "value": "integer"}]
    job = Job(kafka3.bootstrap_servers, tmp_path, unique, partitions=PARTITIONS, outputs=outputs, params={"out": topic}, **times)
    looks = KafkaAdmin({"bootstrap.servers": kafka3.bootstrap_servers})

    def log() -> str:
        return (tmp_path / "run.log").read_text()

    job.feed(["before"] * 30)
    with job.running("--local") as running:
        until(lambda: 30 == len(read_all(kafka3.bootstrap_servers, topic)), "what was there is counted")
        place = down(kafka3, looks, topic)
        job.feed(["during"] * 30)
        why = f"{place}: no broker leads this partition, so it cannot be written: the broker that holds it is down"
        running.until(lambda status: all(why in t["reason"] for t in status["tasks"]))
        assert f"{why}. Start the broker that holds it." in log()
        running.until(lambda _: "starts over" in log() or "was aborted" in log())
        first = min(at for failed in ("starts over", "was aborted") if (at := log().find(failed)) >= 0)
        assert log().index(why) < first, "it is said before the first commit has failed"
        threading.Event().wait(7 * 8.0)
        assert 1 == log().count(why), "once"
        back(kafka3)
        running.until(lambda _: 60 == len(read_all(kafka3.bootstrap_servers, topic)))
        assert 0 == running.stop()
    assert "another incarnation" not in log()
    assert {(p, word): 10 for p in range(PARTITIONS) for word in ("before", "during")} == job.stored()
    [summary] = [line for line in log().splitlines() if "restarts" in line or "SZ340" in line]
    assert summary.startswith("records: ")
    assert " commits, 0 restarts; " in summary
