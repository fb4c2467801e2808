"""A third of the simulated histories have a program of streams as their job: drawn at random too, judged by plain loops over what its input holds.

The story is that of the others: the same strikes, events, interludes and runs. What differs is here: the job file, the task, and what must have come
out. A bounded run closes windows that the next one opens again, so what counts is the sum of a window's panes.
"""

from __future__ import annotations

import json
from typing import Any

from samzapy.api.task import StreamTask
from samzapy.model.marks import MARKS_KEY
from samzapy.serde.registry import serde_named
from samzapy.streams.expand import sections
from samzapy.streams.operators.rows import SLICE
from samzapy.streams.program import Program
from tests.random_programs import added, drawn, key_of
from tests.recovery.sim_counting import Coverage
from tests.recovery.sim_judge import History, judge_stores_and_owners
from tests.recovery.sim_plan import Plan
from tests.recovery.sim_task import INPUT, KEYS, TABLE, document
from tests.simulation.simulation import Simulation

PREFIX, JOB = "sim-program-", "sim-1"
OF_TASK = ("task", "params", "inputs", "outputs", "stores")


class SimProgram:
    """A seed's program.

    Attributes:
        document: its job file.
        table: the entries of its table; none: it has no table.
        topics: the user's topics, with their partitions.
    """

    def __init__(self, plan: Plan) -> None:
        self._drawn = drawn(plan.seed, placed=False)
        self._exactly_once = bool(plan.job["exactly_once"])
        self._inputs = plan.inputs
        self.table = {f"key-{n}": str(added(f"key-{n}")) for n in range(KEYS)} if self._drawn.looks_up else {}
        graph = self._drawn.app(INPUT, PREFIX, second="".join(plan.inputs[1:]), table=TABLE if self.table else "").graph
        made = sections(graph, {}, {}, JOB)
        rest = {key: value for key, value in document(plan.job).items() if key not in OF_TASK}
        self.document: dict[str, Any] = {**rest, "app": f"{__name__}:app", **made.to_json()}
        mine = [*plan.inputs, *([TABLE] if self.table else []), *(PREFIX + topic for topic in self._drawn.topics)]
        self.topics = dict.fromkeys(mine, plan.tasks)
        self._program = Program(graph, made.topics, lambda name: serde_named(name, ()), check=False)

    def new_task(self) -> StreamTask:
        return self._program.task()

    def judge(self, sim: Simulation, history: History, to_the_end: bool, coverage: Coverage) -> list[str]:
        """The problems, one sentence each."""
        self._count(sim, coverage)
        problems = judge_stores_and_owners(sim, history)
        if not to_the_end:
            return problems
        found = {topic: self._output(sim, history, PREFIX + topic) for topic in self._drawn.topics}
        if any(part for topic, part in found.items() if topic.startswith("windows")):
            coverage.count("windows of programs")
        given = [((r.key or b"").decode(), (r.value or b"").decode()) for topic in self._inputs for r in self._records(sim, history, topic)]
        problems += self._drawn.problems(given, found, len(sim.models), strict=False, doubles=not self._exactly_once, adds=bool(self.table))
        return problems + self._left(sim, history)

    def _records(self, sim: Simulation, history: History, topic: str) -> list[Any]:
        return [record for place in sim.places([topic]) for record in history.records(topic, place.partition)]

    def _output(self, sim: Simulation, history: History, topic: str) -> list[tuple[Any, Any]]:
        return [(key_of(r.key or b""), json.loads(r.value or b"null")) for r in self._records(sim, history, topic)]

    def _left(self, sim: Simulation, history: History) -> list[str]:
        """Windows that a changelog still has, though a bounded run has closed all."""
        left = []
        for name, topic in history.changelogs.items():
            newest = {(p.partition, r.key): r.value for p in sim.places([topic]) for r in history.now(topic, p.partition)}
            if open_ := [key for (_, key), value in newest.items() if value is not None and (key or b"")[:1] == SLICE]:
                left.append(f"{name}: {len(open_)} rows of windows are left, the first {open_[0]!r}")
        return left

    def _count(self, sim: Simulation, coverage: Coverage) -> None:
        for place in sim.places(list(self._program.writers)):
            records, begin = sim.cluster.partition(place).records, sim.cluster.bounds(place).start
            if begin > 0 or any(r.key() != MARKS_KEY for r in records):
                coverage.count("internal partitions with records")
            if begin > 0:
                coverage.count("internal partitions purged")
