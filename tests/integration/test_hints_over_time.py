"""What hints say over half an hour: of W2 while it is well nothing, of more containers than are needed that they are.

`SAMZAPY_TEST_HINT_MINUTES` is how long W2 is looked at: 2, or the half hour of the page's acceptance. What is told after half an hour only is
looked at if it is 30 at least.
"""

from __future__ import annotations

import inspect
import os
import secrets
import time
from pathlib import Path
from typing import Any

import pytest

from samzapy.coordinator.diagnosing import job_facts
from samzapy.plan.hint_rules import diagnose
from samzapy.plan.lasting_hints import LOOK_S, PATIENT
from tests.bench.place import PARTITIONS, USERS
from tests.bench.tasks import CountAndSum
from tests.figures import Tell
from tests.integration.job import Job
from tests.integration.test_hints import GONE_S, every
from tests.integration.trouble import Feed, Hints, Trouble

MINUTES = float(os.environ.get("SAMZAPY_TEST_HINT_MINUTES", "2"))
PATIENCE_S = LOOK_S * PATIENT["over-provisioned"]
LOOKS = 100  # at the load of the machine meanwhile
RATE = 5000  # records a second, as the other figures of W2 that is not at its limit
VIEW = '{"user": "u1", "amount": 1.5, "page": "/home"}'

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(60 * MINUTES + 900)]


class W2(Job):
    """The benchmark's task, in one container."""

    def __init__(self, servers: str, folder: Path, name: str) -> None:
        sections: dict[str, Any] = {
            "inputs": [{"topic": f"{name}-in", "key": "bytes", "value": "json"}], "outputs": [{"topic": f"{name}-out", "key": "bytes", "value": "json"}],
            "stores": {"sums": {"key": "bytes", "value": "json"}}, "commit": {"interval": "1s"}, "containers": {"count": 1},
        }  # fmt: skip
        super().__init__(servers, folder, name, PARTITIONS, "CountAndSum", **sections)
        (folder / f"task_{name.replace('-', '_')}.py").write_text(f"from typing import Any\n\nfrom samzapy import StreamTask\n\n{inspect.getsource(CountAndSum)}")


def test_w2_that_is_well_gives_none(kafka: str, tmp_path: Path, tell: Tell) -> None:
    job = W2(kafka, tmp_path, f"well-{secrets.token_hex(4)}")
    with job.running("--local") as run:
        run.until_running()
        with Feed(kafka, job.input, every(PARTITIONS, RATE / PARTITIONS, VIEW), keys=USERS):
            hints, loads = Hints(run), list[float]()
            for _ in range(LOOKS):
                hints.none_for(60 * MINUTES / LOOKS)
                loads.append(os.getloadavg()[0])
            status = run.until_running()
    done = sum(t["processed"] for t in status["tasks"])
    tell(f"{MINUTES:g} min, {done:,} records, no hint; load of the machine {min(loads):.1f} to {max(loads):.1f}")
    assert done > 0
    assert status["rates"]["lag"] < 5 * RATE, "it kept up"


@pytest.mark.skipif(60 * MINUTES < PATIENCE_S, reason="takes half an hour: SAMZAPY_TEST_HINT_MINUTES=30")
def test_more_containers_than_are_needed_are_told_after_half_an_hour(kafka: str, tmp_path: Path, tell: Tell) -> None:
    job = Trouble(kafka, tmp_path, f"idle-{secrets.token_hex(4)}")
    with job.running("--local") as run:
        run.until_running()
        with Feed(kafka, job.input, every(4, 5, "wait 1")):
            hints = Hints(run)
            run.until(lambda s: ["over-provisioned"] == [finding.code for finding in diagnose(job_facts(s, {}, [], [], 0))])
            began = time.monotonic()
            hint = hints.within(PATIENCE_S + 60.0, "over-provisioned")
            lasted_s = time.monotonic() - began
            assert lasted_s >= PATIENCE_S - 2 * LOOK_S, "not before"
            assert {"over-provisioned"} == set(hints.seen)
            told = job.of("status").stdout
            assert hint["sentence"] in " ".join(told.split())
            *remedy, number = hint["remedy"].split()
            assert ["samzapy", "scale", "JOB.yaml", "--containers", "1"] == [*remedy, number]
            assert job.command("scale", str(job.file), "--containers", number).returncode == 0
            gone_s = hints.gone_within(GONE_S, besides=set())
            tell(f"told after {lasted_s / 60:.1f} min: {hint['sentence']} {hint['remedy']} (taken back {gone_s:.0f} s after that)")
            assert set() == hints.urgent
