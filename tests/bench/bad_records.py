"""What bad records cost: `python -m tests.bench.bad_records [--kafka HOST:PORT] [--records N] [--rounds N]`.

One job (parse, keep, project, send; no store) over one input, in which one record in a hundred is bad, by `samzapy run --local --until-end`:
with a task that finds nothing wrong with them, and with one that raises, under `skip` and under `dead_letter`; and over a copy of the input in
which the same records are no JSON at all. The rate is read from the output topic, whose records bear the time at which the broker wrote them,
so that the start of processes does not count. Beside it stands the processor time of driver and container, less that of a run over nothing:
on a machine that other work shares, rates of runs one after the other say little, processor time still does. Ratios are those of runs in the
same round.
"""

from __future__ import annotations

import argparse
import json
import resource
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench.place import RUN, Place
from tests.bench.yardstick import Side, Sides
from tests.broker import create_topic, produce, read_all

BAD_EVERY = 100
PARTITIONS = 4
LIMIT_S = 600.0
RECORDS, SMALL_RECORDS = 300_000, 50_000

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


@dataclass(frozen=True)
class Cost:
    """Of one run."""

    rate: float
    cpu_s: float


@dataclass(frozen=True)
class Left:
    """Of a case in one round, against the clean run of that round: how much of the speed is left, by time and by processor time."""

    speed: float
    by_cpu: float


CLEAN = Case("none is bad", "fail")
CASES = (
    Case("process raises, skip", "skip", BAD_EVERY),
    Case("process raises, dead_letter", "dead_letter", BAD_EVERY),
    Case("no JSON, skip", "skip", undecodable=True),
    Case("no JSON, dead_letter", "dead_letter", undecodable=True),
)


class Bench:
    """The inputs, once for all runs, and a folder for jobs."""

    def __init__(self, servers: str, folder: Path, records: int, prefix: str = "bad") -> None:
        self.servers, self.folder, self.records = servers, folder, records
        self._name = f"{prefix}-{secrets.token_hex(4)}"
        self._runs = 0
        (folder / "projection.py").write_text(TASK)
        self._inputs = {False: f"{self._name}-in", True: f"{self._name}-in-no-json"}
        self._empty = create_topic(servers, f"{self._name}-empty", PARTITIONS)
        for undecodable, topic in self._inputs.items():
            create_topic(servers, topic, PARTITIONS)
            produce(servers, topic, _records(records, undecodable))

    def idle_cpu_s(self) -> float:
        """Processor time of a run over nothing."""
        return self._run(self._job(CLEAN, self._empty)[0])

    def cost(self, case: Case) -> Cost:
        """The rate is that of the input's records, by the broker's clock, between the first and the last record of the output."""
        name, out = self._job(case, self._inputs[case.undecodable])
        cpu_s = self._run(name)
        letters = len(read_all(self.servers, f"{name}-1-dead-letter")) if case.then == "dead_letter" else 0
        bad = self.records // BAD_EVERY
        assert letters == (bad if case.then == "dead_letter" else 0), letters
        sent = read_all(self.servers, out)
        left = self.records if case == CLEAN else self.records - bad
        assert len(sent) == sum(1 for n in range(self.records) if _amount(n) < 5.0 and (left == self.records or n % BAD_EVERY)), len(sent)
        times = [r.timestamp for r in sent]
        return Cost(self.records / ((max(times) - min(times)) / 1000), cpu_s)

    def _run(self, name: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "samzapy", "run", str(self.folder / f"{name}.yaml"), "--local", "--until-end"]
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=self.folder, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def _job(self, case: Case, given: str) -> tuple[str, str]:
        self._runs += 1
        name = f"{self._name}-{self._runs}"
        out = create_topic(self.servers, f"{name}-out", PARTITIONS, message_timestamp_type="LogAppendTime")
        document = {
            "job": name,
            "task": "projection:Projection",
            "params": {"out": out, "bad_every": case.bad_every},
            "kafka": {"bootstrap.servers": self.servers},
            "inputs": [{"topic": given, "key": "bytes", "value": "json"}],
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


def measure(servers: str, records: int, rounds: int, say: Callable[[str], None]) -> dict[str, list[Left]]:
    """By case, of each round."""
    left: dict[str, list[Left]] = {case.name: [] for case in CASES}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(servers, Path(folder), records)
        idle_s = bench.idle_cpu_s()
        for number in range(1, rounds + 1):
            clean = bench.cost(CLEAN)
            say(f"round {number}: {clean.rate:9,.0f} records/s, {clean.cpu_s - idle_s:6.2f} CPU s  {CLEAN.name}")
            for case in CASES:
                cost = bench.cost(case)
                one = Left(cost.rate / clean.rate, (clean.cpu_s - idle_s) / (cost.cpu_s - idle_s))
                left[case.name].append(one)
                say(
                    f"round {number}: {cost.rate:9,.0f} records/s, {cost.cpu_s - idle_s:6.2f} CPU s  {case.name}: "
                    f"{one.speed:.2f} of the speed, {one.by_cpu:.2f} by CPU"
                )
    return left


def yardstick(place: Place) -> Sides:
    """One bad record in a hundred, beside none."""
    bench = Bench(place.servers, place.runs, SMALL_RECORDS if place.small else RECORDS, f"{RUN}-bad")
    idle_s = bench.idle_cpu_s()

    def figures(case: Case) -> dict[str, float]:
        cost = bench.cost(case)
        return {"records_per_s": cost.rate, "cpu_us_per_record": (cost.cpu_s - idle_s) / bench.records * 1e6}

    sides = [Side(case.name, partial(figures, case)) for case in (CLEAN, *CASES)]
    return Sides(sides, [(case.name, CLEAN.name) for case in CASES], bench.records)


def main() -> None:
    """Print what was measured as it comes, then the medians."""
    parser = argparse.ArgumentParser(description="What one bad record in a hundred costs.")
    parser.add_argument("--kafka", default="localhost:9092")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    for name, left in measure(given.kafka, given.records, given.rounds, print).items():
        speeds, by_cpu = [one.speed for one in left], [one.by_cpu for one in left]
        print(
            f"{name}: {statistics.median(speeds):.2f} of the speed is left ({min(speeds):.2f} to {max(speeds):.2f}), "
            f"{statistics.median(by_cpu):.2f} by CPU ({min(by_cpu):.2f} to {max(by_cpu):.2f}); medians of {len(left)}"
        )


if __name__ == "__main__":
    main()
