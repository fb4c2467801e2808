"""The scheduler of simulations: who goes when, and what a frozen or a killed process does."""

from __future__ import annotations

import threading

import pytest

from samzapy import failpoints
from tests.simulation.baton import FOREVER, Baton, SimProcess, Stuck
from tests.simulation.process import BatonLock


def story(seed: int) -> tuple[Baton, list[str]]:
    return Baton(seed), []


def at_intervals(baton: Baton, told: list[str], name: str, seconds: float, times: int) -> None:
    for _ in range(times):
        baton.sleep(seconds)
        told.append(f"{name}@{baton.now:g}")


def test_whoever_is_due_first_goes_next_and_time_passes_only_when_nobody_is_due() -> None:
    baton, told = story(1)
    baton.spawn("slow", lambda: at_intervals(baton, told, "slow", 3.0, 2))
    baton.spawn("fast", lambda: at_intervals(baton, told, "fast", 2.0, 2))
    baton.sleep(10.0)

    assert ["fast@2", "slow@3", "fast@4", "slow@6"] == told
    assert 10.0 == baton.monotonic()


def test_the_seed_decides_among_those_that_are_due_together() -> None:
    def order(seed: int) -> str:
        baton, told = story(seed)
        for name in "abcd":
            baton.spawn(name, lambda name=name: told.append(name))  # type: ignore[misc]
        baton.sleep(1.0)
        return "".join(told)

    assert [order(seed) for seed in range(20)] == [order(seed) for seed in range(20)]
    assert len({order(seed) for seed in range(20)}) > 5


def test_who_waits_for_an_event_goes_on_as_soon_as_it_is_set() -> None:
    baton, told = story(1)
    event = threading.Event()

    def wait() -> None:
        baton.wait(event, 60.0)
        told.append(f"heard@{baton.now:g}")

    actor = baton.spawn("waiting", wait)
    baton.sleep(2.0)
    event.set()
    actor.join()

    assert ["heard@2"] == told
    assert not actor.is_alive()


def test_a_killed_process_ends_where_it_stands_and_nothing_it_does_on_the_way_out_takes_time() -> None:
    baton, told = story(1)
    process = SimProcess("p", on_end=lambda: told.append("its disk is let go of"))

    def work() -> None:
        try:
            baton.sleep(100.0)
        finally:
            told.append("unwound")
            baton.sleep(5.0)
            told.append("never")

    baton.spawn("worker", work, process)
    baton.sleep(1.0)
    baton.kill(process, "SIGKILL")

    assert ["its disk is let go of", "unwound"] == told
    assert (1.0, "SIGKILL", []) == (baton.now, process.ended, baton.errors)


def test_who_kills_its_own_process_raises_and_takes_the_others_with_it() -> None:
    baton, told = story(1)
    process = SimProcess("p")

    def suicide() -> None:
        baton.sleep(1.0)
        baton.kill(process, "crashed")
        told.append("never")

    other = baton.spawn("other", lambda: baton.sleep(100.0), process)
    baton.spawn("suicide", suicide, process)
    baton.sleep(2.0)

    assert ([], "crashed", False) == (told, process.ended, other.is_alive())
    assert [] == baton.errors


def test_a_crash_raised_at_a_failpoint_ends_the_whole_process() -> None:
    baton, _ = story(1)
    process = SimProcess("p")

    def crash() -> None:
        raise failpoints.Crash

    other = baton.spawn("other", lambda: baton.sleep(100.0), process)
    baton.spawn("crashing", crash, process)
    baton.sleep(1.0)

    assert ("crashed", False) == (process.ended, other.is_alive())


def test_a_frozen_process_goes_on_when_the_freeze_is_over_and_is_told_how_long_it_was() -> None:
    baton, told = story(1)
    process = SimProcess("p", on_thaw=lambda seconds: told.append(f"frozen for {seconds:g}"))
    baton.spawn("worker", lambda: at_intervals(baton, told, "tick", 1.0, 3), process)
    baton.sleep(1.5)
    baton.freeze(process, 10.0)
    baton.sleep(20.0)

    assert ["tick@1", "frozen for 10", "tick@11.5", "tick@12.5"] == told


def test_a_frozen_process_can_be_killed_and_a_freeze_can_be_ended() -> None:
    baton, told = story(1)
    killed, thawed = SimProcess("killed"), SimProcess("thawed")
    for process in (killed, thawed):
        baton.spawn(process.name, lambda name=process.name: at_intervals(baton, told, name, 1.0, 1), process)  # type: ignore[misc]
        baton.freeze(process, 100.0)
    baton.doom(killed, 3.0, "SIGKILL")
    baton.sleep(5.0)
    baton.thaw(thawed)
    baton.sleep(2.0)

    assert ["thawed@6"] == told
    assert "SIGKILL" == killed.ended


def test_an_error_of_an_actor_is_kept_for_whoever_asks() -> None:
    def fail() -> None:
        raise KeyError("missing")

    baton, _ = story(1)
    baton.spawn("wrong", fail)
    baton.sleep(1.0)

    assert [("wrong", KeyError)] == [(name, type(error)) for name, error in baton.errors]


def test_a_lock_is_waited_for_by_giving_the_baton_away() -> None:
    baton, told = story(1)
    lock = BatonLock(baton)

    def hold(name: str) -> None:
        with lock, lock:
            baton.sleep(1.0)
            told.append(f"{name}@{baton.now:g}")

    first = baton.spawn("a", lambda: hold("a"))
    baton.sleep(0.5)
    baton.spawn("b", lambda: hold("b")).join()
    first.join()

    assert ["a", "b"] == [word[0] for word in told]
    assert baton.now >= 2.0


def test_a_world_in_which_no_time_passes_is_stuck() -> None:
    baton, _ = story(1)

    def spin() -> None:
        while True:
            baton.sleep(0.0)

    baton.spawn("spinning", spin)
    with pytest.raises(Stuck, match=r"at 0.000 s; spinning is due again"):
        baton.sleep(1.0)


def test_a_world_in_which_nobody_will_ever_be_due_is_stuck() -> None:
    baton, _ = story(1)
    with pytest.raises(Stuck, match="the story, the reaper"):
        baton.wait(threading.Event(), FOREVER)


def test_at_the_end_everybody_ends() -> None:
    baton, told = story(1)
    actors = [baton.spawn(f"a{n}", lambda: at_intervals(baton, told, "x", 1.0, 1000), SimProcess("p") if n else None) for n in range(3)]
    baton.sleep(1.5)
    baton.end()

    assert [False, False, False] == [actor.is_alive() for actor in actors]
