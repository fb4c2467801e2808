"""The verdict on the second job can fail: each kind of damage, planted alone, is named. And the task does what the model says."""

from __future__ import annotations

import json

from samzapy.testing import Harness
from tests.broker import Record
from tests.recovery.chain import ALTERED, DOUBLED, INVENTED, LOST, REORDERED, UNREAD, WRONG_STATE, Found, InputRecord, Verdict
from tests.recovery.repartition import Passed, expected_groups, judge_groups, passed_of
from tests.recovery.repartition_task import GROUPS, RepartitionTask

PLACES, COUNT = 2, 9
INPUTS = {
    0: [InputRecord(offset, b"k", b"%d" % offset) for offset in range(30) if offset not in (3, 4)],
    1: [InputRecord(offset, None, b"other %d" % offset) for offset in range(12)],
}


class World:
    """What a faultless run leaves, for a test to damage: `rows` by output partition, the two tasks' records one after the other."""

    def __init__(self) -> None:
        made = {p: expected_groups(p, records, PLACES, COUNT) for p, records in INPUTS.items()}
        self.positions = {0: 31, 1: 12}
        self.states = {p: dict(state) for p, (_, state) in made.items()}
        self.rows: dict[int, list[Passed]] = {q: [r for out, _ in made.values() for r in out if r.place == q] for q in range(PLACES)}

    def kinds(self, exactly_once: bool = True) -> set[str]:
        return self.judged(exactly_once).kinds()

    def judged(self, exactly_once: bool = True) -> Verdict:
        outputs = {q: [Found(at, r.link) for at, r in enumerate(rows)] for q, rows in self.rows.items()}
        sources: dict[int, list[int | None]] = {q: [r.source for r in rows] for q, rows in self.rows.items()}
        return judge_groups(INPUTS, self.positions, outputs, sources, self.states, COUNT, exactly_once)


def test_a_faultless_run_is_clean_however_the_tasks_take_turns() -> None:
    world = World()
    assert "clean: 40 input records in 2 partitions, 40 output records" in str(world.judged())

    world.rows[0].sort(key=lambda r: (-r.source, r.link.offset))
    assert set() == world.kinds()


def test_each_damage_is_named() -> None:
    world = World()
    del world.rows[0][0]
    assert {LOST} == world.kinds()

    world = World()
    world.rows[1].append(world.rows[1][0])
    assert {DOUBLED} == world.kinds()
    assert set() == world.kinds(exactly_once=False)

    world = World()
    mine = [r for r in world.rows[0] if r.source == world.rows[0][0].source]
    world.rows[0][0], world.rows[0][1] = mine[1], mine[0]
    assert {REORDERED} == world.kinds()

    world = World()
    world.rows[1].append(world.rows[0].pop())
    assert {LOST, INVENTED} == world.kinds(), "a record in the partition of another group"

    world = World()
    world.rows[0][0] = world.rows[0][0]._replace(source=7)
    assert {LOST, INVENTED} == world.kinds()

    world = World()
    world.rows[0][0] = world.rows[0][0]._replace(link=world.rows[0][0].link._replace(head="f" * 64))
    assert {ALTERED} == world.kinds()

    world = World()
    del world.states[1][next(iter(world.states[1]))]
    assert {WRONG_STATE} == world.kinds()


def test_records_after_the_position_are_unread_and_what_was_done_with_them_is_invented() -> None:
    world = World()
    world.positions[1] = 11

    assert {UNREAD, INVENTED, WRONG_STATE} == world.kinds()


def test_the_task_does_what_the_model_says() -> None:
    values = [b"a", b"b", b"c", b"a", b"d"]
    job = Harness(
        RepartitionTask, inputs=[{"topic": "in"}], outputs=[{"topic": "out", "value": "json"}], stores={GROUPS: {"value": "json"}},
        params={"out": "out", "groups": COUNT},
    )  # fmt: skip
    for value in values:
        job.send("in", value)
    job.run()
    outputs, state = expected_groups(0, [InputRecord(i, None, v) for i, v in enumerate(values)], 1, COUNT)

    assert [p.link.key for p in outputs] == [key for key, _ in job.output("out")]
    assert [p.link.head for p in outputs] == [value["head"] for _, value in job.output("out")]
    assert state == dict(job.store(GROUPS))


def test_what_is_no_output_of_the_task_is_seen_as_that() -> None:
    good = json.dumps({"number": 1, "offset": 4, "head": "x", "from": 2}).encode()

    assert (4, 2) == (passed_of(Record(0, 9, b"k", good, [], 0))[0].link.offset, passed_of(Record(0, 9, b"k", good, [], 0))[1])
    assert (Found(9, None), None) == passed_of(Record(0, 9, b"k", b"{}", [], 0))
