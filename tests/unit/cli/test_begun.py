"""What says on a host that a run has begun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from samzapy.cli.begun import begin, begun_here
from samzapy.cli.loading import load
from samzapy.config.schema import Settings


def job_of(folder: Path, job: str = "mine", servers: str = "one:1,two:2") -> tuple[Settings, Path]:
    file = folder / f"{job}.yaml"
    document = {"job": job, "task": "m:C", "inputs": [{"topic": "a"}], "kafka": {"bootstrap.servers": servers}, "state": {"dir": str(folder / "s")}}
    file.write_text(json.dumps(document))
    return load(file, None, None).settings, file


def test_a_file_counts_only_while_its_process_lives_and_for_its_kafka_only(tmp_path: Path) -> None:
    mine, file = job_of(tmp_path)
    with begin("run-1") as begun:
        begun.of(mine)
        assert [("run-1", os.getpid())] == [(b.run_id, b.pid) for b in begun_here(mine, file)]
        assert ["run-1"] == [b.run_id for b in begun_here(*job_of(tmp_path, "mine", "two:2"))]
        assert [] == begun_here(*job_of(tmp_path, "mine", "three:3")), "the same job of another Kafka"
        assert [] == begun_here(*job_of(tmp_path, "other", "one:1"))
        (written,) = (tmp_path / "s/begun/mine-1").glob("*.json")
        content = written.read_text()
    assert [] == begun_here(mine, file)

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name, text in {"dead": content.replace(f'"pid": {os.getpid()}', f'"pid": {dead.pid}'), "junk": "[" * 5000, "fields": "{}"}.items():
        (written.parent / f"{name}.json").write_text(text)
    assert [] == begun_here(mine, file)
    with begin("run-2") as begun:
        begun.of(mine)
        assert ["run-2.json"] == [path.name for path in written.parent.iterdir()], "what is left of others is removed"


def test_a_process_is_known_by_its_command_line_before_it_has_said_anything(tmp_path: Path) -> None:
    settings, file = job_of(tmp_path)
    for words, is_seen in (("samzapy run --local mine.yaml", True), ("samzapy stop mine.yaml", False), ("samzapy run other.yaml", False)):
        with subprocess.Popen(
            [sys.executable, "-c", "input()", *words.split()], stdin=subprocess.PIPE, cwd=tmp_path
        ) as process:
            assert [process.pid] * is_seen == [begun.pid for begun in begun_here(settings, file)], words
            process.kill()


def test_a_run_that_listens_says_where(tmp_path: Path) -> None:
    mine, file = job_of(tmp_path)
    with begin("r1") as begun:
        begun.listens_at("http://127.0.0.1:1")  # it has not said yet which job it runs
        begun.of(mine)
        assert [""] == [one.url for one in begun_here(mine, file)]
        begun.listens_at("http://127.0.0.1:2")
        assert ["http://127.0.0.1:2"] == [one.url for one in begun_here(mine, file)]
    assert [] == begun_here(mine, file)
