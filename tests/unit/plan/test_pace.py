"""Rates and what follows from them."""

from __future__ import annotations

import pytest

from samzapy.plan.pace import Pace, badge, behind_s, caught_up_in_s, eta_s, shares


def test_a_rate_is_over_about_ten_seconds() -> None:
    pace = Pace()
    for at_s in range(0, 61, 2):
        pace = pace.with_report(float(at_s), {"processed": 100.0 * min(at_s, 40)})

    assert {"processed": 0.0} == pace.rates
    assert pace.marks[0].at_s >= 48.0


def test_a_new_process_begins_anew() -> None:
    pace = Pace().with_report(0.0, {"processed": 500.0}).with_report(2.0, {"processed": 700.0})
    assert {"processed": 100.0} == pace.rates
    assert {} == pace.with_report(4.0, {"processed": 3.0}).rates


def test_shares_add_up_and_give_the_word() -> None:
    of_loop = shares({"process": 0.7, "commit": 0.2, "wait_input": 0.1, "sent": 400.0})
    assert 1.0 == pytest.approx(sum(of_loop.values()))
    assert "BUSY" == badge(of_loop)
    assert "HELD BACK" == badge(shares({"process": 0.5, "wait_output": 0.5}))
    assert "IDLE" == badge(shares({"wait_input": 1.0}))
    assert "OK" == badge(shares({"process": 0.5, "wait_input": 0.5}))
    assert "" == badge(shares({}))


def test_behind_is_told_in_seconds_while_records_wait() -> None:
    assert 0.0 == behind_s(0, 0, 10_000)
    assert 4.0 == behind_s(7, 6_000, 10_000)
    assert behind_s(7, 0, 10_000) is None
    assert behind_s(None, 6_000, 10_000) is None


def test_when_it_is_caught_up() -> None:
    assert 5.0 == caught_up_in_s(100, -20.0)
    assert caught_up_in_s(100, 3.0) is None
    assert 0.0 == caught_up_in_s(0, 0.0)


def test_when_a_restore_is_done() -> None:
    assert 6.0 == eta_s({"needed": 1000, "remaining": 600, "seconds": 4.0})
    assert eta_s({"needed": 1000, "remaining": 1000, "seconds": 4.0}) is None
