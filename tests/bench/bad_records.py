"""What bad records cost: `python -m tests.bench.bad_records [--kafka HOST:PORT] [--records N] [--rounds N]`.

One job (parse, keep, project, send; no store) over one input, in which one record in a hundred is bad, by `samzapy run --local --until-end`:
with a task that finds nothing wrong with them, and with one that raises, under `skip` and under `dead_letter`; and over a copy of the input in
which the same records are no JSON at all. The rate is read from the output topic, whose records bear the time at which the broker wrote them,
so that the start of processes does not count. Ratios are those of runs in the same round, one after the other; the median counts.
"""

from __future__ import annotations

import argparse
import json
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.broker import create_topic, produce, read_all

BAD_EVERY = 100
PARTITIONS = 4
LIMIT_S = 600.0

TASK = """
from samzapy import OutgoingMessageEnvelope, StreamTask, SystemStream

class Projection(StreamTask):
    def init(self, context):
        self.out = SystemStream("kafka", context.params["out"])
        self.bad_every = context.params["bad_every"]

    def process(self, envelope, collector, coordinator):
        record = envelope.message
        if self.bad_every and record["n"] % self.bad_every == 0:
            raise ValueError(f"record {record['n']} is bad")
        if record["amount"] < 5.0:
            collector.send(OutgoingMessageEnvelope(self.out, {"user": record["user"], "amount": record["amount"]}, envelope.key))
"""


@dataclass(frozen=True)
class Case:
    """A way to meet bad records. `bad_every`: whose records the task raises on; 0: none."""

    name: str
    then: str
    bad_every: int = 0
    undecodable: bool = False


CLEAN = Case("none is bad", "fail")
CASES = (
    Case("process raises, skip", "skip", BAD_EVERY),
    Case("process raises, dead_letter", "dead_letter", BAD_EVERY),
    Case("no JSON, skip", "skip", undecodable=True),
    Case("no JSON, dead_letter", "dead_letter", undecodable=True),
)


class Bench:
    """The inputs, once for all runs, and a folder for jobs."""

    def __init__(self, servers: str, folder: Path, records: int) -> None:
        self.servers, self.folder, self.records = servers, folder, records
        self._name = f"bad-{secrets.token_hex(4)}"
        self._runs = 0
        (folder / "projection.py").write_text(TASK)
        self._inputs = {False: f"{self._name}-in", True: f"{self._name}-in-no-json"}
        for undecodable, topic in self._inputs.items():
            create_topic(servers, topic, PARTITIONS)
            produce(servers, topic, _records(records, undecodable))

    def rate(self, case: Case) -> float:
        """Records of the input a second, by the broker's clock, between the first and the last record of the output."""
        name, out = self._job(case)
        command = [sys.executable, "-m", "samzapy", "run", str(self.folder / f"{name}.yaml"), "--local", "--until-end"]
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=self.folder, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        letters = len(read_all(self.servers, f"{name}-1-dead-letter")) if case.then == "dead_letter" else 0
        bad = self.records // BAD_EVERY
        assert letters == (bad if case.then == "dead_letter" else 0), letters
        sent = read_all(self.servers, out)
        left = self.records if case == CLEAN else self.records - bad
        assert len(sent) == sum(1 for n in range(self.records) if _amount(n) < 5.0 and (left == self.records or n % BAD_EVERY)), len(sent)
        times = [r.timestamp for r in sent]
        return self.records / ((max(times) - min(times)) / 1000)

    def _job(self, case: Case) -> tuple[str, str]:
        self._runs += 1
        name = f"{self._name}-{self._runs}"
        out = create_topic(self.servers, f"{name}-out", PARTITIONS, message_timestamp_type="LogAppendTime")
        document = {
            "job": name,
            "task": "projection:Projection",
            "params": {"out": out, "bad_every": case.bad_every},
            "kafka": {"bootstrap.servers": self.servers},
            "inputs": [{"topic": self._inputs[case.undecodable], "key": "bytes", "value": "json"}],
            "outputs": [{"topic": out, "key": "bytes", "value": "json"}],
            "on_error": {"then": case.then},
            "containers": {"count": 1},
            "state": {"dir": str(self.folder / "state")},
        }
        (self.folder / f"{name}.yaml").write_text(json.dumps(document))
        return name, out


def _amount(n: int) -> float:
    return (n * 7919 % 1000) / 100


def _records(count: int, undecodable: bool) -> Iterator[tuple[bytes, bytes, int]]:
    for n in range(count):
        user = f"u{n * 104729 % 50_000}"
        value = f'{{"user":"{user}","page":"p{n % 997}","ts":{1_795_200_000_000 + n},"amount":{_amount(n)},"n":{n}}}'
        if undecodable and n % BAD_EVERY == 0:
            value = value[:-1]
        yield user.encode(), value.encode(), n % PARTITIONS


def measure(servers: str, records: int, rounds: int, say: Callable[[str], None]) -> dict[str, list[float]]:
    """By case: the ratio of its rate to that of the clean run of the same round."""
    ratios: dict[str, list[float]] = {case.name: [] for case in CASES}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(servers, Path(folder), records)
        for number in range(1, rounds + 1):
            clean = bench.rate(CLEAN)
            say(f"round {number}: {clean:9,.0f} records/s  {CLEAN.name}")
            for case in CASES:
                rate = bench.rate(case)
                ratios[case.name].append(rate / clean)
                say(f"round {number}: {rate:9,.0f} records/s  {case.name}: {rate / clean:.2f}")
    return ratios


def main() -> None:
    """Print the rates as they come, then the medians."""
    parser = argparse.ArgumentParser(description="What one bad record in a hundred costs.")
    parser.add_argument("--kafka", default="localhost:9092")
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    ratios = measure(given.kafka, given.records, given.rounds, print)
    for name, found in ratios.items():
        print(f"{statistics.median(found):.2f} of the speed without, median of {len(found)} ({min(found):.2f} to {max(found):.2f}): {name}")


if __name__ == "__main__":
    main()
