"""The one broker of a program of three stages is killed and started again, several times, with records in every stage: nothing is lost or counted twice."""

from __future__ import annotations

import random
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from samzapy.dev.kafka import LocalKafka
from tests.figures import Tell
from tests.integration.random_job import RandomJob
from tests.recovery.test_a_broker_is_down import LONG_S, back

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.slow, pytest.mark.timeout(1200)]
STAGED, DEATHS, RECORDS = 7, 4, 150
LATEST_S, LONGEST_S = 2.0, 6.0


@pytest.fixture
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    """A broker of the test's own."""
    cluster = LocalKafka.start(port=0, directory=tmp_path_factory.mktemp("one"), tied=True, timeout_s=LONG_S)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_program_is_exact_though_the_broker_dies_and_comes_back(alone: LocalKafka, tmp_path: Path, tell: Tell, guarantee: str) -> None:
    job = RandomJob(alone.bootstrap_servers, tmp_path, f"broker-{secrets.token_hex(4)}", STAGED, guarantee=guarantee)
    draw, pause, died = random.Random(job.name), threading.Event(), 0
    ended = 0
    for _ in range(DEATHS):  # a run that gives up is begun again, as an init system would
        with job.running("--local") as run:
            while died < DEATHS and run.process.poll() is None:
                job.send(RECORDS)
                pause.wait(draw.random() * LATEST_S)
                alone.kill_broker(1)
                died += 1
                pause.wait(draw.random() * LONGEST_S)
                back(alone, 1)
            if run.process.poll() is None:
                job.send(RECORDS)
                try:
                    run.until_caught_up(job.ends())
                except AssertionError:
                    if run.process.poll() is None:
                        raise
                else:  # one that was giving up already is begun again, too
                    assert run.stop() == 0
                    break
        ended += 1
    tell(f"{guarantee}: the broker died {died} times, the run ended and was begun again {ended} times, {len(job.sent)} records")
    assert died == DEATHS
    assert [] == job.problems_at_the_end()
