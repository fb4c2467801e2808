"""Keys in the order of time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy.model.event_time import END, NEVER
from samzapy.model.layout import sized, split_sized, time_bytes, time_of

TIMES = st.integers(NEVER, END) | st.sampled_from([NEVER, -1, 0, 1, 255, 256, END])


@given(TIMES, TIMES)
def test_the_order_of_bytes_is_the_order_of_times(one: int, other: int) -> None:
    assert (time_bytes(one) < time_bytes(other)) == (one < other)
    assert time_of(time_bytes(one) + b"key") == one


@given(st.binary(max_size=300), st.binary(max_size=300), st.binary(max_size=5))
def test_no_key_is_a_part_of_another(one: bytes, other: bytes, rest: bytes) -> None:
    assert split_sized(sized(one) + rest) == (one, rest)
    if one != other:
        assert not sized(one).startswith(sized(other))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x02a"])
def test_what_is_no_key_after_its_length_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="is not a key after its length"):
        split_sized(data)
