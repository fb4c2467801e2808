"""A dead letter of a table whose key has a newer record there: sent back, the old value would replace it."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.model.dead_letter import Origin
from samzapy.ops import newer_records
from samzapy.ops.dead_letters import DeadLetters
from samzapy.ops.newer_records import newer_in
from tests.unit.container.bench import JOB, Bench
from tests.unit.ops.test_dead_letters import Fragile, quiet, records


def fed(tmp_path: Path, policy: str = "delete") -> Bench:
    """`boom1` failed twice and `boom2` once, none read since; `boom3` failed in both partitions, and a newer record of it is in one of them."""
    bench = Bench(tmp_path, Fragile, partitions=2, on_error="dead_letter")
    bench.cluster.configure("in", {"cleanup.policy": policy})
    container = bench.start()
    bench.feed(("boom1", 1), ("boom2", 2), ("boom3", 3), ("boom1", 4), partition=0)
    bench.feed(("boom3", 5), ("good", 6), partition=1)
    bench.drain(container)
    bench.log.plain_producer("others").send("in", b"7", b"boom3", 1)
    return bench


def letters_of(bench: Bench, tables: tuple[str, ...]) -> DeadLetters:
    letters = DeadLetters(JOB, ("in",), bench.log, bench.clock)
    letters.newer = newer_in(tables, bench.log, bench.clock)
    return letters


@pytest.mark.parametrize(("policy", "tables"), [("delete", ("in",)), ("compact", ()), ("compact,delete", ())])
def test_what_would_replace_a_newer_record_goes_back_only_if_that_is_asked_for(policy: str, tables: tuple[str, ...], tmp_path: Path) -> None:
    bench = fed(tmp_path, policy)
    letters = letters_of(bench, tables)
    letters.read()
    with pytest.raises(ConfigurationError, match=r"in\[1\]@0: in has a newer record of its key, at offset 2\. Sent back, the old value would replace") as refused:
        letters.replay([Origin("in", 1, 0)], quiet)
    assert "--over-newer" in refused.value.remedy
    sent = {e.letter.origin for e in letters.replay(None, quiet)}
    assert sent == {Origin("in", 0, 1), Origin("in", 0, 2), Origin("in", 0, 3)}, "of two of one key the newer one; each partition for itself"
    assert {str(e.letter.origin) for e in letters.read().entries if e.is_waiting} == {"in[0]@0", "in[1]@0"}
    assert len(letters.passed_by(letters.read())) == 2
    assert [1, 5] == sorted(int.from_bytes(e.letter.value or b"") for e in DeadLetters(JOB, ("in",), bench.log, bench.clock).replay(None, quiet))


def test_a_stream_takes_every_record(tmp_path: Path) -> None:
    bench = fed(tmp_path)
    assert len(letters_of(bench, ()).replay(None, quiet)) == 5
    assert len(records(bench)) == 4 + 4


def test_a_long_look_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(newer_records, "MANY_OFFSETS", 3)
    with caplog.at_level("INFO", "samzapy"):
        letters_of(fed(tmp_path), ("in",)).read()
    assert "looking through 5 offsets of in for newer records of these keys" in caplog.text
