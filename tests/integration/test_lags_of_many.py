"""The lag of a job with very many input partitions: how soon what was sent shows in it, for all of them. `SAMZAPY_TEST_PARTITIONS` says of how many.

2,000 by default. 10,000 need a broker with more memory than `samzapy dev kafka` gives: `SAMZAPY_TEST_PARTITIONS=10000 _JAVA_OPTIONS=-Xmx2g`.
"""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import Any

import pytest

from tests.broker import create_topic, delete_topic, produce
from tests.figures import Tell
from tests.integration.job import Job

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(1500)]
PARTITIONS = int(os.environ.get("SAMZAPY_TEST_PARTITIONS", "2000"))
TASKS, CONTAINERS, ROUNDS, WITHIN_S = 1000, 2, 4, 5.0


def test_the_lag_of_every_partition_is_renewed_within_five_seconds(kafka: str, tmp_path: Path, tell: Tell) -> None:
    """The job is paused, so all that is sent stays to be read; a record into each partition at once, and its lag is that of all of them."""
    name = f"many-{secrets.token_hex(4)}"
    topics = [f"{name}-{n}" for n in range(PARTITIONS // TASKS)]
    sections: dict[str, Any] = {
        "inputs": [{"topic": topic, "value": "string"} for topic in topics], "outputs": [], "stores": {}, "containers": {"count": CONTAINERS},
    }  # fmt: skip
    job = Job(kafka, tmp_path, name, 1, "Silent", **sections)
    try:
        for topic in topics:
            create_topic(kafka, topic, TASKS)
        began = time.monotonic()
        with job.running("--local") as run:
            run.until_running()
            tell(f"{PARTITIONS:,} partitions, {TASKS:,} tasks in {CONTAINERS} containers: RUNNING after {time.monotonic() - began:.0f} s")
            assert job.of("pause").returncode == 0
            run.until(lambda s: s["state"] == "PAUSED" and s["rates"]["lag"] == 0)
            took = []
            for n in range(1, ROUNDS + 1):
                for topic in topics:
                    produce(kafka, topic, [(None, b"a record", partition) for partition in range(TASKS)])
                sent = time.monotonic()
                run.until(lambda s, n=n: s["rates"]["lag"] == n * PARTITIONS and all(t["lag"] == n * len(topics) for t in s["tasks"]))  # type: ignore[misc]
                took.append(time.monotonic() - sent)
        tell(f"from the last of {PARTITIONS:,} records, one to a partition, until the status counts them all: {', '.join(f'{s:.1f}' for s in took)} s")
        assert max(took[1:]) <= WITHIN_S, "in the first round the broker makes the files of so many partitions"
    finally:
        for topic in topics:
            delete_topic(kafka, topic)
