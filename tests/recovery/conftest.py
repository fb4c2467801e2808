"""What the long proofs share: a Spark cluster of three hosts with two slots each, and the size of the state."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from samzapy.dev.spark import LocalSpark


@pytest.fixture(scope="session")
def keys() -> int:
    """How many keys the proofs of restores fill their stores with."""
    return int(os.environ.get("KEYS", "100000"))


@pytest.fixture(scope="session")
def cluster(java_home: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSpark]:
    cluster = LocalSpark.start(directory=tmp_path_factory.mktemp("spark"), workers=3, cores=2, tied=True)
    try:
        yield cluster
    finally:
        cluster.stop()
