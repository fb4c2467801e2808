"""A job file that changes from run to run, on a real broker with the commands a user would type: nothing is counted twice, nothing is forgotten."""

from __future__ import annotations

import json
import secrets
import shlex
from pathlib import Path

import pytest

from tests.broker import create_topic, produce
from tests.commands import commands_in
from tests.integration.job import Job

pytestmark = pytest.mark.kafka


def write(job: Job, **sections: object) -> None:
    job.file.write_text(json.dumps({**json.loads(job.file.read_text()), **sections}))


@pytest.mark.prove
def test_an_input_comes_back_the_coordinator_topic_is_lost_and_a_store_is_dropped(kafka: str, tmp_path: Path) -> None:
    job = Job(kafka, tmp_path, f"change-{secrets.token_hex(4)}", partitions=1, containers={"count": 1})
    more = create_topic(kafka, f"{job.name}-more", 1)
    both = [{"topic": t, "value": "string"} for t in (job.input, more)]

    def feed(words: int) -> None:
        job.feed(["fox"] * words)
        produce(kafka, more, [(None, b"dog", 0)] * words)

    def run() -> str:
        done = job.run_to_end()
        assert done.returncode == 0, done.stderr
        return done.stderr

    feed(10)
    write(job, inputs=both)
    run()
    feed(5)
    write(job, inputs=both[:1])
    assert f"{more}[0] is no longer an input; if it is added again, it is read from 10" in run()

    produce(kafka, f"__samza_coordinator_{job.name}_1", [(b"container/0", b"junk", 0)])
    assert 0 == job.command("reset", str(job.file), "--coordinator", "--execute").returncode
    write(job, inputs=both)
    told = run()
    assert f"{more}[0] is an input again; it was at 10; it is read from 10" in told
    assert "superseded" not in told
    assert {(0, "fox"): 15, (0, "dog"): 15} == job.stored()

    write(job, stores={"renamed": {"key": "string", "value": "integer"}})
    refused = job.run_to_end()
    assert (2, True) == (refused.returncode, "store 'counts', whose state is in" in refused.stderr), refused.stderr
    dropped = job.command("state", "drop", str(job.file), "counts", "--execute")
    assert (0, True) == (dropped.returncode, f"deleted topic {job.changelog}" in dropped.stderr), dropped.stderr


@pytest.mark.prove
def test_the_remedy_for_a_store_that_has_no_changelog_any_more_runs_as_printed(kafka: str, tmp_path: Path) -> None:
    job = Job(kafka, tmp_path, f"scratch-{secrets.token_hex(4)}", partitions=1, containers={"count": 1})
    job.feed(["fox"] * 3)
    assert 0 == job.run_to_end().returncode

    write(job, stores={"counts": {"key": "string", "value": "integer", "changelog": False}})
    refused = job.run_to_end()
    assert (2, True) == (refused.returncode, "`changelog: false` now" in refused.stderr), refused.stderr
    (remedy,) = {command for command in commands_in(refused.stderr) if "drop" in command}
    words = shlex.split(remedy)[1:]
    shown = job.command(*words)
    assert (0, True) == (shown.returncode, f"would delete topic {job.changelog}" in shown.stderr), shown.stderr
    done = job.command(*words, "--execute")
    assert (0, True) == (done.returncode, f"deleted topic {job.changelog}" in done.stderr), done.stderr
    job.feed(["fox"])
    ended = job.run_to_end()
    assert 0 == ended.returncode, ended.stderr
    assert [1, 2, 3, 1] == [count for _, _, count in job.updates()], "it began empty, after its last record"
