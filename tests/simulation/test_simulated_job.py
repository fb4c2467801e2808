"""A small job that lives through crashes, in some seconds of virtual time: every sum is sent once, and a seed is a history."""

from __future__ import annotations

from typing import Any

from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream
from samzapy.testing.memory_partition import State
from tests.simulation.simulation import Simulation

DOCUMENT = {
    "job": "sums", "task": "tests.simulation.test_simulated_job:Summing", "kafka": {"bootstrap.servers": "memory:9092"},
    "inputs": [{"topic": "in", "key": "string", "value": "integer"}], "outputs": [{"topic": "out", "key": "string", "value": "integer"}],
    "stores": {"sums": {"key": "string", "value": "integer"}}, "commit": {"interval": "300ms", "timeout": "10s"},
    "containers": {"count": 2, "lease": "3s", "heartbeat": "500ms"},
}  # fmt: skip


class Summing(StreamTask):
    """The sum per key, every update sent."""

    def init(self, context: Any) -> None:
        self.sums = context.get_store("sums")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        total = (self.sums.get(envelope.key) or 0) + envelope.message
        self.sums.put(envelope.key, total)
        collector.send(OutgoingMessageEnvelope(SystemStream("kafka", "out"), total, envelope.key, partition=envelope.partition))


def history(seed: int) -> tuple[list[int], str]:
    """What the job sent to partition 1 while its processes were killed, one after the other; and the history's fingerprint."""
    with Simulation(seed, DOCUMENT, Summing, {"in": 2, "out": 2}, {"h0": 1, "h1": 1}) as sim:
        driver = sim.start()
        feed = sim.log.plain_producer("feed")
        for second in range(24):
            for partition in (0, 1):
                feed.send("in", (1).to_bytes(8, "big"), b"k", partition)
            sim.baton.sleep(1.0)
            if second in (5, 9, 13):
                sim.baton.kill(sim.live_containers()[second % 2].process, "SIGKILL")
            if second == 17:
                sim.baton.kill(driver.process, "SIGKILL")
                driver = sim.start()
        driver.coordinator.request_stop()
        sim.baton.sleep(5.0)
        assert (0, []) == (driver.exit_code, [*sim.problems, *sim.baton.errors])
        records = sim.cluster.partition(sim.places(["out"])[1]).records
        return [int.from_bytes(r.value() or b"", "big") for r in records if r.state is State.COMMITTED], sim.fingerprint()


def test_a_job_whose_processes_are_killed_sends_every_sum_once() -> None:
    assert list(range(1, 25)) == history(1)[0]


def test_a_seed_is_a_history() -> None:
    assert history(2) == history(2)
    assert history(2)[1] != history(3)[1]
