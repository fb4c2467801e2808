"""`samzapy state scan|export` where there is nothing to show: people are told so, and what reads stdout gets nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.cli.state import export, scan
from samzapy.testing import Harness

PROGRAM = """
from samzapy.streams import App, tumbling

app = App()
lines = app.stream("lines", key=str, value=str, watermark_delay="0s")
lines.window(tumbling("20s")).count("sizes")
lines.count("counts")
"""


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("store", ["counts", "sizes"])
def test_an_empty_store_is_said_to_be_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], store: str, as_json: bool
) -> None:
    (tmp_path / "nothing_yet.py").write_text(PROGRAM)
    file = tmp_path / "job.yaml"
    file.write_text("job: j\napp: nothing_yet:app\nkafka: {bootstrap.servers: 'x:1'}\n")
    with Harness(str(file)) as h:
        h.run()
        capsys.readouterr()  # what the run logs, where an earlier test has set that up
        monkeypatch.setattr("samzapy.cli.job.kafka_log", lambda settings: h.log)
        for show in (scan, export):
            show(file, store, as_json=as_json)
            assert ("", f"store '{store}' has no committed entry: it is empty\n") == capsys.readouterr()
        h.send("lines", "to be", key="ada", timestamp=1_600_000_000_000)
        h.run()
        capsys.readouterr()
        scan(file, store, "b", as_json=as_json)
        assert ("", f"store '{store}' has no committed entry whose key begins with 'b'\n") == capsys.readouterr()
        for show in (scan, export):
            show(file, store, as_json=as_json)
            told = capsys.readouterr()
            assert ("ada" in told.out, "") == (True, told.err)
