"""Which requests a rule strikes: decided without a socket."""

from __future__ import annotations

import pytest

from tests.proxy.faults import LoseReply, LoseRequest, Rule, storm
from tests.proxy.wire import Api, Request

TRANSACTION = frozenset({Api.ADD_PARTITIONS_TO_TXN, Api.END_TXN})


def asked(api: int, client: str = "job-1-container-0", number: int = 1) -> Request:
    return Request(api, 1, 0, client, number)


@pytest.mark.parametrize(
    ("rule", "request_", "fits"),
    [
        (Rule(LoseReply()), asked(Api.FETCH), True),
        (Rule(LoseReply(), TRANSACTION), asked(Api.END_TXN), True),
        (Rule(LoseReply(), TRANSACTION), asked(Api.FETCH), False),
        (Rule(LoseReply(), TRANSACTION, "job-1-container-0"), asked(Api.END_TXN), True),
        (Rule(LoseReply(), client="job-1-container-"), asked(Api.FETCH), True),
        (Rule(LoseReply(), client="job-2"), asked(Api.FETCH), False),
    ],
)
def test_a_rule_is_about_apis_and_clients(rule: Rule, request_: Request, fits: bool) -> None:
    assert fits == rule.fits(request_)


def test_without_chance_every_request_is_struck() -> None:
    assert all(Rule(LoseRequest()).strikes(asked(Api.PRODUCE, number=n)) for n in range(1, 100))


def test_chance_strikes_as_often_as_it_says_and_the_same_ones_again() -> None:
    requests = [asked(Api.PRODUCE, number=n) for n in range(1, 2001)]
    struck = [n for n, one in enumerate(requests) if Rule(LoseRequest(), chance=0.1, seed=7).strikes(one)]

    assert 150 < len(struck) < 250
    assert struck == [n for n, one in enumerate(requests) if Rule(LoseRequest(), chance=0.1, seed=7).strikes(one)]
    assert struck != [n for n, one in enumerate(requests) if Rule(LoseRequest(), chance=0.1, seed=8).strikes(one)]


def test_a_storm_holds_every_fault_with_its_share_of_the_chance() -> None:
    rules = storm(3, TRANSACTION, chance=0.05, longest_s=0.5, client="job")

    assert ["Hold", "Hold", "LoseRequest", "LoseReply", "DelayReply"] == [type(rule.fault).__name__ for rule in rules]
    assert {0.01} == {rule.chance for rule in rules}
    assert {(TRANSACTION, "job")} == {(rule.apis, rule.client) for rule in rules}
    assert rules == storm(3, TRANSACTION, chance=0.05, longest_s=0.5, client="job")
