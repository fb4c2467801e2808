"""What lies in a directory that is named as a development cluster's may be anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.dev.kafka import LocalKafka
from samzapy.dev.settings import Node
from samzapy.dev.spark import LocalSpark


@pytest.mark.parametrize("cluster", [LocalKafka, LocalSpark])
@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"port": 1e999, "nodes": [7], "cluster_id": ""}', "x" * (2 << 20)])
def test_a_file_that_describes_no_cluster_is_named(cluster: type[LocalKafka] | type[LocalSpark], text: str, tmp_path: Path) -> None:
    assert cluster.at(tmp_path) is None
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"cluster\.json was not written by samzapy"):
        cluster.at(tmp_path)


def test_a_secured_one_whose_start_was_interrupted_does_not_answer(tmp_path: Path) -> None:
    """Its certificates come after its description."""
    made = LocalKafka(tmp_path, "cluster", [Node(1, 9092, 19092)], True)
    assert not made.is_answering()
