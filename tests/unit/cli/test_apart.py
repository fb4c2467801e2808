"""The coordinator's turns beside the main thread, which gives up waiting for one that does not end."""

from __future__ import annotations

import logging
import threading

import pytest

from samzapy.api.errors import OwnedElsewhere
from samzapy.cli.apart import Apart, StopTimes, is_given_up


class Clock:
    """Each wait takes as long as it may. `now_ms` may be set apart."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.ahead_ms = 0

    def monotonic(self) -> float:
        return self.passed

    def now_ms(self) -> int:
        return int(self.passed * 1000) + self.ahead_ms

    def sleep(self, seconds: float) -> None:
        self.passed += seconds

    def wait(self, event: threading.Event, seconds: float) -> None:
        self.passed += seconds


@pytest.mark.parametrize(
    ("facts", "now", "given_up"),
    [
        (StopTimes(0.0), 1e6, False),  # Kafka may be away for long; nobody asked for an end
        (StopTimes(0.0, stop_asked_at=100.0), 170.0, False),
        (StopTimes(0.0, stop_asked_at=100.0), 176.0, True),
        (StopTimes(170.0, stop_asked_at=100.0), 240.0, False),  # it gets on
        (StopTimes(0.0, stop_asked_at=100.0, killed_at=102.0), 111.0, False),
        (StopTimes(0.0, stop_asked_at=100.0, killed_at=102.0), 113.0, True),
        (StopTimes(110.0, stop_asked_at=100.0, killed_at=102.0), 113.0, False),
    ],
)
def test_when_a_coordinator_is_given_up(facts: StopTimes, now: float, given_up: bool) -> None:
    assert given_up == is_given_up(facts, now, 60.0)


def test_a_stop_ends_a_run_whose_coordinator_waits_for_ever() -> None:
    clock, hangs, ended = Clock(), threading.Event(), []
    apart = Apart(lambda: int(hangs.wait()), lambda: StopTimes(0.0, stop_asked_at=5.0), lambda: ended.append(clock.passed), 60.0, clock)
    assert 1 == apart.run()
    assert 1 == len(ended)
    assert 80.0 < clock.passed < 81.0
    hangs.set()


def test_its_exit_code_and_its_error_are_those_of_the_work() -> None:
    def refused() -> int:
        raise OwnedElsewhere("another run is alive.", "")

    for work, expected in ((lambda: 7, 7), (refused, None)):
        is_done = threading.Event()

        def noted(work=work, is_done=is_done) -> int:
            assert threading.current_thread() is not threading.main_thread()
            try:
                return int(work())
            finally:
                is_done.set()

        apart = Apart(noted, lambda: StopTimes(0.0), lambda: None, 60.0, Clock())
        if expected is None:
            with pytest.raises(OwnedElsewhere):
                apart.run()
        else:
            assert expected == apart.run()


def test_a_clock_that_is_set_back_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    clock, end = Clock(), threading.Event()

    def facts() -> StopTimes:
        if clock.passed > 10.0:
            end.set()
        clock.ahead_ms = -7_200_000 if clock.passed > 5.0 else 0
        return StopTimes(clock.passed)

    with caplog.at_level(logging.WARNING):
        assert 1 == Apart(lambda: int(end.wait()), facts, lambda: None, 60.0, clock).run()
    assert ["7200 s"] == [r.getMessage().split(" by ")[1].split(":")[0] for r in caplog.records]
