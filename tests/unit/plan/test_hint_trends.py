"""What the rules of hints see over minutes."""

from __future__ import annotations

import pytest

from samzapy.plan.hint_trends import growth_mib, is_dying, memory_growth_mib, sudden_growth_mib

MIB = 2**20


def test_memory_grows_only_if_it_does_so_for_ten_minutes_without_a_pause() -> None:
    leak = [(10.0 * n, 700 * MIB + int(5 * n * MIB)) for n in range(61)]
    filled = [(10.0 * n, 700 * MIB + min(200, 20 * n) * MIB) for n in range(61)]
    assert 30.0 == pytest.approx(growth_mib(leak))
    assert 0.0 == growth_mib(filled)
    assert 0.0 == growth_mib(leak[:30]), "five minutes of it"
    assert 0.0 == growth_mib([(at, 700 * MIB) for at, _ in leak])


def test_memory_that_grows_far_beyond_what_caches_take_is_told_soon() -> None:
    leak = [(10.0 * n, (100 + 150 * n) * MIB) for n in range(4)]
    assert 900.0 == pytest.approx(sudden_growth_mib(leak, 74 * MIB))
    assert 0.0 == sudden_growth_mib(leak, 300 * MIB), "its caches may take so much"
    assert 0.0 == sudden_growth_mib(leak[:2], 0), "ten seconds of it"
    assert 0.0 == sudden_growth_mib([*leak, (40.0, leak[-1][1])], 74 * MIB), "it grows no more"


def test_a_container_that_has_not_died_for_a_while_is_not_dying_any_more() -> None:
    assert is_dying([1000, 3000, 5000], 24_000)
    assert not is_dying([1000, 3000, 5000], 26_000)
    assert is_dying([0, 100_000, 200_000], 390_000), "one death every hundred seconds"
    assert not is_dying([], 5000)


def test_a_cache_that_fills_is_no_leak() -> None:
    leak = [(10.0 * n, 700 * MIB + int(5 * n * MIB)) for n in range(61)]
    assert 0.0 == memory_growth_mib(leak, 900 * MIB)
    assert 30.0 == pytest.approx(memory_growth_mib(leak, 800 * MIB))
