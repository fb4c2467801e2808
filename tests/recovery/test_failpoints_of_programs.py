"""Failpoints between the stages of a program: processes that end on either side of sending a mark, and of removing what was read of an internal topic.

In the harness at each alone; on a real broker all of them in one life, in which a container is killed at each, and another one takes its place.
"""

from __future__ import annotations

import random
import secrets
import threading
from pathlib import Path

import pytest

from samzapy import failpoints
from samzapy.testing import Harness
from tests.integration.random_job import RandomJob
from tests.random_programs import drawn, records_at_random
from tests.unit.streams.test_planted_stages import purged

STAGED, TASKS = 7, 3  # a program of three stages, with windows behind each of the last two
RULES = ("marks.sent=kill@3", "marks.sent=kill@17", "commit.C0.cut=kill@29", "marks.sent=kill@40", "purge.before=kill@1", "purge.after=kill@1", "purge.after=kill@2")


class Died(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("nth", [1, *(pytest.param(n, marks=pytest.mark.prove) for n in (2, 5))])
@pytest.mark.parametrize("point", ["marks.sent", "purge.after", *(pytest.param(name, marks=pytest.mark.prove) for name in ("purge.before", "commit.C0.cut"))])
def test_a_program_is_exact_whichever_side_of_a_mark_or_a_purge_it_dies_on(point: str, nth: int) -> None:
    draw, program, hits = random.Random(f"{point}{nth}"), drawn(STAGED), 0
    given = records_at_random(draw, 60, TASKS)

    def strike(name: str) -> None:
        nonlocal hits
        hits += name == point
        if name == point and hits == nth:
            raise Died

    with Harness(program.app("in"), tasks=TASKS) as h, failpoints.calling(strike):
        for number, (partition, key, text) in enumerate(given):
            h.send("in", text, key=key, partition=partition)
            try:
                if number % 7 == 6:
                    h.run()
                    purged(h)
            except Died:
                h.crash(keep_state=draw.random() < 0.5)
        h.end()
        every_task = len(h.container.tasks)
        found = {topic: list(h.output(topic)) for topic in program.topics}
    assert hits >= nth
    assert [] == program.problems([(key, text) for _, key, text in given], found, every_task), f"\n{program}"


@pytest.mark.prove
@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_containers_that_are_killed_around_marks_and_purges(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guarantee: str) -> None:
    """Each container removes what it has read 30 s after its start, and then every 30 s."""
    job = RandomJob(kafka, tmp_path, f"marks-{secrets.token_hex(4)}", STAGED, guarantee=guarantee)
    hits = tmp_path / "hits"
    hits.mkdir()
    for name, value in (("", ",".join(RULES)), ("_OK", "1"), ("_DIR", str(hits))):
        monkeypatch.setenv(f"SAMZAPY_FAILPOINTS{name}", value)
    rules, pause = failpoints.parsed(",".join(RULES)), threading.Event()

    def left() -> list[str]:
        return [str(r) for r in rules if not (f := r.file(hits)).exists() or f.stat().st_size < r.nth]

    with job.running("--local") as run:
        for _ in range(400):
            if not left():
                break
            job.send(20)
            run.until(lambda s: True)
            pause.wait(0.5)
        assert [] == left()
        run.until_caught_up(job.ends())
        assert run.stop() == 0
    for name in ("", "_OK", "_DIR"):
        monkeypatch.delenv(f"SAMZAPY_FAILPOINTS{name}")
    assert (tmp_path / "run.log").read_text().count("strikes in container") == len(RULES)
    assert [] == job.problems_at_the_end()
