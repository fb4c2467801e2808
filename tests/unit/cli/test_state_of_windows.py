"""`samzapy state get|scan|export` of a window's store: what people see of its slices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from samzapy.cli.loading import load
from samzapy.cli.state_of_windows import Entry, WindowStore, window_of
from samzapy.ops.inspection import committed_entries
from samzapy.testing import Harness

T0 = 1_600_000_000_000
PROGRAM = """
from samzapy.streams import App, agg, hopping

app = App()
lines = app.stream("lines", key=str, value=str, watermark_delay="0s")
lines.window(hopping("20s", every="10s"), allowed_lateness="1m").aggregate("sizes", n=agg.count(), longest=agg.max(len)).to("panes")
lines.count("counts").to("counts")
"""
Given = tuple[WindowStore, list[Entry]]


@pytest.fixture
def sizes(tmp_path: Path) -> Iterator[Given]:
    """The store of a window of a job that has read four records, and its committed entries."""
    (tmp_path / "windowed_lines.py").write_text(PROGRAM)
    file = tmp_path / "job.yaml"
    file.write_text("job: j\napp: windowed_lines:app\nkafka: {bootstrap.servers: 'x:1'}\n")
    loaded = load(file, None, None)
    with Harness(str(file)) as h:
        for key, line, second in (("ada", "to be", 3), ("ada", "or", 4), ("bob", "not", 5), ("ada", "to", 12)):
            h.send("lines", line, key=key, timestamp=T0 + second * 1000)
        h.run()
        assert window_of(loaded, "counts") is None
        node = window_of(loaded, "sizes")
        assert node is not None
        yield WindowStore(loaded, node), list(committed_entries(loaded.settings, "sizes", h.log, h.clock))


def test_people_see_slices_by_time_and_key_and_nothing_else(sizes: Given, capsys: pytest.CaptureFixture[str]) -> None:
    store, entries = sizes
    store.show(store.rows(entries, lambda key: True), as_json=False)
    ada, bob, later = capsys.readouterr().out.splitlines()
    assert len(entries) == 4, "one row says how far firing is"
    ten = "2020-09-13 12:26:40 UTC to 2020-09-13 12:26:50 UTC"
    assert ada == f'ada\t{ten}\t2 records\t{{"n": 2, "longest": 5}}\tPartition 0'
    assert bob == f'bob\t{ten}\t1 record\t{{"n": 1, "longest": 3}}\tPartition 0'
    assert later.startswith("ada\t2020-09-13 12:26:50 UTC to 2020-09-13 12:27:00 UTC\t1 record\t")


def test_json_has_the_key_the_times_and_the_accumulator_of_each_slice_of_a_key(sizes: Given, capsys: pytest.CaptureFixture[str]) -> None:
    store, entries = sizes
    wanted = store.key.encode("ada")
    store.show(store.rows(entries, lambda key: key == wanted), as_json=True)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    first = {"key": "ada", "value": {"n": 2, "longest": 5}, "start": T0, "end": T0 + 10_000, "records": 2}
    assert rows[0] == {**first, "task": "Partition 0", "partition": 0}
    assert [("ada", T0), ("ada", T0 + 10_000)] == [(row["key"], row["start"]) for row in rows]
