"""What `samzapy dlq` says of dead letters."""

from __future__ import annotations

from samzapy.cli.dlq import MAX_ERROR, done_before, error_cell, why_none
from samzapy.model.dead_letter import DeadLetter, Origin
from samzapy.ops.letters import Entry

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
