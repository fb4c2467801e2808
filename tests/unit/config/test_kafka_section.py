"""The `kafka` section: what would pass here and fail, or silently do something else, once the job runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.config.errors import ConfigError, Problem
from samzapy.config.load import load_job
from samzapy.kafka.client import check_properties

HEAD = "job: j\ntask: cfg_tasks:Good\ninputs: [{topic: a}]\n"


def problems(tmp_path: Path, kafka: str, more: str = "") -> list[Problem]:
    file = tmp_path / "job.yaml"
    file.write_text(f"{HEAD}kafka: {kafka}\n{more}", encoding="utf-8")
    try:
        load_job([file], environ={}, check_client=check_properties)
    except ConfigError as error:
        return error.problems
    return []


@pytest.mark.parametrize(
    ("kafka", "column", "path", "message", "hint"),
    [
        ("{}", 1, "kafka.bootstrap.servers", "missing required key 'bootstrap.servers'", "localhost:9092"),
        ("{bootstrap.servers: h, metadata.broker.list: i}", 31, "kafka.metadata.broker.list", "set by samzapy itself", "another name of bootstrap.servers"),
        (
            "{bootstrap.servers: h, producer: {metadata.broker.list: i}}", 42, "kafka.producer.metadata.broker.list", "set by samzapy itself",
            "another name of bootstrap.servers",
        ),
        ("{bootstrap.servers: h, default.topic.config: x}", 31, "kafka.default.topic.config", "set by samzapy itself", "in `kafka` itself"),
        ("{bootstrap.servers: h, test.mock.num.brokers: 3}", 31, "kafka.test.mock.num.brokers", "set by samzapy itself", "simulated ones"),
        ("{bootstrap.servers: h, retries: 0}", 40, "kafka.retries", "must be set >= 1", "CONFIGURATION.md"),
        ("{bootstrap.servers: h, linger.ms: soon}", 42, "kafka.linger.ms", "queue.buffering.max.ms", "CONFIGURATION.md"),
        ("{bootstrap.servers: h, message.max.bytes: 4294968296}", 50, "kafka.message.max.bytes", "too large for Kafka's client", "2147483647"),
        ("{bootstrap.servers: h, socket.timeout.ms: 60001}", 50, "kafka.socket.timeout.ms", "longer than commit.timeout (1m)", "at most 60000"),
        (
            "{bootstrap.servers: h, producer: {socket.timeout.ms: 90000}}", 61, "kafka.producer.socket.timeout.ms",
            "longer than commit.timeout (1m)", "at most 60000",
        ),
        ("{bootstrap.servers: h, linger.ms: 10000}", 42, "kafka.linger.ms", "shorter than containers.lease (10s)", "a few milliseconds"),
        ("{bootstrap.servers: h, producer: {queue.buffering.max.ms: 60000}}", 66, "kafka.producer.queue.buffering.max.ms", "shorter than", "milliseconds"),
        ("{bootstrap.servers: h, queue.buffering.max.kbytes: 1}", 59, "kafka.queue.buffering.max.kbytes", "too small a queue", "at least 2048"),
        ("{bootstrap.servers: h, queue.buffering.max.messages: 1}", 61, "kafka.queue.buffering.max.messages", "is too small: sending would wait", "at least 1000"),
        ("{bootstrap.servers: h, topic.blacklist: out}", 31, "kafka.topic.blacklist", "set by samzapy itself", "would wait for them"),
        ("{bootstrap.servers: h, connections.max.idle.ms: 1}", 56, "kafka.connections.max.idle.ms", "is too small: the client would close", "at least 10000"),
        (
            "{bootstrap.servers: h, consumer: {connections.max.idle.ms: 999}}", 67, "kafka.consumer.connections.max.idle.ms",
            "is too small: the client would close", "at least 10000",
        ),
    ],
)  # fmt: skip
def test_what_would_fail_later_is_told_now(kafka: str, column: int, path: str, message: str, hint: str, tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, kafka)

    assert (4, column, path) == (problem.line, problem.column, problem.path)
    assert message in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    "kafka",
    [
        "{bootstrap.servers: h, socket.timeout.ms: 60000}",
        "{bootstrap.servers: h, socket.timeout.ms: 90000, producer: {socket.timeout.ms: 30000}}",
        "{bootstrap.servers: h, sasl.username: 12345678901}",
        "{bootstrap.servers: h, message.max.bytes: 1000000000}",
        "{bootstrap.servers: h, linger.ms: 9999}",
        "{bootstrap.servers: h, linger.ms: 0.5, queue.buffering.max.kbytes: 2048}",
        "{bootstrap.servers: h, queue.buffering.max.messages: 0, connections.max.idle.ms: 0}",
        "{bootstrap.servers: h, queue.buffering.max.messages: 1000, producer: {connections.max.idle.ms: 10000}}",
    ],
)
def test_what_works_passes(kafka: str, tmp_path: Path) -> None:
    assert [] == problems(tmp_path, kafka)


def test_the_socket_timeout_follows_the_jobs_own_commit_timeout(tmp_path: Path) -> None:
    kafka = "{bootstrap.servers: h, socket.timeout.ms: 90000}"

    assert [] == problems(tmp_path, kafka, "commit: {timeout: 90s}\n")
    assert ["kafka.socket.timeout.ms"] == [p.path for p in problems(tmp_path, kafka, "commit: {timeout: 89s}\n")]


def test_numbers_that_kafkas_client_and_spark_read_keep_their_spelling(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    spark = "spark: {conf: {spark.app.version: 3.10, spark.memory.fraction: 0.50}}\nparams: {x: 1.10}\n"
    file.write_text(f"{HEAD}kafka: {{bootstrap.servers: h, client.rack: 1.10, linger.ms: 0.50, producer: {{client.rack: 1e5}}, retries: 3}}\n{spark}")
    document = load_job([file], ["kafka.consumer.client.rack=2.10"], environ={}, check_client=check_properties).document
    assert document["kafka"] == {
        "bootstrap.servers": "h", "client.rack": "1.10", "linger.ms": "0.50", "producer": {"client.rack": "1e5"}, "retries": 3,
        "consumer": {"client.rack": "2.10"},
    }  # fmt: skip
    assert document["spark"]["conf"] == {"spark.app.version": "3.10", "spark.memory.fraction": "0.50"}
    assert document["params"] == {"x": 1.1}
