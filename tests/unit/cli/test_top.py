"""What `samzapy top` shows of a status document."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from samzapy.cli.top import in_order, rate, screen, seconds, size

RESTORE = {"source": "changelog", "reason": "no local store", "records": 0, "seconds": 2.0, "remaining": 300, "needed": 1000, "rate": 350.0, "eta_s": 0.9}


def task(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "state": "RUNNING", "container": 0, "lag": 0, "processed": 5, "reason": "", "stores": {}, **more}


STATUS: dict[str, Any] = {
    "job": "views", "id": "1", "state": "DEGRADED", "coordinator": "http://127.0.0.1:1", "reason": "", "notes": ["a [red]note[/red]"],
    "hints": [{"severity": "act", "sentence": "Partition 3 gets 61 % of the records.", "remedy": "samzapy scale JOB.yaml --containers 4"}],
    "rates": {"in": 48_200.4, "out": 3.25, "lag": 12_403, "behind_s": 0.8, "caught_up_in_s": 14.0, "commits": {"p50_s": 0.041, "p99_s": 0.096}},
    "containers": [
        {"id": 0, "state": "RUNNING", "host": "a\x1b[2J", "pid": 7, "tasks": ["Partition 0"], "loop": {"process": 0.61, "wait_input": 0.39},
         "badge": "OK", "memory_bytes": 600 << 20, "restarts": 1}
    ],
    "tasks": [
        task("Partition 0", lag=3), task("Partition 1", lag=None), task("Partition 2", lag=88_000, rate=120.0, us=840.0, busy=0.1),
        task("Partition 3", state="RESTORING", stores={"counts": {"restore": RESTORE}}),
    ],
}  # fmt: skip


def shown(width: int = 160, **options: Any) -> str:
    output = io.StringIO()
    Console(file=output, width=width, markup=False).print(screen(STATUS, **{"sort": "behind", "limit": 30, **options}))
    return output.getvalue()


def test_the_words_and_numbers_are_there() -> None:
    text = shown()

    for words in (
        "views-1  DEGRADED", "in 48,200/s   out 3.2/s   behind 12,403 records, 800 ms, caught up in 14.0 s", "p50 41 ms, p99 96 ms",
        "a [red]note[/red]",
        "▲ Partition 3 gets 61 % of the records.", "--containers 4", "process 61 %, wait input 39 %", "600 MiB", "70 %  350/s, 900 ms left", "a\\x1b[2J",
    ):  # fmt: skip
        assert words in text, words
    assert "\x1b[2J" not in text


@pytest.mark.parametrize("width", [80, 120])
def test_a_narrow_terminal_shows_fewer_columns_and_no_cut_names_or_numbers(width: int) -> None:
    text = shown(width=width)

    assert "…" not in text
    assert {f"Partition {n}" for n in range(4)} <= {line[:11] for line in text.splitlines()}
    for words in ("RESTORING", "88,000", "wait input"):
        assert words in text, words
    assert max(map(len, text.splitlines())) <= width
    assert ("PROCESSED" in text) == (width > 80)


def test_a_few_records_behind_is_not_told_as_trouble() -> None:
    def told(**rates: float) -> str:
        output = io.StringIO()
        status = {**STATUS, "rates": {**STATUS["rates"], "caught_up_in_s": None, "lag": 2, "behind_s": 0.8, "lag_rate": 0.1, "in": 8.0, **rates}}
        Console(file=output, width=160, markup=False).print(screen(status, sort="behind", limit=30))
        return output.getvalue()

    assert "behind 2 records, 800 ms, keeps up" in told()
    assert "not shrinking" in told(lag_rate=3.0)
    assert "not shrinking" in told(behind_s=30.0)


def test_the_largest_come_first_and_the_unknown_last() -> None:
    assert ["Partition 2", "Partition 0", "Partition 3", "Partition 1"] == [t["name"] for t in in_order(STATUS["tasks"], "behind")]
    assert "2 more tasks" in shown(limit=2)


@pytest.mark.parametrize(("s", "text"), [(None, "-"), (0.0, "0 ms"), (14.0, "14.0 s"), (180.0, "3 min"), (10_800.0, "3.0 h")])
def test_durations(s: float | None, text: str) -> None:
    assert text == seconds(s)


def test_rates_and_sizes() -> None:
    assert ("-", "99.9/s", "1,000/s") == (rate(None), rate(99.9), rate(1000.0))
    assert ("-", "1 MiB", "2.0 GiB") == (size(None), size(1 << 20), size(2 << 30))
