"""What `samzapy dlq` says of dead letters."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from samzapy.cli.dlq import MAX_ERROR, discard, done_before, error_cell, replay, why_none
from samzapy.model.dead_letter import DeadLetter, Origin
from samzapy.ops.dead_letters import DeadLetters
from samzapy.ops.letters import Entry
from tests.unit.container.bench import JOB
from tests.unit.ops.test_letters_again import stopped

LETTER = DeadLetter(
    origin=Origin("in", 0, 1), key=b"k", value=b"v", headers=(), task="Partition 0", error="ValueError: boom", stack="", attempts=1,
    timestamp_ms=0, time_ms=0, truncated="",
)  # fmt: skip


def test_one_that_was_dealt_with_says_what_became_of_it_and_when() -> None:
    place = Origin("test-1-dead-letter", 0, 0)
    assert "in[0]@1 was sent back before: 2026-01-31 12:00:00.000 UTC" == done_before(Entry(place, LETTER, 1_769_860_800_000, None))
    assert "in[0]@1 was discarded before: 2026-01-31 12:00:00.000 UTC" == done_before(Entry(place, LETTER, None, 1_769_860_800_000))


def test_a_list_without_letters_says_why() -> None:
    assert "no dead letters" == why_none(0, only_waiting=True)
    assert "no dead letter waits: all 2 were sent back or discarded before" == why_none(2, only_waiting=True)
    assert "no dead letter matches the options; the dead-letter topic holds 2" == why_none(2, only_waiting=False)


def test_a_long_error_keeps_its_end_which_says_what_was_wrong() -> None:
    error = f"SerdeError: serde record:m:C cannot read b'{'x' * 500}': Expected `float`, got `str` - at `$.celsius`."
    assert len(error_cell(error)) <= MAX_ERROR
    assert error_cell(error).startswith("SerdeError: serde record:m:C")
    assert error_cell(error).endswith("got `str` - at `$.celsius`.")
    assert "short" == error_cell("short")


@pytest.fixture
def signals() -> Iterator[None]:
    """What signals do is put back after the test."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, action in before.items():
        signal.signal(number, action)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(("command", "method"), [(replay, "replay"), (discard, "discard")])
def test_a_sigterm_ends_it_as_ctrl_c_does(command: Callable[..., None], method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the transaction is aborted: test_one_that_ends_early_leaves_no_transaction_open."""
    bench = stopped(tmp_path / "bench")
    monkeypatch.setattr("samzapy.cli.job.kafka_log", lambda settings: bench.log)
    file = tmp_path / "job.yaml"
    file.write_text(f'{{job: {JOB.name}, id: "{JOB.id}", task: "my:Task", kafka: {{bootstrap.servers: "x:1"}}, inputs: [{{topic: in}}]}}')

    def told_to_end(*_: Any) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(DeadLetters, method, told_to_end)
    signal.signal(signal.SIGTERM, lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        command(file, everything=True, execute=True)
