"""What goes into a local broker's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.dev.settings import Node, node_settings, properties_text

ONE = [Node(1, 9092, 19092)]
FIVE = [Node(i, 9091 + i, 19091 + i) for i in range(1, 6)]


@pytest.mark.parametrize(("nodes", "replicas", "in_sync"), [(ONE, "1", "1"), (FIVE[:2], "2", "1"), (FIVE[:3], "3", "2"), (FIVE, "3", "2")])
def test_replication_follows_the_number_of_brokers_up_to_three(nodes: list[Node], replicas: str, in_sync: str) -> None:
    settings = node_settings(nodes[0], nodes, Path("d"), {})

    factors = {value for key, value in settings.items() if key.endswith("replication.factor")}
    minima = {value for key, value in settings.items() if key.endswith(("min.isr", "min.insync.replicas"))}
    assert ({replicas}, {in_sync}) == (factors, minima)


def test_only_loopback_is_listened_on() -> None:
    settings = node_settings(FIVE[1], FIVE, Path("d"), {})

    assert "PLAINTEXT://127.0.0.1:9093,CONTROLLER://127.0.0.1:19093" == settings["listeners"]
    assert 5 == settings["controller.quorum.voters"].count("@127.0.0.1:")


def test_overrides_win() -> None:
    assert "64" == node_settings(ONE[0], ONE, Path("d"), {"num.io.threads": "64"})["num.io.threads"]


def test_properties_are_written_sorted_with_backslashes_doubled() -> None:
    assert "a=x\\\\y\nb=2\n" == properties_text({"b": "2", "a": "x\\y"})


def test_properties_are_ascii_as_java_reads_them() -> None:
    assert "log.dirs=/data/m\\u00fcller/\\ud83d\\ude00\n" == properties_text({"log.dirs": "/data/müller/😀"})
