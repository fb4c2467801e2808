"""`samzapy jobs` finds the jobs of a cluster by their coordinator topics, and says of each what is known."""

from __future__ import annotations

import sys

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.cli.jobs import jobs_of
from samzapy.model.names import Job, job_of_coordinator_topic
from samzapy.model.ownership import LEASE_KEY, LeaseRecord
from samzapy.ports import TopicSpec
from samzapy.testing.manual_clock import ManualClock
from samzapy.testing.memory_log import MemoryCluster, MemoryLog

jobs = sys.modules["samzapy.cli.jobs"]


def test_each_job_is_listed_with_what_its_topic_says() -> None:
    log = MemoryLog(MemoryCluster(ManualClock()))
    leases = {
        Job("orders", "1"): LeaseRecord(run_id="r1", url="", host="h", pid=1, process_start="s", renewed_ms=1000, ended=True, outcome="FAILED", error="no room"),
        Job("a_b", "x9"): LeaseRecord(run_id="r2", url="http://127.0.0.1:9", host="h", pid=1, process_start="s", renewed_ms=2000),
        Job("new", "1"): None,
    }
    log.admin().create([TopicSpec(t, 1, {}) for t in ("orders", "__samza_checkpoint_orders_1", *(j.coordinator_topic for j in leases))])
    producer = log.plain_producer("test")
    for job, lease in leases.items():
        if lease is not None:
            producer.send(job.coordinator_topic, lease.to_bytes(), LEASE_KEY, 0)
    producer.flush()
    found = {(one["job"], one["id"]): one for one in jobs_of(log)}
    assert {("orders", "1"), ("a_b", "x9"), ("new", "1")} == found.keys()
    assert ("FAILED", "no room", 1000) == tuple(found["orders", "1"][name] for name in ("state", "error", "heard_ms"))
    assert ("NOT ANSWERING", None) == (found["a_b", "x9"]["state"], found["a_b", "x9"]["url"])
    assert "NEVER RAN" == found["new", "1"]["state"]


def test_a_strange_answer_of_one_job_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(method: str, url: str, timeout_s: float) -> dict[str, object]:
        raise ConfigurationError("request not understood", "")

    monkeypatch.setattr(jobs, "http_json", answer)
    log, job = MemoryLog(MemoryCluster(ManualClock())), Job("orders", "1")
    log.admin().create([TopicSpec(job.coordinator_topic, 1, {})])
    lease = LeaseRecord(run_id="r", url="http://127.0.0.1:9", host="h", pid=1, process_start="s", renewed_ms=2000)
    producer = log.plain_producer("test")
    producer.send(job.coordinator_topic, lease.to_bytes(), LEASE_KEY, 0)
    producer.flush()
    (found,) = jobs_of(log)
    assert ("NOT ANSWERING", None, "request not understood") == (found["state"], found["url"], found["error"])


def test_only_coordinator_topics_are() -> None:
    assert Job("a_b", "1") == job_of_coordinator_topic(Job("a_b", "1").coordinator_topic)
    for other in ("orders", "__samza_coordinator_", "__samza_coordinator_x", "__samza_checkpoint_a_1", "__samza_coordinator_a b_1"):
        assert job_of_coordinator_topic(other) is None
