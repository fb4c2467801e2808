"""The Metadata question and its answer, byte by byte."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy.dev.probe import Cluster, metadata_request, read_metadata


def string(text: str | None) -> bytes:
    return struct.pack(">h", -1) if text is None else struct.pack(">h", len(text.encode())) + text.encode()


def answer(nodes: list[tuple[int, str, int, str | None]], cluster_id: str | None, controller: int, correlation: int = 1) -> bytes:
    brokers = b"".join(struct.pack(">i", node) + string(host) + struct.pack(">i", port) + string(rack) for node, host, port, rack in nodes)
    return struct.pack(">ii", correlation, len(nodes)) + brokers + string(cluster_id) + struct.pack(">i", controller) + struct.pack(">i", 0)


def test_the_question_asks_for_brokers_and_no_topic() -> None:
    assert bytes.fromhex("00000015 0003 0002 00000001 0007") + b"samzapy" + bytes(4) == metadata_request()


def test_the_answer_names_brokers_cluster_and_controller() -> None:
    reply = answer([(1, "127.0.0.1", 9092, None), (2, "localhost", 9093, "r")], "abc", 2)

    assert Cluster("abc", frozenset({1, 2}), 2) == read_metadata(reply)
    assert (("127.0.0.1", 9092), ("localhost", 9093)) == read_metadata(reply).addresses


def test_a_cluster_without_a_controller_says_so() -> None:
    assert Cluster("abc", frozenset(), None) == read_metadata(answer([], "abc", -1))


def test_an_answer_to_another_question_is_none() -> None:
    with pytest.raises(ValueError, match="not the answer"):
        read_metadata(answer([], "abc", 1, correlation=2))


@given(st.integers(0, 40))
def test_an_answer_cut_short_is_none(size: int) -> None:
    whole = answer([(1, "127.0.0.1", 9092, None)], "abc", 1)[:-4]

    with pytest.raises(ValueError, match="cut short"):
        read_metadata(whole[: min(size, len(whole) - 1)])
