"""A folder with a task module, so that the job files of these tests name classes that are there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TASKS = """
from samzapy.api.task import StreamTask

class Good(StreamTask):
    def process(self, envelope, collector, coordinator): ...

class NoTask: ...

class NeedsArguments(StreamTask):
    def __init__(self, size): ...
    def process(self, envelope, collector, coordinator): ...

class NoProcess(StreamTask): ...

class Batches(StreamTask):
    def process_batch(self, envelopes, collector, coordinator): ...

class NarrowBatches(StreamTask):
    def process_batch(self, envelopes, collector): ...

class Coroutine(StreamTask):
    async def process(self, envelope, collector, coordinator): ...

class Codec:
    def encode(self, value): ...
    def decode(self, data): ...

class HalfCodec:
    def encode(self, value): ...
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory and the job file's folder; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "cfg_tasks.py").write_text(TASKS)
    (tmp_path / "cfg_broken.py").write_text("import os\n\nraise ValueError('boom\\nsecond line')\n")
    (tmp_path / "cfg_syntax.py").write_text("def f(:\n")
    (tmp_path / "cfg_needs.py").write_text("import a_module_that_is_not_there\n")
    os.mkfifo(tmp_path / "a_pipe")
    (tmp_path / "no_json.avsc").write_text("{")
    (tmp_path / "user.avsc").write_text('{"type": "string"}')
    return tmp_path
