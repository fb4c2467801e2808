"""Programs drawn at random in real processes, on random records, with three SIGKILLs at random times: what comes out is what plain loops make of it.

Each run draws anew; a failure names the job, by which its records and its kills are drawn, and shows the program.
"""

from __future__ import annotations

import random
import secrets
import threading
from pathlib import Path

import pytest

from tests.figures import Tell
from tests.integration.random_job import RandomJob
from tests.integration.test_rows_of_streams import kill_one

pytestmark = [pytest.mark.kafka, pytest.mark.prove]
PARTS, RECORDS = 8, 80


@pytest.mark.parametrize("kills", [0, 3])
@pytest.mark.parametrize("draw", range(3))
def test_a_program_drawn_at_random_does_what_plain_loops_do(kafka: str, tmp_path: Path, tell: Tell, draw: int, kills: int) -> None:
    seed = secrets.randbits(32)
    job = RandomJob(kafka, tmp_path, f"random-{secrets.token_hex(4)}", seed)
    chance, pause = random.Random(f"{job.name}/kills"), threading.Event()
    at = chance.sample(range(PARTS), kills)
    with job.running("--local") as run:
        for part in range(PARTS):
            job.send(RECORDS)
            if part in at:
                kill_one(run, chance)
            pause.wait(chance.random() * 0.5)
        run.until_caught_up(job.ends())
        assert run.stop() == 0
    tell(f"{job.name}, program {seed}, {len(job.program.topics)} outputs, {len(job.sent)} records, {kills} kills")
    assert [] == job.problems_at_the_end()
