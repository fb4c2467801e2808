"""`samzapy init`: a job that runs, to start from: task, job file, unit test, and how to see it work."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from samzapy.api.errors import ConfigurationError
from samzapy.cli import init_streams
from samzapy.cli.common import AsJson, print_json, say

FALLBACK = "my-job"
MAX_NAME = 60  # of the 80 that a job's name may have: topics are named after it

TASK = '''"""Counts the records of each key."""

from samzapy import StreamTask


class Counter(StreamTask):
    """One object for each partition of the input; state that must survive a crash belongs in a store, not in `self`."""

    def init(self, context):
        self.counts = context.get_store("counts")

    def process(self, envelope, collector, coordinator):
        n = self.counts.get(envelope.key, 0) + 1
        self.counts.put(envelope.key, n)
        collector.send("{job}-counts", n, key=envelope.key)
'''

JOB = """# All keys: `samzapy schema`, or the reference of samzapy. `samzapy validate {module}.yaml` finds every mistake at once.
job: {job}
task: {module}:Counter                    # module:Class; this folder is importable
kafka: {{bootstrap.servers: "${{KAFKA_BOOTSTRAP:-localhost:9092}}"}}
inputs:
  - {{topic: {job}-events, key: string, value: string}}
outputs:
  - {{topic: {job}-counts, key: string, value: integer, partitions: 2}}
stores:
  counts: {{key: string, value: integer}}   # in RocksDB on this machine, with a changelog in Kafka
"""

TEST = """from pathlib import Path

from samzapy.testing import Harness


def test_counts_go_on_after_a_crash():
    with Harness(Path(__file__).with_name("{module}.yaml")) as h:
        h.send("{job}-events", "hello", key="ada")
        h.run()
        h.crash()
        h.send("{job}-events", "again", key="ada")
        h.run()
        assert h.output("{job}-counts") == [("ada", 1), ("ada", 2)]
"""

README = """# {job}

`{module}.py` is the task, `{module}.yaml` the job, `test_{module}.py` its test: `pytest` runs it on an in-memory Kafka.

To see it work, with a Kafka (`samzapy dev kafka start` gives you one on localhost:9092; `KAFKA_BOOTSTRAP=HOST:PORT` names another):

```sh
printf 'ada\\thello\\nbob\\thi\\nada\\tagain\\n' | samzapy send {job}-events --key --partitions 2
samzapy topics {module}.yaml --create && samzapy run {module}.yaml --local --until-end
samzapy tail {job}-counts --from-beginning --value-serde integer
```

Without `--until-end` it runs until Ctrl-C, without `--local` on Spark; `samzapy status {module}.yaml` and `samzapy lag {module}.yaml` show its state.
"""


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty directory.", show_default=False)],
    streams: Annotated[bool, typer.Option("--streams", help="A program of streams and tables, instead of a task.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create a working example job in a new directory: task, job file, unit test, README."""
    written = write_skeleton(directory, streams)
    for name in written:
        say(f"wrote {directory / name}")
    say(f"next: {change_to(directory)}")
    say("then: README.md there says how to see the job work")
    if as_json:
        print_json({"directory": str(directory), "files": written})


def change_to(directory: Path) -> str:
    """The line for a shell."""
    name = str(directory)
    return shlex.join(["cd", *(["--"] if name.startswith("-") else []), name])


def write_skeleton(directory: Path, streams: bool = False) -> list[str]:
    """The files of a new job, named after the directory; returns their names. `streams`: of a program of streams.

    Raises:
        ConfigurationError: something is there already, or cannot be written.
    """
    job = job_name(directory.absolute().resolve().name)
    names = {"job": job, "module": module_name(job)}
    code, job_file, test, readme = (
        (init_streams.PROGRAM, init_streams.JOB, init_streams.TEST, init_streams.README) if streams else (TASK, JOB, TEST, README)
    )
    files = {"{module}.py": code, "{module}.yaml": job_file, "test_{module}.py": test, "README.md": readme}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        there = sorted(p.name for p in directory.iterdir())
        if there:
            shown = ", ".join(there[:3]) + (" …" if len(there) > 3 else "")
            raise ConfigurationError(f"{directory} is not empty: it has {shown}.", "Name a new directory, or an empty one.")
        for name, text in files.items():
            (directory / name.format(**names)).write_text(text.format(**names), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{directory} cannot be written: {error.strerror}.", "Name a directory that you may write.") from None
    return [name.format(**names) for name in files]


def job_name(directory: str) -> str:
    """A job's name made of a directory's."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", directory).strip("-_")[:MAX_NAME] or FALLBACK


def module_name(job: str) -> str:
    """A module's name made of a job's, which hides no module that is there already."""
    name = re.sub(r"\W+", "_", job).lower()
    taken = not name.isidentifier() or keyword.iskeyword(name) or name in sys.stdlib_module_names or importlib.util.find_spec(name)
    return f"job_{name}" if taken else name
