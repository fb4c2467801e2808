"""Questions to containers: who is asked, whose answers count, and that nobody waits for ever."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, SamzapyError, Superseded
from samzapy.container.control_client import HttpControl
from samzapy.container.inside import Doing, Inside
from samzapy.container.long_poll import LongPoll
from samzapy.coordinator import switchboard
from samzapy.coordinator.control_app import control_app
from samzapy.coordinator.http import Listener
from samzapy.coordinator.switchboard import Switchboard
from samzapy.signing import signed_headers
from samzapy.web.looking import Looking
from tests.page.staged import Stage

TOKEN = "a-token"
SOON_S, LONG_S = 0.3, 30.0
LONG_POLL = "/control/line"


class Asking:
    """A question, asked on a thread of its own."""

    def __init__(self, ask: Callable[[], Mapping[str, Any]]) -> None:
        self.found: Any = None
        self._thread = threading.Thread(target=self._ask, args=(ask,))
        self._thread.start()

    def _ask(self, ask: Callable[[], Mapping[str, Any]]) -> None:
        try:
            self.found = ask()
        except SamzapyError as error:
            self.found = error

    def answer(self) -> Any:
        self._thread.join(LONG_S)
        return self.found


def arrived(board: Switchboard, incarnation: str, number: int, answers: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """What a request of container 0 takes away as soon as there is something."""
    asked = threading.Event()
    board.arrive(0, incarnation, number, answers or [], asked.set)
    asked.wait(LONG_S)
    return board.take(0, incarnation, number)


def test_a_question_travels_there_and_its_answer_back() -> None:
    board = Switchboard()
    asking = Asking(lambda: board.ask(0, "i1", "stack", {"more": 1}, LONG_S))
    (question,) = arrived(board, "i1", 1)
    assert ("stack", 1) == (question["kind"], question["more"])
    board.arrive(0, "i1", 2, [{"id": "another's", "found": {}}, {"id": question["id"], "found": {"is": "so"}}], lambda: None)
    assert {"is": "so"} == asking.answer()
    assert [] == board.take(0, "i1", 2)


def test_only_the_incarnation_that_was_asked_is_believed() -> None:
    board = Switchboard()
    asking = Asking(lambda: board.ask(0, "i1", "stack", {}, LONG_S))
    (question,) = arrived(board, "i1", 1)
    board.arrive(0, "i0", 9, [{"id": question["id"], "found": {"is": "a zombie's"}}], lambda: None)
    board.arrive(1, "i1", 9, [{"id": question["id"], "found": {"is": "another container's"}}], lambda: None)
    board.arrive(0, "i1", 2, [{"id": question["id"], "error": "no"}], lambda: None)
    assert "container 0: no" == asking.answer().message


def test_a_request_that_came_before_is_refused() -> None:
    board = Switchboard()
    board.arrive(0, "i1", 5, [], lambda: None)
    for number in (5, 4):
        with pytest.raises(Superseded):
            board.arrive(0, "i1", number, [], lambda: None)
    board.arrive(0, "i1", 6, [], lambda: None)
    assert [] == board.take(0, "i1", 5), "it is not the newest any more"


def test_a_request_of_a_process_that_was_replaced_is_let_go_and_does_not_hold_up_the_end_of_the_run() -> None:
    board, woken = Switchboard(), threading.Event()
    board.arrive(0, "i1", 1, [], woken.set)
    assert not woken.is_set()
    board.arrive(0, "i2", 1, [], lambda: None)
    assert woken.is_set()


def test_who_does_not_answer_is_not_waited_for_longer_than_that() -> None:
    board = Switchboard()
    with pytest.raises(ClusterUnreachable, match="did not answer"):
        board.ask(0, "i1", "stack", {}, SOON_S)
    board.arrive(0, "i1", 1, [], lambda: None)
    assert [] == board.take(0, "i1", 1), "nobody waits for it any more"


def test_no_more_is_asked_at_once_than_can_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switchboard, "MAX_QUESTIONS", 2)
    board = Switchboard()
    profile = Asking(lambda: board.ask(0, "i1", "profile", {}, LONG_S))
    arrived(board, "i1", 1)
    with pytest.raises(ConfigurationError, match="a profile of container 0 is under way"):
        board.ask(0, "i1", "profile", {}, LONG_S)
    stack = Asking(lambda: board.ask(0, "i1", "stack", {}, LONG_S))
    arrived(board, "i1", 2)
    with pytest.raises(ConfigurationError, match="2 questions to containers wait for an answer"):
        board.ask(1, "i2", "stack", {}, LONG_S)
    board.close()
    assert {ClusterUnreachable} == {type(profile.answer()), type(stack.answer())}
    with pytest.raises(ClusterUnreachable, match="ending"):
        board.ask(1, "i2", "stack", {}, LONG_S)


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.close()


def test_over_http_a_parked_request_is_woken_and_one_that_is_sent_again_is_refused(stage: Stage) -> None:
    board = Switchboard()
    listener = Listener(control_app(stage.roster, TOKEN, board), "127.0.0.1", 0)
    listener.start()
    poll = LongPoll(HttpControl(listener.url, TOKEN, 0, "launch", timeout_s=LONG_S))
    try:
        poll.start("i0", Inside(threading.get_ident(), lambda: Doing("wait_input", 0.0), lambda: None, None))
        for _ in range(3):
            assert "wait_input" == board.ask(0, "i0", "stack", {}, LONG_S)["now"]["phase"]

        body = json.dumps({"container": 1, "incarnation": "i1", "n": 1, "park_s": 0, "answers": []}).encode()
        recorded = urllib.request.Request(listener.url + LONG_POLL, body, signed_headers(TOKEN, "POST", LONG_POLL, body, time.time()))
        with urllib.request.urlopen(recorded, timeout=LONG_S) as answer:
            assert {"questions": []} == json.load(answer)
        assert 403 == refused(recorded)
        again = urllib.request.Request(listener.url + LONG_POLL, body, signed_headers(TOKEN, "POST", LONG_POLL, body, time.time()))
        assert 409 == refused(again), "signed anew, but of a number that came before"
        zombie = json.dumps({"container": 1, "incarnation": "i0", "n": 9, "park_s": 0, "answers": []}).encode()
        assert 409 == refused(urllib.request.Request(listener.url + LONG_POLL, zombie, signed_headers(TOKEN, "POST", LONG_POLL, zombie, time.time())))
    finally:
        poll.stop()
        board.close()
        listener.stop()


def test_orders_are_fetched_at_once_by_those_who_are_asked_and_nobody_waits_for_the_others(stage: Stage) -> None:
    board = Switchboard()
    listener = Listener(control_app(stage.roster, TOKEN, board), "127.0.0.1", 0)
    listener.start()
    poll, beats = LongPoll(HttpControl(listener.url, TOKEN, 0, "launch", timeout_s=LONG_S)), threading.Semaphore(0)
    inside = Inside(threading.get_ident(), lambda: Doing("wait_input", 0.0), lambda: None, None)
    try:
        poll.start("i0", inside, beats.release)
        assert "wait_input" == board.ask(0, "i0", "stack", {}, LONG_S)["now"]["phase"], "its request is parked"
        Looking(stage.roster, board).hasten()
        assert beats.acquire(timeout=LONG_S)
        board.hasten(0, "of before")
        board.hasten(1, "i1")
        assert "wait_input" == board.ask(0, "i0", "stack", {}, LONG_S)["now"]["phase"], "it goes on answering"
        assert not beats.acquire(blocking=False)
    finally:
        poll.stop()
        board.close()
        listener.stop()


def refused(request: urllib.request.Request) -> int:
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(request, timeout=LONG_S)
    return error.value.code
