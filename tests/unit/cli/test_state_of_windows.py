"""`samzapy state get` of a window's store: a record's key is not an entry's."""

from __future__ import annotations

from pathlib import Path

from samzapy.cli.loading import load
from samzapy.cli.state import is_of_windows

PROGRAM = """
from samzapy.streams import App, tumbling

app = App()
lines = app.stream("lines", key=str, value=str, watermark_delay="0s")
lines.window(tumbling("10s")).count("panes").to("panes")
lines.count("counts").to("counts")
"""


def test_of_the_stores_of_a_program_those_of_windows_are_known(tmp_path: Path) -> None:
    (tmp_path / "windowed_words.py").write_text(PROGRAM)
    file = tmp_path / "job.yaml"
    file.write_text("job: j\napp: windowed_words:app\nkafka: {bootstrap.servers: 'x:1'}\n")
    loaded = load(file, None, None)
    assert (True, False) == (is_of_windows(loaded, "panes"), is_of_windows(loaded, "counts"))
