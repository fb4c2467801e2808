"""Durations and sizes: written, read, and written again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy.config.units import (
    BYTES,
    MS,
    format_duration,
    format_size,
    nearest_duration,
    nearest_size,
    parse_duration,
    parse_size,
)


@given(st.integers(0, 10**14), st.sampled_from(sorted(MS)))
def test_a_duration_is_its_number_times_its_unit(number: int, unit: str) -> None:
    assert number * MS[unit] == parse_duration(f"{number}{unit}")


@given(st.integers(0, 10**14), st.sampled_from(sorted(BYTES)))
def test_a_size_is_its_number_times_its_unit(number: int, unit: str) -> None:
    assert number * BYTES[unit] == parse_size(f"{number}{unit}")


@given(st.integers(0, 10**13))
def test_what_is_written_reads_the_same(value: int) -> None:
    assert value == parse_duration(format_duration(value))
    assert value == parse_size(format_size(value))


@given(st.text())
def test_any_other_text_is_neither(text: str) -> None:
    for parse, nearest in ((parse_duration, nearest_duration), (parse_size, nearest_size)):
        assert parse(text) is None or text == text.strip()
        meant = nearest(text)
        assert meant == "" or parse(meant) is not None


@pytest.mark.parametrize(("text", "ms"), [("500ms", 500), ("10s", 10_000), ("5m", 300_000), ("2h", 7_200_000), ("7d", 604_800_000)])
def test_the_contracts_durations(text: str, ms: int) -> None:
    assert ms == parse_duration(text)


@pytest.mark.parametrize("text", ["", "10", "s", "10 s", "-1s", "1.5s", "10S", "10sec", "٣s", "1" * 16 + "s", "10s\n"])
def test_what_is_no_duration(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize("text", ["", "64", "64MB", "64mib", "64 MiB", "-1B", "1.5GiB"])
def test_what_is_no_size(text: str) -> None:
    assert parse_size(text) is None


@pytest.mark.parametrize(("text", "meant"), [("10 sec", "10s"), ("5 minutes", "5m"), ("1000", "1000ms"), ("soon", "")])
def test_what_was_meant(text: str, meant: str) -> None:
    assert meant == nearest_duration(text)
