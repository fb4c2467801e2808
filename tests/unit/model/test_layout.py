"""Keys in the order of time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from samzapy.model.event_time import END, NEVER
from samzapy.model.layout import time_bytes, time_of

TIMES = st.integers(NEVER, END) | st.sampled_from([NEVER, -1, 0, 1, 255, 256, END])


@given(TIMES, TIMES)
def test_the_order_of_bytes_is_the_order_of_times(one: int, other: int) -> None:
    assert (time_bytes(one) < time_bytes(other)) == (one < other)
    assert time_of(time_bytes(one) + b"key") == one
