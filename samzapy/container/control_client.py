"""ports.Control over HTTP: signed requests to the coordinator's control listener."""

from __future__ import annotations

import http.client
import json
import logging
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from samzapy.api.errors import ClusterUnreachable, Superseded
from samzapy.model.bounded_json import NOT_UNDERSTOOD, read_object
from samzapy.model.caution import caution_from_json
from samzapy.ports import Assignment
from samzapy.signing import SteadyTime, signed_headers, told_time

_dumps = json.dumps  # bound here: a task may put another function in its place
REGISTER_PATIENCE_S = 60.0
RETRY_S = 0.3
NOT_YET_S = 0.05
CONFLICT = 409
MAX_ANSWER_BYTES = 16 << 20
TOLD_FROM_S = 1.0
LOG = logging.getLogger("samzapy.container")
_Answered = tuple[int, dict[str, Any], float | None]  # status, answer, the coordinator's time if it refused the request's


class HttpControl:
    """A container's connection to its coordinator. A connection is kept for the next request, so that the coordinator need not accept a new one
    for each; two threads may ask at once, each on one of its own.

    Args:
        timeout_s: how long an answer is waited for, in seconds; well below the lease.
        steady: the time that requests are signed with. It is set by the coordinator's where the two differ too much.
    """

    def __init__(
        self, url: str, token: str, container: int, launch_id: str, timeout_s: float = 5.0, steady: SteadyTime | None = None
    ) -> None:
        self._steady = steady or SteadyTime()
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port
        self._token = token
        self._container = container
        self._launch_id = launch_id
        self._timeout_s = timeout_s
        self._idle: list[http.client.HTTPConnection] = []  # those that no thread uses just now

    def register(self, incarnation: str, facts: Mapping[str, Any]) -> Assignment:
        deadline = time.monotonic() + REGISTER_PATIENCE_S
        while True:
            try:
                answer = self._post("register", {"launch_id": self._launch_id, "incarnation": incarnation, "facts": dict(facts)})
                if answer.get("named"):
                    return self._assignment(answer)
                time.sleep(NOT_YET_S)
            except ClusterUnreachable:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(RETRY_S)

    def _assignment(self, answer: Mapping[str, Any]) -> Assignment:
        try:
            ends = answer.get("end_offsets")
            offsets = None if ends is None else {str(place): int(at) for place, at in ends.items()}
            return Assignment(str(answer["run_id"]), offsets, caution_from_json(answer.get("caution")), answer.get("paused") is True)
        except NOT_UNDERSTOOD as error:
            raise ClusterUnreachable(f"the coordinator's answer to register is not understood: {type(error).__name__}: {error}.", "") from None

    def heartbeat(self, incarnation: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._post("heartbeat", {"incarnation": incarnation, "report": dict(report)})

    def report_final(self, incarnation: str, report: Mapping[str, Any]) -> bool:
        for _ in range(3):
            try:
                self._post("finished", {"incarnation": incarnation, "report": dict(report)})
                return True
            except Superseded:
                return False
            except ClusterUnreachable:
                time.sleep(RETRY_S)
        return False

    def long_poll(self, incarnation: str, number: int, park_s: float, answers: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
        """Hand in answers, and wait for questions; of an object whose `timeout_s` is longer than `park_s`."""
        found = self._post("line", {"incarnation": incarnation, "n": number, "park_s": park_s, "answers": answers}).get("questions", [])
        return [question for question in found if isinstance(question, dict)] if isinstance(found, list) else []

    def close(self) -> None:
        """Close the connections that are kept."""
        while self._idle:
            self._idle.pop().close()

    def _post(self, verb: str, content: Mapping[str, Any]) -> dict[str, Any]:
        path = f"/control/{verb}"
        body = _dumps({"container": self._container, **content}).encode()
        try:
            status, answer, told_s = self._ask(path, body)
            if told_s is not None:
                self._correct(told_s)
                status, answer, _ = self._ask(path, body)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ClusterUnreachable(f"the coordinator at {self._host}:{self._port} does not answer {verb}: {error}.", "") from None
        if status == CONFLICT:
            raise Superseded(str(answer.get("error", "this process was replaced.")), "")
        if status != http.client.OK:
            raise ClusterUnreachable(f"the coordinator refused {verb}: {status} {answer}.", "")
        return answer

    def _correct(self, told_s: float) -> None:
        """The coordinator refused a request for its time, and told its own."""
        here_s = self._steady.now()
        later_s = self._steady.set(told_s)
        if abs(later_s) >= TOLD_FROM_S:  # the other thread may have done so just now
            LOG.warning(
                "container %d: the clocks differ by %.0f s: %s UTC on this host, %s UTC on that of the coordinator at %s:%s. Requests are signed with the "
                "coordinator's time from now on; set the clock that is wrong",
                self._container, abs(later_s), _shown(here_s), _shown(told_s), self._host, self._port,
            )  # fmt: skip

    def _ask(self, path: str, body: bytes) -> _Answered:
        """On a connection that was used before if there is one, which the coordinator may have closed since."""
        try:
            connection = self._idle.pop()
        except IndexError:
            return self._ask_on(self._connection(), path, body)
        try:
            return self._ask_on(connection, path, body)
        except (ConnectionError, http.client.BadStatusLine):
            return self._ask_on(self._connection(), path, body)

    def _ask_on(self, connection: http.client.HTTPConnection, path: str, body: bytes) -> _Answered:
        try:
            headers = {"Content-Type": "application/json", **signed_headers(self._token, "POST", path, body, self._steady.now())}
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            answer = read_object(response.read(MAX_ANSWER_BYTES + 1) or b"{}", MAX_ANSWER_BYTES)
        except BaseException:
            connection.close()
            raise
        if response.will_close or not response.isclosed():
            connection.close()
        else:
            self._idle.append(connection)
        told_s = told_time(self._token, path, headers, response.headers) if response.status == http.client.FORBIDDEN else None
        return response.status, answer, told_s

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)


def _shown(now_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now_s))
