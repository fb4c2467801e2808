"""Which run is alive: who is refused, who is waited for and for how long, and when a lease is renewed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from samzapy.api.errors import Fenced, OwnedElsewhere
from samzapy.coordinator.coordinator_log import CoordinatorLog
from samzapy.coordinator.ownership_records import OwnershipRecords
from samzapy.coordinator.run_lease import Lease
from samzapy.coordinator.settings import CoordinatorSettings, Process
from samzapy.model.ownership import LEASE_KEY, LeaseRecord, Ledger
from samzapy.testing.manual_clock import ManualClock
from tests.unit.coordinator.parts import JOB, LEASE_S, Parts

GONE = "of a process that is gone"


class JumpingClock(ManualClock):
    """A clock at `now_s` whose wall clock jumps when `after_s` have passed."""

    def __init__(self, now_s: float, after_s: float, jump_s: float) -> None:
        super().__init__()
        self.advance(now_s)
        self._jumps_at, self._jump_ms = now_s + after_s, int(jump_s * 1000)

    def now_ms(self) -> int:
        return super().now_ms() + (self._jump_ms if self.monotonic() >= self._jumps_at else 0)


def lease(parts: Parts, run_id: str = "mine", is_alive: Callable[[str], bool] = lambda url: False, **settings: Any) -> Lease:
    """Of a coordinator; the `successor` has taken the job over."""
    ownership = OwnershipRecords(CoordinatorLog(JOB, run_id, parts.log, parts.clock), run_id, parts.clock)
    if run_id == "successor":
        ownership.take_over()
    process = Process("here", 7, "start", lambda host, pid, start: start == GONE)
    return Lease(JOB, run_id, ownership, CoordinatorSettings(lease_s=LEASE_S, **settings), parts.clock, process, is_alive)


def there(parts: Parts, age_s: float = 0.0, run_id: str = "other", **facts: Any) -> None:
    """A lease that was renewed so many seconds ago."""
    renewed_ms = parts.clock.now_ms() - int(age_s * 1000)
    record = LeaseRecord(
        **{"run_id": run_id, "url": "", "host": "there", "pid": 1, "process_start": "s", "renewed_ms": renewed_ms, **facts}
    )
    parts.ownership.write((LEASE_KEY, record.to_bytes()))


@pytest.mark.parametrize(
    ("age_s", "facts", "settings", "waited_s"),
    [
        (1.0, {}, {}, LEASE_S),
        (LEASE_S, {}, {}, LEASE_S),
        (1e6, {}, {}, LEASE_S),  # of long ago, or of a host whose clock is late
        (-0.001, {}, {}, LEASE_S),  # of a host whose clock is ahead
        (-1e6, {}, {}, LEASE_S),
        (0.0, {"ended": True}, {}, 0.0),
        (0.0, {"run_id": "mine"}, {}, 0.0),  # of this run: begun again after a doubt
        (0.0, {"process_start": GONE}, {}, 0.0),  # on this host, and there is no such process
        (0.0, {}, {"takeover": True}, 0.0),
        (0.0, {"url": "http://127.0.0.1:9"}, {}, LEASE_S),  # a URL at which nobody answers is no reason to go on
    ],
)
def test_how_long_another_runs_lease_is_waited_for(age_s: float, facts: dict[str, Any], settings: dict[str, Any], waited_s: float) -> None:
    parts = Parts()
    there(parts, age_s, **facts)
    before = parts.clock.monotonic()

    ledger = lease(parts, **settings).await_the_other(parts.ledger)

    assert waited_s <= parts.clock.monotonic() - before < waited_s + 0.6  # it looks every half second
    assert ledger.lease is not None


@pytest.mark.parametrize("jump_s", [-1e6, -3.0, 3.0, 1e6])
def test_a_wall_clock_that_jumps_changes_nothing_about_the_wait(jump_s: float) -> None:
    parts = Parts()
    parts.clock = JumpingClock(parts.clock.monotonic(), LEASE_S / 2, jump_s)
    there(parts)
    before = parts.clock.monotonic()

    lease(parts).await_the_other(parts.ledger)

    assert LEASE_S <= parts.clock.monotonic() - before < LEASE_S + 0.6


def test_a_run_that_renews_its_lease_and_cannot_be_reached_is_not_taken_over_whatever_its_clock_says() -> None:
    parts = Parts()
    url = "http://there:1"
    reads = 0

    def read() -> Ledger:
        nonlocal reads
        reads += 1
        if reads % 6 == 1:  # every three seconds, by a clock that is an hour ahead
            there(parts, age_s=-3600.0, url=url)
        return parts.ledger()

    before = parts.clock.monotonic()
    with pytest.raises(OwnedElsewhere, match=r"lease 0 s old"):  # it answers again after a minute
        lease(parts, is_alive=lambda _: parts.clock.monotonic() - before > 60.0).await_the_other(read)


def test_a_run_that_goes_on_renewing_its_lease_where_it_cannot_be_asked_is_told_of_and_not_waited_for_for_ever() -> None:
    parts = Parts()
    reads = 0

    def read() -> Ledger:
        nonlocal reads
        reads += 1
        if reads % 6 == 1:  # every three seconds
            there(parts, url="http://127.0.0.1:1")
        return parts.ledger()

    before = parts.clock.monotonic()
    with pytest.raises(OwnedElsewhere, match="is run by process 1 on there"):
        lease(parts).await_the_other(read)
    assert parts.clock.monotonic() - before < 2 * LEASE_S


def test_without_any_lease_nobody_is_waited_for() -> None:
    parts = Parts()
    before = parts.clock.monotonic()

    assert lease(parts).await_the_other(parts.ledger).lease is None
    assert before == parts.clock.monotonic()


@pytest.mark.parametrize("age_s", [1.0, 1e6])
def test_a_run_that_answers_is_refused_however_old_its_lease(age_s: float) -> None:
    parts = Parts()
    there(parts, age_s, url="http://there:1")

    with pytest.raises(OwnedElsewhere, match=r"run by process 1 on there \(lease .* s old, http://there:1\)") as refused:
        lease(parts, is_alive=lambda url: url == "http://there:1").await_the_other(parts.ledger)
    assert "samzapy stop" in refused.value.remedy


def test_a_lease_that_is_renewed_meanwhile_is_waited_for_anew() -> None:
    parts = Parts()
    there(parts)
    reads = 0

    def read() -> Ledger:
        nonlocal reads
        reads += 1
        if reads == 5:
            there(parts)
        return parts.ledger()

    before = parts.clock.monotonic()
    lease(parts).await_the_other(read)

    assert parts.clock.monotonic() - before >= LEASE_S + 2.0


def test_it_is_renewed_after_a_third_of_its_time_and_not_before() -> None:
    parts = Parts()
    mine = lease(parts)
    mine.renew("http://127.0.0.1:1")
    renewed = []
    for _ in range(10):
        parts.clock.advance(LEASE_S / 8)
        mine.renew_when_due("http://127.0.0.1:1")
        found = parts.ledger().lease
        assert found is not None
        renewed.append(round((parts.clock.now_ms() - found.renewed_ms) / 1000, 1))

    assert [1.2, 2.5, 0.0, 1.2, 2.5, 0.0, 1.2, 2.5, 0.0, 1.2] == renewed


def test_the_end_of_a_run_says_how_it_ended_in_short() -> None:
    parts = Parts()
    mine = lease(parts)
    mine.renew("http://127.0.0.1:1")
    mine.give_up("FAILED", "SZ200: " + "x" * 5000)

    ended = parts.ledger().lease
    assert ended is not None
    assert (True, "FAILED", "", 1000) == (ended.ended, ended.outcome, ended.url, len(ended.error))
    assert parts.ledger().lease == lease(parts, "next").await_the_other(parts.ledger).lease


def test_one_that_was_taken_over_renews_no_more() -> None:
    parts = Parts()
    mine = lease(parts)
    mine.renew("http://127.0.0.1:1")
    lease(parts, "successor").renew("http://127.0.0.1:2")  # its producer has the same id

    with pytest.raises(Fenced):
        mine.renew("http://127.0.0.1:1")
    with pytest.raises(Fenced, match="run successor on here has taken over"):  # nor with a new producer
        mine.renew("http://127.0.0.1:1")
    found = parts.ledger().lease
    assert found is not None
    assert "successor" == found.run_id
