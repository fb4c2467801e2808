"""A container's requests to a coordinator whose host has another time."""

from __future__ import annotations

import logging
from email.message import Message

import pytest

from samzapy.api.errors import Superseded
from samzapy.container.control_client import HttpControl
from samzapy.signing import TIME, TOO_OLD, Gate, SteadyTime, signed_headers, time_headers, told_time
from tests.recovery.bad_control import Listening

PATH = "/control/heartbeat"


@pytest.mark.parametrize("ahead_s", [7200.0, -7200.0, -400_000.0])
def test_a_container_whose_hosts_clock_is_hours_wrong_is_heard_and_both_clocks_are_named_once(
    ahead_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    steady = SteadyTime()
    steady.set(steady.now() + ahead_s)
    with caplog.at_level(logging.WARNING), Listening() as listening:
        control = HttpControl(listening.control_url, listening.token, 0, "launch", steady=steady)
        for _ in range(3):
            with pytest.raises(Superseded, match="nobody"):  # understood: no such incarnation is known
                control.heartbeat("nobody", {})
        control.close()
    (line,) = [r.getMessage() for r in caplog.records if "clocks differ" in r.getMessage()]
    assert f"differ by {abs(ahead_s):.0f} s" in line
    assert 2 == line.count(" UTC on ")


def test_a_step_of_the_wall_clock_changes_nothing() -> None:
    wall, passed = 1000.0, 0.0
    steady = SteadyTime(lambda: wall, lambda: passed)
    wall, passed = 8200.0, 5.0
    assert 1005.0 == steady.now()
    assert 95.0 == steady.set(1100.0)
    passed = 6.0
    assert 1101.0 == steady.now()


def answered(token: str, request: dict[str, str], refused: str, now_s: float) -> Message:
    message = Message()
    for name, value in time_headers(token, PATH, request, refused, now_s).items():
        message[name.lower()] = value
    return message


def test_the_time_of_an_answer_counts_only_if_it_is_the_runs_and_for_this_request() -> None:
    request, other = (signed_headers("token", "POST", PATH, b"{}", 100.0) for _ in range(2))
    refused = Gate("token").why_not("POST", PATH, request, 9000.0)
    assert TOO_OLD == refused
    answer = answered("token", request, refused, 9000.0)
    assert 9000.0 == told_time("token", PATH, request, answer)
    assert told_time("token", PATH, other, answer) is None
    assert told_time("token", "/control/finished", request, answer) is None
    assert told_time("token", PATH, request, answered("another", request, refused, 9000.0)) is None
    assert told_time("token", PATH, request, answered("token", request, "seen before", 9000.0)) is None
    answer.replace_header(TIME.lower(), "9999.000")
    assert told_time("token", PATH, request, answer) is None


def test_what_was_sent_once_is_refused_for_ever_whatever_the_wall_clock_does() -> None:
    wall, passed = 1000.0, 0.0
    gate, steady = Gate("token"), SteadyTime(lambda: wall, lambda: passed)
    request = signed_headers("token", "POST", PATH, b"{}", steady.now())
    assert "" == gate.why_not("POST", PATH, request, steady.now())
    for _ in range(3):  # set back again and again, so that by the wall clock it is as fresh as it was
        passed += 700.0
        wall = 1000.0
        assert "" == gate.why_not("POST", PATH, signed_headers("token", "POST", PATH, b"{}", steady.now()), steady.now())
        assert TOO_OLD == gate.why_not("POST", PATH, request, steady.now())
