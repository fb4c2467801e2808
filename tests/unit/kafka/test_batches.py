"""A producer's batches fit the smallest of the topics that it writes."""

from __future__ import annotations

import pytest

from samzapy.kafka.log import batch_bytes


@pytest.mark.parametrize(
    ("wanted", "limits", "expected"),
    [
        (1_000_000, [], 1_000_000),
        (1_000_000, [1_048_588, 20_000], 20_000),
        (10_000, [1_048_588, 20_000], 10_000),
        (1_000_000, [1_048_588, 10], 1000),
    ],
)
def test_batches_fit_every_topic(wanted: int, limits: list[int], expected: int) -> None:
    assert expected == batch_bytes(wanted, limits)
