"""What the committed topics of a RepartitionTask job must be, and whether they are.

Every output partition takes records of many tasks, whose order against each other nobody promises. What is promised, and demanded here, is that
those of one input partition come in its order, each once, in the partition that Java's partitioner gives to their group, and that each
task's store holds the head of each of its groups. So the verdict is `chain`'s, for every pair of an input and an output partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from samzapy.model.key_partition import murmur2
from samzapy.model.names import Job
from tests.broker import Record, create_topic, read_all
from tests.recovery import repartition_task
from tests.recovery.chain import (
    INVENTED,
    UNREAD,
    ChainTopics,
    Finding,
    Found,
    InputRecord,
    Link,
    State,
    Verdict,
    by_partition,
    committed_positions,
    compare_outputs,
    compare_state,
    latest,
    parsed,
)
from tests.recovery.job import ChainJob
from tests.recovery.repartition_task import GENESIS, GROUPS, group_key, grouped

GROUP_COUNT = 40


class Passed(NamedTuple):
    """An output record: of input partition `source`, in output partition `place`."""

    source: int
    place: int
    link: Link


def expected_groups(
    source: int, records: Sequence[InputRecord], places: int, groups: int
) -> tuple[list[Passed], dict[bytes, object]]:  # fmt: skip
    """What a task makes of its partition: outputs in order, and its store at the end."""
    heads: dict[bytes, tuple[int, str]] = {}
    outputs = []
    for record in records:
        key = group_key(record.value, groups)
        number, head = heads.get(key, (0, GENESIS))
        heads[key] = number, head = number + 1, grouped(head, source, record.offset, record.value)
        outputs.append(Passed(source, murmur2(key) % places, Link(number, record.offset, head, key, number)))
    return outputs, {key: {"number": number, "head": head} for key, (number, head) in heads.items()}


def judge_groups(
    inputs: Mapping[int, Sequence[InputRecord]], positions: Mapping[int, int], outputs: Mapping[int, Sequence[Found]],
    sources: Mapping[int, Sequence[int | None]], states: Mapping[int, State], groups: int, exactly_once: bool = True,
    to_the_end: bool = True,
) -> Verdict:  # fmt: skip
    """Compare what was found with what the inputs demand; as `chain.judge`.

    Args:
        outputs: every output partition, also the empty ones.
        sources: of each of `outputs`, the input partition that it names.
    """
    findings: list[Finding] = []
    for source, records in sorted(inputs.items()):
        done = [r for r in records if r.offset < positions.get(source, 0)]
        if len(done) < len(records) and to_the_end:
            words = f"input offset {records[len(done)].offset}, the committed position is {positions.get(source)}"
            findings.append(Finding(UNREAD, source, len(records) - len(done), words))
        must, state = expected_groups(source, done, len(outputs), groups)
        may = must if exactly_once else expected_groups(source, records, len(outputs), groups)[0]
        for place, found in sorted(outputs.items()):
            mine = [f for f, of in zip(found, sources[place], strict=True) if of == source]
            wanted, allowed = ([p.link for p in links if p.place == place] for links in (must, may))
            findings += compare_outputs(source, wanted, allowed, mine, exactly_once)
        findings += compare_state(GROUPS, source, state, states.get(source, {}))
    for place, of in sorted(sources.items()):
        strange = [at for at, source in enumerate(of) if source not in inputs]
        if strange:
            findings.append(
                Finding(INVENTED, place, len(strange), f"output offset {outputs[place][strange[0]].at} names no input partition")
            )
    return Verdict(tuple(findings), len(inputs), sum(map(len, inputs.values())), sum(map(len, outputs.values())))


def verify_groups(
    servers: str, job: Job, source: str, output: str, places: int, exactly_once: bool = True, to_the_end: bool = True
) -> Verdict:  # fmt: skip
    """Read everything that is committed and judge it. For a job that has stopped."""
    inputs = by_partition(read_all(servers, source))
    found = by_partition(read_all(servers, output))
    rows = {p: [passed_of(r) for r in found.get(p, [])] for p in range(places)}
    return judge_groups(
        {p: [InputRecord(r.offset, r.key, r.value) for r in records] for p, records in inputs.items()},
        committed_positions(read_all(servers, job.checkpoint_topic), source),
        {p: [f for f, _ in row] for p, row in rows.items()},
        {p: [of for _, of in row] for p, row in rows.items()},
        latest(read_all(servers, job.changelog_topic(GROUPS)), parsed),
        GROUP_COUNT,
        exactly_once,
        to_the_end,
    )


def passed_of(record: Record) -> tuple[Found, int | None]:
    """An output record and the input partition that it names; None in place of what cannot be read."""
    raw = parsed(record.value)
    try:
        return Found(record.offset, Link(raw["number"], raw["offset"], raw["head"], record.key, raw["number"])), int(raw["from"])
    except (KeyError, TypeError, ValueError):
        return Found(record.offset, None), None


class RepartitionJob(ChainJob):
    """The job, as a user would run it: from another job's output, by groups, to `<name>-out` of `places` partitions. As ChainJob."""

    TASK, TASK_CLASS, STORES = repartition_task, "RepartitionTask", {GROUPS: {"value": "json"}}

    def __init__(self, source: str, places: int, servers: str, folder: Path, name: str, *arguments: Any, **options: Any) -> None:
        self._source, self._places = source, places
        super().__init__(servers, folder, name, *arguments, **options)

    def _topics(self) -> ChainTopics:
        return ChainTopics(Job(self.name, "1"), self._source, f"{self.name}-out")

    def _create_topics(self) -> None:
        create_topic(self.servers, self.topics.output, self._places)

    def _params(self) -> dict[str, Any]:
        return {"out": self.topics.output, "groups": GROUP_COUNT}

    def verify(self) -> Verdict:
        return verify_groups(self.servers, self.topics.job, self._source, self.topics.output, self._places, self.exactly_once)
