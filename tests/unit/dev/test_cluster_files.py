"""What lies in a directory that is named as a development cluster's may be anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.dev.kafka import LocalKafka
from samzapy.dev.spark import LocalSpark


@pytest.mark.parametrize("cluster", [LocalKafka, LocalSpark])
@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"port": 1e999, "nodes": [7], "cluster_id": ""}', "x" * (2 << 20)])
def test_a_file_that_describes_no_cluster_is_named(cluster: type[LocalKafka] | type[LocalSpark], text: str, tmp_path: Path) -> None:
    assert cluster.at(tmp_path) is None
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"cluster\.json was not written by samzapy"):
        cluster.at(tmp_path)
