"""A whole job over a bad network: replies to commits are lost, requests are late, lost, or done without anybody hearing of it.

What is compared is exact: every count of every word once in the committed output, and the newest in the changelog. A run in which nothing
was struck proves nothing, so that is checked too. `SAMZAPY_TEST_SEEDS=1,2,3` runs every weather with each of these seeds (half a minute a
run); without it there is one run in which everything goes wrong.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.broker import ends
from tests.integration.job import Job
from tests.integration.test_job import counted, each_once, sentences
from tests.proxy.faults import DelayReply, Hold, LoseReply, Rule, storm
from tests.proxy.proxy import KafkaProxy, Trap
from tests.proxy.wire import Api

pytestmark = pytest.mark.kafka
PARTS, PART = 6, 600

# apis, and of how many of their requests something becomes; InitProducerId comes after a suspicious commit only
WEATHER = {
    "Produce": ({Api.PRODUCE}, 0.2),
    "AddPartitionsToTxn": ({Api.ADD_PARTITIONS_TO_TXN}, 0.3),
    "InitProducerId": ({Api.INIT_PRODUCER_ID, Api.END_TXN}, 0.5),
    "EndTxn": ({Api.END_TXN}, 0.4),
    "Fetch": ({Api.FETCH}, 0.1),
    "all": (set(Api), 0.04),
}
SEEDS = [int(seed) for seed in os.environ.get("SAMZAPY_TEST_SEEDS", "").split(",") if seed]
RUNS = [(weather, seed) for seed in SEEDS for weather in WEATHER] or [("all", 1)]


@pytest.fixture
def proxy(kafka: str) -> Iterator[KafkaProxy]:
    with KafkaProxy(kafka) as made:
        yield made


def a_job(kafka: str, proxy: KafkaProxy, folder: Path, **sections: Any) -> Job:
    """Its containers and its coordinator reach Kafka through the proxy; what looks on from outside does not."""
    impatient = {"socket.timeout.ms": 1500}
    through = {"bootstrap.servers": proxy.bootstrap_servers, "reconnect.backoff.max.ms": 200, "producer": impatient}
    sections.setdefault("commit", {"interval": "100ms", "timeout": "20s"})
    return Job(kafka, folder, f"net-{secrets.token_hex(4)}", kafka=through, **sections)


def run_through(job: Job, proxy: KafkaProxy, rules: Sequence[Rule], of_each_part: Sequence[Rule] = ()) -> list[Trap]:
    """Feed it bit by bit under the rules; then the weather clears, and it catches up and is stopped.

    Rules `of_each_part` have a number of times: they are placed again with each part, and each strikes so often before the next part.
    """
    lines = sentences(PARTS * PART)
    with job.running("--local") as run:
        run.until_running()
        traps = proxy.place_all(rules)
        for part in range(PARTS):
            due = proxy.place_all(of_each_part)
            job.feed(lines[part * PART : (part + 1) * PART])
            for trap in due:
                trap.wait_answered(trap.rule.times or 1)
            run.until_caught_up(ends_of_inputs(job))
        proxy.calm()
        run.until_caught_up(ends_of_inputs(job))
        assert run.stop() == 0
    assert_each_counted_once(job, lines)
    return traps


def assert_each_counted_once(job: Job, lines: list[str]) -> None:
    expected = counted(lines)
    assert expected == job.stored()
    updates = job.updates()
    assert each_once(expected) == set(updates)
    assert len(each_once(expected)) == len(updates), "some were there twice"


@pytest.mark.prove
@pytest.mark.slow
def test_a_late_end_txn_and_a_kill_before_the_next_commit_count_nothing_twice(kafka: str, proxy: KafkaProxy, tmp_path: Path) -> None:
    """What the late EndTxn finds open must not become visible: the container dies before it commits that, and reads it again."""
    job = a_job(kafka, proxy, tmp_path, commit={"interval": "2s", "timeout": "20s"}, containers={"count": 1, "max_restarts": 50})
    client = f"{job.name}-1-container-0"
    lines = sentences(4 * PART)
    with job.running("--local") as run:
        for part in range(0, 4, 2):
            held = proxy.place(Rule(Hold(cut=True), frozenset({Api.END_TXN}), client, times=1))
            pid = run.until_running()["containers"][0]["pid"]
            job.feed(lines[part * PART : (part + 1) * PART])
            held.wait_caught()
            written = proxy.place(Rule(DelayReply(0), frozenset({Api.PRODUCE}), client, times=1))
            job.feed(lines[(part + 1) * PART : (part + 2) * PART])
            written.wait_answered()
            held.release()
            held.wait_answered()
            os.kill(pid, signal.SIGKILL)
            run.until(lambda s, was=pid: s["containers"][0]["pid"] not in (was, None))
        run.until_caught_up(ends_of_inputs(job))
        assert run.stop() == 0
    assert_each_counted_once(job, lines)


def ends_of_inputs(job: Job) -> dict[str, int]:
    return {f"{job.input}[{p}]": end for p, end in ends(job.servers, job.input).items()}


@pytest.mark.slow
def test_replies_to_commits_are_lost(kafka: str, proxy: KafkaProxy, tmp_path: Path) -> None:
    """Two of each part: how many commits a part takes depends on the machine, and a share of them would sometimes be none."""
    job = a_job(kafka, proxy, tmp_path)
    lost = Rule(LoseReply(), frozenset({Api.END_TXN}), f"{job.name}-1-container-", times=2)

    run_through(job, proxy, [], of_each_part=[lost])


@pytest.mark.prove
@pytest.mark.slow
@pytest.mark.parametrize(("weather", "seed"), RUNS)
def test_requests_are_late_or_lost_or_done_unheard(kafka: str, proxy: KafkaProxy, tmp_path: Path, weather: str, seed: int) -> None:
    apis, chance = WEATHER[weather]
    job = a_job(kafka, proxy, tmp_path)

    traps = run_through(job, proxy, storm(seed, apis, chance, longest_s=2.0))

    assert [] == [trap for trap in traps if not trap.caught], "did not strike"
