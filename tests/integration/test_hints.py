"""Hints of real jobs: each cause gives exactly its hint within a minute, nothing else to act on at once, and none is left a minute and a half after.

`SAMZAPY_TEST_HEALTHY_MINUTES=30`: how long the healthy job is watched; without it two minutes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from samzapy.coordinator.diagnosing import job_facts
from samzapy.dev.spark import LocalSpark
from samzapy.plan.finding import Finding
from samzapy.plan.hint_rules import diagnose
from tests.figures import Tell
from tests.integration.job import Job, Running
from tests.integration.trouble import Feed, Hints, Throttled, Trouble
from tests.proxy.faults import Hold, Rule
from tests.proxy.proxy import KafkaProxy
from tests.proxy.wire import Api
from tests.recovery.test_open_transactions import Stranger

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(900)]
TOLD_S, GONE_S = 60.0, 90.0
HEALTHY_S = 60 * float(os.environ.get("SAMZAPY_TEST_HEALTHY_MINUTES", "2"))
Rates = Mapping[int, tuple[float, str]]
EASY: Rates = dict.fromkeys(range(4), (60.0, "wait 1"))


@dataclass(frozen=True)
class Staged:
    """A cause: what is fed while it lasts, and afterwards."""

    code: str
    rates: Rates
    after: Rates
    says: str
    sections: Mapping[str, Any]


def every(partitions: int, rate: float, value: str) -> Rates:
    return dict.fromkeys(range(partitions), (rate, value))


CASES = [
    # Partition 3 gets 60 % of the records; each takes 4 ms and more.
    Staged("skew", {**every(6, 40, "wait 4"), 3: (300.0, "wait 4")}, every(6, 40, "wait 1"), "Partition 3 gets", {"partitions": 6, "containers": {"count": 3}}),
    Staged("slow-task", {**every(4, 60, "wait 2"), 2: (60.0, "wait 8")}, every(4, 60, "wait 2"), "Partition 2 needs", {}),
    Staged("commit-heavy", every(4, 60, "keys 2000"), EASY, "of container", {"commit": {"interval": "100ms"}}),
]


@contextlib.contextmanager
def fed(job: Job, rates: Rates, *, servers: str = "", where: tuple[str, ...] = ("--local",)) -> Iterator[tuple[Running, Feed, Hints]]:
    """The job runs, and is fed."""
    with job.running(*where) as run:
        run.until_running()
        with Feed(servers or job.servers, job.input, rates) as feed:
            yield run, feed, Hints(run)


@pytest.fixture
def staged(kafka: str, tmp_path: Path) -> Callable[..., Trouble]:
    return lambda **more: Trouble(kafka, tmp_path, f"hints-{secrets.token_hex(4)}", **more)


def over(hints: Hints, code: str, tell: Tell, urgent: bool) -> None:
    """The cause is gone: so is the hint soon, and nothing else was told meanwhile that asks for an act. A search for a deadly record goes on for
    minutes after a crash, and is told as long as it does."""
    gone_s = hints.gone_within(GONE_S, besides={"searching"})
    tell(f"{code}: {hints.seen[code]['sentence']} (taken back {gone_s:.0f} s after the cause; told in all: {', '.join(sorted(hints.seen))})")
    assert ({code} if urgent else set()) == hints.urgent


@pytest.mark.parametrize("case", CASES, ids=[case.code for case in CASES])
def test_what_is_fed_gives_its_hint(staged: Callable[..., Trouble], tell: Tell, case: Staged) -> None:
    job = staged(**case.sections)
    with fed(job, case.rates) as (run, feed, hints):
        hint = hints.within(TOLD_S, case.code)
        assert case.says in hint["sentence"]
        feed.rates = case.after
        run.until(lambda s: s["rates"]["lag"] is not None and s["rates"]["lag"] < 100)  # what came while it lasted is done
        over(hints, case.code, tell, hint["severity"] == "act")


def test_one_key_of_which_there_are_many_records(staged: Callable[..., Trouble], tell: Tell) -> None:
    job = staged(partitions=6, containers={"count": 3})
    with fed(job, {**every(6, 40, "wait 4"), 3: (300.0, "wait 4")}) as (_, feed, hints):
        feed.hot = 7
        hint = hints.within(TOLD_S, "hot-key")
        assert "of the records of Partition 3, which gets" in hint["sentence"]
        feed.rates = every(6, 40, "wait 1")
        over(hints, "hot-key", tell, urgent=True)


def test_too_few_containers_and_the_number_that_is_proposed_keeps_up(staged: Callable[..., Trouble], tell: Tell) -> None:
    job = staged(partitions=8)
    with fed(job, every(8, 150, "wait 2")) as (run, _, hints):
        hint = hints.within(TOLD_S, "under-provisioned")
        wanted = hint["remedy"].rpartition(" ")[2]
        assert job.command("scale", str(job.file), "--containers", wanted).returncode == 0
        run.until(lambda s: s["state"] == "RUNNING" and len(s["containers"]) == int(wanted) and s["rates"]["lag"] == 0)
        tell(f"{wanted} containers keep up: {hint['evidence']}")
        over(hints, "under-provisioned", tell, urgent=True)


@pytest.mark.spark
def test_a_host_whose_processor_is_throttled(staged: Callable[..., Trouble], java_home: str, tmp_path: Path, tell: Tell) -> None:
    cluster = LocalSpark.start(directory=tmp_path / "spark", workers=3, cores=1, tied=True)
    try:
        job = staged(partitions=6, containers={"count": 3}, spark={"conf": {"spark.executor.memory": "512m"}})
        with fed(job, every(6, 40, "wait 2"), where=("--master", cluster.url)) as (run, _, hints):
            homes = {c["host"]: c["pid"] for c in run.until_running()["containers"]}
            assert set(cluster.hosts) == set(homes)
            slow = cluster.hosts[1]
            with Throttled(lambda: cluster.processes(slow)):
                hint = hints.within(TOLD_S, "slow-host")
            assert {"host": slow} == hint["evidence"]
            over(hints, "slow-host", tell, urgent=False)
            assert homes == {c["host"]: c["pid"] for c in run.until_running()["containers"]}, "no container was lost"
    finally:
        cluster.stop()


def test_brokers_that_decide_late(kafka: str, tmp_path: Path, tell: Tell) -> None:
    with KafkaProxy(kafka) as proxy:
        job = Trouble(proxy.bootstrap_servers, tmp_path, f"hints-{secrets.token_hex(4)}", commit={"interval": "500ms"})
        with fed(job, every(4, 40, "wait 1"), servers=kafka) as (_, _, hints):
            proxy.place(Rule(Hold(1.0), frozenset({Api.END_TXN})))
            hints.within(TOLD_S, "broker-slow")
            proxy.calm()
            over(hints, "broker-slow", tell, urgent=False)


def test_a_strangers_open_transaction(staged: Callable[..., Trouble], tell: Tell) -> None:
    job = staged()
    with fed(job, EASY) as (_, _, hints):
        stranger = Stranger(job.servers, job.input, 2, b"wait 1")
        hint = hints.within(TOLD_S, "stranger")
        assert f"Partition 2 waits: {job.input}[2]" in hint["sentence"]
        stranger.commit()
        over(hints, "stranger", tell, urgent=True)


def test_a_container_that_crashes_again_and_again(staged: Callable[..., Trouble], tell: Tell) -> None:
    job = staged(on_error={"then": "skip"})  # with `stop`, a quick machine finds the record and ends the job before a hint is told
    with fed(job, EASY) as (_, _, hints):
        job.order.write_text("crash")
        hint = hints.within(TOLD_S, "flapping")
        assert "exit code 3" in hint["sentence"]
        job.order.write_text("")
        over(hints, "flapping", tell, urgent=True)


def test_memory_that_grows_without_end(staged: Callable[..., Trouble], tell: Tell) -> None:
    job = staged(containers={"count": 2, "memory": "64MiB"})
    with fed(job, every(4, 40, "wait 1")) as (_, _, hints):
        job.order.write_text("leak")
        hint = hints.within(TOLD_S, "memory")
        assert "grows by" in hint["sentence"]
        job.order.write_text("")
        over(hints, "memory", tell, urgent=False)


@pytest.mark.timeout(900 + HEALTHY_S)
def test_a_healthy_job_gives_none(staged: Callable[..., Trouble], tell: Tell) -> None:
    with fed(staged(), every(4, 120, "wait 2")) as (run, _, hints):
        hints.none_for(HEALTHY_S)
        processed = sum(task["processed"] for task in run.job.status()["tasks"])
    assert processed > HEALTHY_S, "it had work to do"
    tell(f"{processed:,} records in {HEALTHY_S / 60:.0f} min, no hint")


def test_a_job_with_more_containers_than_it_needs(staged: Callable[..., Trouble], tell: Tell) -> None:
    """What its status says is a case for the rule, and after the remedy no more. That it is told after half an hour: tests/unit/coordinator."""

    def found(status: dict[str, Any]) -> list[Finding]:
        return diagnose(job_facts(status, {}, [], [], 0))

    job = staged()
    with fed(job, every(4, 5, "wait 1")) as (run, _, hints):
        (finding,) = found(run.until(lambda s: ["over-provisioned"] == [finding.code for finding in found(s)]))
        tell(f"{finding.sentence} {finding.remedy}")
        assert finding.remedy == "samzapy scale JOB.yaml --containers 1"
        hints.now()
        assert job.command("scale", str(job.file), "--containers", "1").returncode == 0
        run.until(lambda s: s["state"] == "RUNNING" and len(s["containers"]) == 1 and s["rates"]["in"] > 10 and [] == found(s))
        hints.now()
        assert "over-provisioned" not in hints.seen, "not before it has lasted for long"
        assert set() == hints.urgent
