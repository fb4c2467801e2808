"""How many records a transaction holds: made smaller by slow brokers, with steps back that a steady quota never leaves again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samzapy.plan.transaction_size import GROW_BY, NO_LIMIT, QUICK, QUICK_TO_GROW, SLOW, TransactionSize, why_smaller

Step = tuple[str, int, float]  # what became of it, how many records it held, and the share of its time that the brokers took


def after(size: TransactionSize, steps: Sequence[Step]) -> TransactionSize:
    for what, held, share in steps:
        size = size.committed(held, share) if what == "committed" else size.failed(held, share)
    return size


QUICK_ONE: Step = ("committed", 100, 0.1)


@pytest.mark.parametrize(
    ("steps", "fits"),
    [
        ([("failed", 800, 1.0)], 400),
        ([("failed", 800, 1.0), ("failed", 400, 1.0), ("failed", 200, 1.0)], 100),
        ([("failed", 800, 0.49)], NO_LIMIT),  # it failed for another reason
        ([("failed", 1, 1.0)], NO_LIMIT),  # it cannot be smaller
        ([("failed", 0, 1.0)], NO_LIMIT),
        ([("committed", 800, 0.5)], 400),  # it worked, but the next may not
        ([("committed", 800, 0.49)], NO_LIMIT),
        ([("failed", 200, 1.0), *[QUICK_ONE] * 3], 100),
        ([("failed", 200, 1.0), *[QUICK_ONE] * 4], 200),
        ([("failed", 200, 1.0), *[QUICK_ONE] * 100], 200),  # those of 100 records are not full any more: of 200 nothing is known
        ([("failed", 200, 1.0), *[("committed", 99, 0.1)] * 100], 100),  # not full: they show nothing
        ([("failed", 200, 1.0), *[("committed", 0, 0.0)] * 100], 100),
        ([("failed", 200, 1.0), *[("committed", 100, 0.25)] * 100], 100),  # twice as many would take too long
        ([("failed", 200, 1.0), *[QUICK_ONE] * 3, ("committed", 100, 0.3), *[QUICK_ONE] * 3], 100),  # in a row
        ([("failed", 200, 1.0), *[QUICK_ONE] * 3, ("failed", 100, 1.0), ("committed", 50, 0.1)], 50),
    ],
)  # fmt: skip
def test_what_fits_the_brokers(steps: Sequence[Step], fits: int) -> None:
    assert fits == after(TransactionSize(), steps).fits
    assert (0.5, 0.25, 4) == (SLOW, QUICK, QUICK_TO_GROW)  # what the numbers here are made of


def test_it_is_told_of_while_it_makes_a_difference() -> None:
    size = TransactionSize().failed(200, 1.0)
    assert [True, True, False] == [size.is_felt, size.committed(100, 0.3).is_felt, size.committed(7, 0.1).is_felt]


def test_the_search_for_a_record_goes_back_to_what_fits_the_brokers_and_not_above() -> None:
    size = TransactionSize().failed(2000, 1.0).divided(1000, 8)
    limits = []
    for _ in range(4):
        size = size.committed(size.limit, 0.3)
        limits.append(size.limit)
    assert [125, 500, 500, 1000] == limits
    assert not size.is_searching
    assert 4 == GROW_BY


@given(
    rate=st.integers(1, 5000),
    overhead=st.floats(0, 4),
    natural=st.integers(1, 200_000),
    patience_s=st.sampled_from([10.0, 60.0]),
)
def test_under_any_quota_it_soon_gets_on_and_never_fails_again(rate: int, overhead: float, natural: int, patience_s: float) -> None:
    """`rate`: records that the brokers take in a second; `overhead`: seconds of each commit beside that; `natural`: records without a limit."""
    size, failures, committed = TransactionSize(), 0, 0
    for _ in range(60):
        held = min(natural, size.limit)
        seconds = overhead + held / rate
        if seconds > patience_s:
            size = size.failed(held, 1.0)
            failures += 1
            assert committed == 0, "it went back to a size that does not fit"
        else:
            size = size.committed(held, seconds / patience_s)
            committed += 1
    assert failures <= 18
    assert committed >= 42


def test_when_the_quota_is_lifted_it_grows_by_doubling() -> None:
    size, sizes = TransactionSize(fits=100), []
    for _ in range(16):
        size = size.committed(size.limit, 0.01)
        sizes.append(size.fits)
    assert [100] * 3 + [200] * 4 + [400] * 4 + [800] * 4 + [1600] == sizes


def test_what_is_said() -> None:
    assert (
        "commits take the brokers too long: one with 15,875 records took 60 s (the wait ended at 12:31:05 UTC), and commit.timeout is 60 s. So a transaction "
        "holds at most 7,937 records now. See whether a broker is away, this host's clock was set back, or a quota holds this client back "
        "(kafka-configs.sh --bootstrap-server BROKER --describe --entity-type clients, and users); lift the quota, raise "
        "commit.timeout, or write fewer bytes per record"
    ) == why_smaller(15_875, 60.2, "12:31:05 UTC", 7937, "commit.timeout is 60 s")
    assert "one with 2 records took 9 s (the wait ended at 1:00), and containers.lease is 8 s. So a transaction holds at most 1 record now." in why_smaller(
        2, 9, "1:00", 1, "containers.lease is 8 s"
    )
