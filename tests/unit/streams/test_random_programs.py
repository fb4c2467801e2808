"""Programs drawn at random, on random records, with commits, crashes and bounded runs at random: what comes out is what plain loops make of it."""

from __future__ import annotations

import random

import pytest

from samzapy.testing import Harness
from tests.random_programs import Program, added, drawn, is_second, records_at_random


def live_through(program: Program, draw: random.Random) -> list[str]:
    """A life of the program; what is wrong with what came out."""
    tasks, ends = draw.randint(1, 4), draw.random() < 0.3
    given = records_at_random(draw, draw.randint(20, 120), tasks)
    second = "too" if program.of_two and draw.random() < 0.7 else ""
    if second and not ends and draw.random() < 0.5:  # what is older than a bounded run has read is late by design
        given.sort(key=lambda record: is_second(record[1]))  # nothing of it comes before all of the first
    table = "added" if program.looks_up else ""
    with Harness(program.app("in", second=second, table=table), tasks=tasks) as h:
        for key in {key for _, key, _ in given} if table else ():
            h.send(table, str(added(key)), key=key)
        for partition, key, text in given:
            h.send(second if second and is_second(key) else "in", text, key=key, partition=partition)
            fate = draw.random()
            if fate < 0.08:
                h.run(commit=draw.random() < 0.5)
            elif fate < 0.16:
                h.container.step(0.0)
            elif fate < 0.2:
                h.container.commit()
            elif fate < 0.25:
                h.crash(keep_state=draw.random() < 0.5)
            elif ends and fate < 0.26:
                h.end()
                h.restart()
        h.end()
        every_task = len(h.container.tasks)
        found = {topic: [(key, value) for key, value in h.output(topic)] for topic in program.topics}
    return program.problems([(key, text) for _, key, text in given], found, every_task, strict=not ends, adds=bool(table))


@pytest.mark.parametrize("seed", [1, 2, 18, *(pytest.param(seed, marks=pytest.mark.prove) for seed in range(3, 300) if seed != 18)])
def test_a_program_drawn_at_random_does_what_plain_loops_do(seed: int) -> None:
    program = drawn(seed)
    assert [] == live_through(program, random.Random(seed)), f"\n{program}"
