"""The verifier can fail: each kind of damage, planted alone, is named. And the task does what the model says, over crashes too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from samzapy.model.checkpoint import Checkpoint, InputMark
from samzapy.testing import Harness
from tests.broker import Record, create_topic, produce
from tests.recovery.chain import (
    ALTERED,
    DOUBLED,
    INVENTED,
    LOST,
    REORDERED,
    UNREAD,
    WRONG_STATE,
    ChainTopics,
    Found,
    InputRecord,
    Link,
    Verdict,
    committed_positions,
    expected,
    judge,
    latest,
    output_of,
    verify,
)
from tests.recovery.chain_task import CHAIN, COUNTS, GENESIS, link

# an input partition has holes where markers and aborted records were
INPUTS = {
    0: [InputRecord(0, b"a", b"1"), InputRecord(1, b"b", b"2"), InputRecord(4, b"a", b"3"), InputRecord(5, b"c", None)],
    1: [InputRecord(2, None, b"4"), InputRecord(3, b"", b"")],
    2: [],
}
POSITIONS = {0: 7, 1: 4}


def found_of(outputs: dict[int, list[Link]]) -> dict[int, list[Found]]:
    """The outputs in a transactional log: a marker after every second one."""
    return {p: [Found(i + i // 2, made) for i, made in enumerate(links)] for p, links in outputs.items()}


class World:
    """What a faultless run leaves, for a test to damage."""

    def __init__(self) -> None:
        right = expected(INPUTS)
        self.inputs: dict[int, list[InputRecord]] = {p: list(r) for p, r in INPUTS.items()}
        self.positions = dict(POSITIONS)
        self.outputs = found_of(right.outputs)
        self.states: dict[str, dict[int, dict[bytes, Any]]] = right.states

    def judged(self, **options: bool) -> Verdict:
        return judge(self.inputs, self.positions, self.outputs, self.states, **options)


def findings(verdict: Verdict) -> list[tuple[str, int, int]]:
    return [(f.kind, f.partition, f.count) for f in verdict.findings]


def test_the_model_chains_every_record_of_a_partition() -> None:
    first = link(GENESIS, 0, b"a", b"1")
    second = link(first, 1, b"b", b"2")
    third = link(second, 4, b"a", b"3")
    right = expected({0: INPUTS[0][:3]})

    assert {0: [Link(1, 0, first, b"a", 1), Link(2, 1, second, b"b", 1), Link(3, 4, third, b"a", 2)]} == right.outputs
    assert {0: {b"0": {"number": 3, "head": third}}} == right.states[CHAIN]
    assert {0: {b"key/a": 2, b"key/b": 1}} == right.states[COUNTS]
    assert (3, third) == right.head(0)
    assert (0, GENESIS) == expected({7: []}).head(7)


def test_no_two_records_make_the_same_link() -> None:
    records = [(0, None, b""), (0, b"", None), (0, b"", b""), (0, b"ab", b"c"), (0, b"a", b"bc"), (1, b"a", b"bc"), (0, None, None)]

    assert len(records) == len({link(GENESIS, *r) for r in records})


def test_a_faultless_run_is_clean() -> None:
    verdict = World().judged()

    assert [] == findings(verdict)
    assert (
        "clean: 6 input records in 3 partitions, 6 output records; nothing lost, doubled, reordered or altered, every store as it must be"
        == str(verdict)
    )


def test_a_lost_output_is_named() -> None:
    world = World()
    del world.outputs[0][1]
    verdict = world.judged()

    assert [(LOST, 0, 1)] == findings(verdict)
    assert "input offset 1 (number 2, key b'b', count 1" in str(verdict)


def test_a_tail_that_was_committed_without_outputs_is_lost_and_the_first_is_named() -> None:
    world = World()
    del world.outputs[0][2:]
    verdict = world.judged()

    assert [(LOST, 0, 2)] == findings(verdict)
    assert "the first: the output of input offset 4" in str(verdict)


def test_a_doubled_output_is_named_with_both_places() -> None:
    world = World()
    world.outputs[0].append(world.outputs[0][2]._replace(at=9))
    verdict = world.judged()

    assert [(DOUBLED, 0, 1)] == findings(verdict)
    assert "at output offset 9 of input offset 4" in str(verdict)
    assert "was there at output offset 3" in str(verdict)


def test_a_reordered_output_is_named() -> None:
    world = World()
    one, two = world.outputs[1]
    world.outputs[1] = [two, one]

    assert [(REORDERED, 1, 1)] == findings(world.judged())


@pytest.mark.parametrize("change", [{"number": 3}, {"head": "f" * 64}, {"key_count": 2}, {"key": b"B"}])
def test_an_altered_output_is_named_with_what_was_expected(change: dict[str, Any]) -> None:
    world = World()
    at, right = world.outputs[0][1]
    assert right is not None
    world.outputs[0][1] = Found(at, right._replace(**change))
    verdict = world.judged()

    assert [(ALTERED, 0, 1)] == findings(verdict)
    assert "where the output of input offset 1 (number 2, key b'b', count 1" in str(verdict)


def test_bytes_that_are_no_output_are_altered() -> None:
    world = World()
    world.outputs[1][0] = Found(0, output_of(b"k", b"\xff"))

    assert [(ALTERED, 1, 1), (LOST, 1, 1)] == findings(world.judged())


def test_an_output_of_no_committed_input_is_invented() -> None:
    world = World()
    world.outputs[0].append(Found(9, Link(5, 2, "0" * 64, b"aborted", 1)))
    world.outputs[4] = [Found(0, None)]

    assert [(INVENTED, 0, 1), (INVENTED, 4, 1)] == findings(world.judged())


def test_a_record_processed_twice_with_its_state_shows_in_all_after_it() -> None:
    world = World()
    again = expected({0: [*INPUTS[0][:2], INPUTS[0][1], *INPUTS[0][2:]]})
    world.outputs[0] = found_of(again.outputs)[0]
    world.states = {CHAIN: {**world.states[CHAIN], 0: again.states[CHAIN][0]}, COUNTS: {**world.states[COUNTS], 0: again.states[COUNTS][0]}}
    verdict = world.judged()

    assert {DOUBLED, ALTERED, WRONG_STATE} == verdict.kinds()
    assert "key b'key/b' is 2, where 1 is expected" in str(
        judge(INPUTS, POSITIONS, world.outputs, {CHAIN: {}, COUNTS: world.states[COUNTS]})
    )


@pytest.mark.parametrize(
    ("store", "key", "value"),
    [
        (COUNTS, b"key/a", 3),
        (COUNTS, b"key/a", None),
        (COUNTS, b"key/z", 1),
        (CHAIN, b"0", {"number": 3, "head": "0" * 64}),
        (CHAIN, b"1", {"number": 1, "head": "0" * 64}),
    ],
)
def test_a_wrong_store_value_is_named(store: str, key: bytes, value: object) -> None:
    world = World()
    if value is None:
        del world.states[store][0][key]
    else:
        world.states[store][0][key] = value
    verdict = world.judged()

    assert [(WRONG_STATE, 0, 1)] == findings(verdict)
    assert f"store {store!r}, key {key!r} is {value!r}" in str(verdict)


def test_records_after_the_committed_position_are_unread() -> None:
    world = World()
    world.inputs[2] = [InputRecord(10, b"x", b"y")]
    verdict = world.judged()

    assert [(UNREAD, 2, 1)] == findings(verdict)
    assert [] == findings(world.judged(to_the_end=False))


def test_at_least_once_allows_repetitions_and_outputs_ahead_but_nothing_altered_or_lost() -> None:
    world = World()
    world.outputs[0].append(world.outputs[0][1]._replace(at=8))
    assert [] == findings(world.judged(exactly_once=False))

    world.inputs[1].append(InputRecord(4, b"d", b"5"))
    world.outputs[1].append(Found(9, expected(world.inputs).outputs[1][2]))
    assert [] == findings(world.judged(exactly_once=False, to_the_end=False))
    assert [(DOUBLED, 0, 1), (INVENTED, 1, 1)] == findings(world.judged(to_the_end=False))

    at, repeated = world.outputs[0][-1]
    assert repeated is not None
    world.outputs[0][-1] = Found(at, repeated._replace(key_count=7))
    del world.outputs[1][0]
    assert [(ALTERED, 0, 1), (LOST, 1, 1)] == findings(world.judged(exactly_once=False, to_the_end=False))


def test_a_changelog_is_folded_as_any_tool_would() -> None:
    def record(offset: int, key: bytes, value: bytes | None) -> Record:
        return Record(3, offset, key, value, [], 0)

    log = [
        record(0, b"\x00samzapy/barrier", b"{}"),
        record(1, b"a", b"1"),
        record(3, b"b", b"2"),
        record(4, b"a", b"3"),
        record(5, b"b", None),
    ]

    assert {3: {b"a": 3}} == latest(log, int)


def test_the_newest_checkpoint_tells_the_position() -> None:
    def checkpoint(offset: int, sequence: int, position: int) -> Record:
        made = Checkpoint(
            job="j",
            id="1",
            task="Partition 2",
            container=0,
            incarnation="i",
            epoch=1,
            sequence=sequence,
            inputs={"in[2]": InputMark("t", position)},
            stores={},
        )
        return Record(2, offset, b"checkpoint", made.to_bytes(), [], 0)

    assert {2: 9} == committed_positions([checkpoint(0, 0, 0), checkpoint(4, 1, 9)], "in")


# -- the task, on the in-memory log and the verifier, on a broker ---------------------------------------------------------------------


def job_of(name: str) -> dict[str, Any]:
    return {
        "job": name,
        "task": "tests.recovery.chain_task:ChainTask",
        "params": {"out": f"{name}-out"},
        "kafka": {"bootstrap.servers": "nowhere:1"},
        "inputs": [{"topic": f"{name}-in"}],
        "outputs": [{"topic": f"{name}-out", "value": "json"}],
        "stores": {CHAIN: {"key": "string", "value": "json"}, COUNTS: {"value": "integer"}},
    }


def links(sent: Sequence[tuple[Any, Any]]) -> list[Link]:
    return [Link(v["number"], v["offset"], v["head"], k, v["count"]) for k, v in sent]


def test_the_task_commits_what_the_model_says_over_a_crash() -> None:
    harness = Harness(job_of("chained"), tasks=2)
    records = [(b"a", b"1"), (None, b"2"), (b"", b""), (b"a", None), (b"b", b"3")]
    for key, value in records[:3]:
        harness.send_raw("chained-in", value, key, 1)
    harness.run()
    harness.crash(keep_state=False)
    for key, value in records[3:]:
        harness.send_raw("chained-in", value, key, 1)
    harness.run()
    right = expected({1: [InputRecord(offset, *record) for offset, record in enumerate(records)]})

    assert right.outputs[1] == links(harness.output("chained-out", 1))
    assert right.states[COUNTS][1] == harness.store(COUNTS, 1)
    assert {"1": right.states[CHAIN][1][b"1"]} == harness.store(CHAIN, 1)


@pytest.mark.kafka
def test_the_verifier_reads_a_brokers_topics(kafka: str, unique: str) -> None:
    """Topics as a job would leave them, written here record by record; then one more output that no input explains."""
    topics = ChainTopics.of(unique)
    for topic in (topics.input, topics.output, *(topics.job.changelog_topic(s) for s in (CHAIN, COUNTS)), topics.job.checkpoint_topic):
        create_topic(kafka, topic, 2)
    inputs = [(b"a", b"1", 1), (b"b", None, 1), (b"a", b"2", 1)]
    produce(kafka, topics.input, inputs)
    right = expected({1: [InputRecord(i, key, value) for i, (key, value, _) in enumerate(inputs)]})
    out = [(o.key, as_json(number=o.number, head=o.head, offset=o.offset, count=o.key_count), 1) for o in right.outputs[1]]
    produce(kafka, topics.output, out)
    number, head = right.head(1)
    chain = [(b"\x00samzapy/barrier", b"{}", 1), (b"1", b'{"number":1,"head":"old"}', 1), (b"1", as_json(number=number, head=head), 1)]
    produce(kafka, topics.job.changelog_topic(CHAIN), chain)
    produce(kafka, topics.job.changelog_topic(COUNTS), [(b"key/a", (2).to_bytes(8, "big"), 1), (b"key/b", (1).to_bytes(8, "big"), 1)])
    checkpoint = Checkpoint(
        job=unique,
        id="1",
        task="Partition 1",
        container=0,
        incarnation="i",
        epoch=1,
        sequence=0,
        inputs={f"{topics.input}[1]": InputMark("t", 3)},
        stores={},
    )
    produce(kafka, topics.job.checkpoint_topic, [(b"checkpoint", checkpoint.to_bytes(), 1)])

    assert [] == findings(verify(kafka, topics))

    produce(kafka, topics.output, out[2:])
    assert [(DOUBLED, 1, 1)] == findings(verify(kafka, topics))


def as_json(**fields: object) -> bytes:
    return json.dumps(fields).encode()
