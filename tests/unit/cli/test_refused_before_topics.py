"""A run whose program cannot go on from its checkpoints is refused before it creates topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import StateMismatch
from samzapy.cli.loading import load
from samzapy.cli.run_refusals import refuse_before_topics
from samzapy.config.load import LoadedJob
from samzapy.testing import Harness

PROGRAM = """
from samzapy.streams import App, tumbling

app = App()
lines = app.stream("lines", key=str, value=str, watermark_delay="0s")
lines.window(tumbling("10s")).count("{}").to("panes", partitions=1)
"""


def program(folder: Path, store: str) -> LoadedJob:
    (folder / f"of_{store}.py").write_text(PROGRAM.format(store))
    (folder / "job.yaml").write_text(f"job: j\napp: of_{store}:app\nkafka: {{bootstrap.servers: 'x:1'}}\n")
    return load(folder / "job.yaml", None, None)


def test_a_renamed_window_is_refused_before_its_changelog_is_made(tmp_path: Path) -> None:
    same = program(tmp_path, "tens")
    with Harness(str(tmp_path / "job.yaml")) as h:
        h.send("lines", "a", key="ada", timestamp=1_600_000_000_000)
        h.run()
        h.stop()
        refuse_before_topics(same, h.log, h.clock)
        with pytest.raises(StateMismatch, match=r"'tens' has state.*is it 'renamed'") as refused:
            refuse_before_topics(program(tmp_path, "renamed"), h.log, h.clock)
        assert "samzapy state drop JOB.yaml tens" in refused.value.remedy
        assert "the records of its open windows are deleted" in refused.value.remedy
        with h.log.admin() as admin:
            assert {} == admin.topics(["j-1-renamed-changelog"])
