"""`samzapy dev kafka` with real brokers: start, again, stop, restart with the data, deaths, ports that are taken."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.cli.dev import app
from samzapy.dev.kafka import LocalKafka
from samzapy.kafka.admin import KafkaAdmin
from samzapy.ports import TopicSpec
from tests.broker import create_topic, produce, read_all

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def refusal(verb: str, directory: Path, *options: str) -> str:
    """What `samzapy` says, in one line, when it refuses; nothing goes to stdout."""
    result = dev_kafka(verb, directory, *options)
    assert isinstance(result.exception, ConfigurationError)
    assert "" == result.stdout
    assert "\n" not in str(result.exception)
    return str(result.exception)


def dev_kafka(verb: str, directory: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["kafka", verb, "--dir", str(directory), *options])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory for a cluster, which is stopped whatever the test did."""
    yield tmp_path / "kafka"
    cluster = LocalKafka.at(tmp_path / "kafka")
    if cluster is not None:
        cluster.stop(timeout_s=0)


@pytest.mark.prove
def test_start_answers_and_data_outlives_stop(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")  # it runs for seconds
    started = dev_kafka("start", place, "--port", "0")
    assert 0 == started.exit_code, started.stderr
    bootstrap = started.stdout.strip()
    create_topic(bootstrap, "kept", 2)
    produce(bootstrap, "kept", [("k", "before", 1)])

    again = dev_kafka("start", place)
    assert (0, bootstrap) == (again.exit_code, again.stdout.strip())
    told = json.loads(dev_kafka("status", place, "--json").stdout)
    assert (True, bootstrap, 1) == (told["running"], told["bootstrap_servers"], len(told["brokers"]))

    assert 0 == dev_kafka("stop", place).exit_code
    assert 3 == dev_kafka("status", place).exit_code
    assert 0 == dev_kafka("stop", place).exit_code

    assert bootstrap == dev_kafka("start", place).stdout.strip()
    produce(bootstrap, "kept", [("k", "after", 1)])
    assert [b"before", b"after"] == [record.value for record in read_all(bootstrap, "kept")]


@pytest.mark.prove
def test_a_broker_that_was_killed_is_seen_and_started_again(place: Path) -> None:
    cluster = LocalKafka.start(port=0, directory=place, overrides={"transaction.max.timeout.ms": "60000"})
    assert "transaction.max.timeout.ms=60000\n" in (place / "node-1.properties").read_text()
    create_topic(cluster.bootstrap_servers, "kept")
    produce(cluster.bootstrap_servers, "kept", [("k", "v")])

    os.kill(cluster.pids[1], signal.SIGKILL)
    assert cluster.server(cluster.nodes[0]).ended(30)

    assert (3, f"not running ({place})\n") == (dev_kafka("status", place).exit_code, dev_kafka("status", place).stdout)
    (place / "node-1.pid").write_text(f"{os.getpid()}\n")
    assert {} == cluster.pids, "the pid of another program was taken for the broker"
    restarted = LocalKafka.start(directory=place)
    assert (cluster.cluster_id, cluster.bootstrap_servers) == (restarted.cluster_id, restarted.bootstrap_servers)
    assert [b"v"] == [record.value for record in read_all(restarted.bootstrap_servers, "kept")]


@pytest.mark.prove
def test_three_brokers_replicate_and_start_brings_back_the_one_that_died(place: Path) -> None:
    cluster = LocalKafka.start(port=0, brokers=3, directory=place)
    assert 3 == len(cluster.pids)
    create_topic(cluster.bootstrap_servers, "kept", 3)
    admin = KafkaAdmin({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(5):  # what was made is known to whichever broker is asked next
        admin.create([TopicSpec(f"made-{number}-{part}", 6) for part in range(5)])
        assert {6} == {facts.partitions for facts in admin.topics(f"made-{number}-{part}" for part in range(5)).values()}
    admin.close()

    cluster.kill_broker(2)
    produce(cluster.bootstrap_servers, "kept", [("k", "v", 0), ("k", "v", 1), ("k", "v", 2)])
    partly = dev_kafka("status", place)
    assert 3 == partly.exit_code
    assert "2 of 3 brokers run" in partly.stdout

    survivors = cluster.pids
    cluster.pause_broker(3)
    cluster.resume_broker(3)
    cluster.start_broker(2)
    restarted = LocalKafka.start(directory=place)
    assert survivors.items() < restarted.pids.items()
    assert restarted.is_answering()
    with pytest.raises(ConfigurationError, match="no broker 4"):
        restarted.kill_broker(4)
    assert 3 == len(read_all(restarted.bootstrap_servers, "kept"))
    assert "a cluster of 3, not of 1 brokers" in refusal("start", place, "--brokers", "1")


def test_a_port_that_is_taken_is_named_before_anything_is_done(place: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        said = refusal("start", place, "--port", str(port))

    assert f"port {port} is in use by another program. Stop it, or take any free port: samzapy dev kafka start --port 0" in said
    assert LocalKafka.at(place) is None


@pytest.mark.parametrize(("options", "complaint"), [(["--brokers", "0"], "--brokers 0"), (["--port", "70000"], "--port 70000")])
def test_what_cannot_be_is_refused_in_one_line(place: Path, options: list[str], complaint: str) -> None:
    assert complaint in refusal("start", place, *options)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert f"{tmp_path}/file/kafka cannot hold a Kafka: it is no directory." in refusal("start", tmp_path / "file" / "kafka")


def test_settings_that_kafka_refuses_are_told_in_one_line(place: Path) -> None:
    with pytest.raises(ClusterUnreachable, match=r"could not be made ready for Kafka: .*no\.such\.number.*num\.io\.threads") as caught:
        LocalKafka.start(port=0, directory=place, overrides={"num.io.threads": "no.such.number"})

    assert "\n" not in str(caught.value)


def test_a_broker_that_cannot_start_says_why(place: Path) -> None:
    with pytest.raises(ClusterUnreachable, match=r"Kafka ended while starting: .*no\.such\.Reporter.*node-1\.log") as caught:
        LocalKafka.start(port=0, directory=place, overrides={"metric.reporters": "no.such.Reporter"}, tied=True)

    assert "\n" not in str(caught.value)
    cluster = LocalKafka.at(place)
    assert cluster is not None
    assert {} == cluster.pids
