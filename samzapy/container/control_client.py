"""ports.Control over HTTP: signed requests to the coordinator's control listener."""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from samzapy.api.errors import ClusterUnreachable, Superseded
from samzapy.ports import Assignment
from samzapy.signing import sign

REGISTER_PATIENCE_S = 60.0
RETRY_S = 0.3
NOT_YET_S = 0.05
CONFLICT = 409
MAX_ANSWER_BYTES = 16 << 20


class HttpControl:
    """A container's line to its coordinator. Called from two threads, so each request has a connection of its own.

    Args:
        timeout_s: how long an answer is waited for, in seconds; well below the lease.
    """

    def __init__(self, url: str, token: str, container: int, launch_id: str, timeout_s: float = 5.0) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port
        self._token = token
        self._container = container
        self._launch_id = launch_id
        self._timeout_s = timeout_s

    def register(self, incarnation: str, facts: Mapping[str, Any]) -> Assignment:
        deadline = time.monotonic() + REGISTER_PATIENCE_S
        while True:
            try:
                answer = self._post("register", {"launch_id": self._launch_id, "incarnation": incarnation, "facts": dict(facts)})
                if answer.get("named"):
                    return Assignment(str(answer["run_id"]), answer.get("end_offsets"))
                time.sleep(NOT_YET_S)
            except ClusterUnreachable:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(RETRY_S)

    def heartbeat(self, incarnation: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._post("heartbeat", {"incarnation": incarnation, "report": dict(report)})

    def finished(self, incarnation: str, report: Mapping[str, Any]) -> None:
        for _ in range(3):
            try:
                self._post("finished", {"incarnation": incarnation, "report": dict(report)})
                return
            except Superseded:
                return
            except ClusterUnreachable:
                time.sleep(RETRY_S)

    def _post(self, verb: str, content: Mapping[str, Any]) -> dict[str, Any]:
        path = f"/control/{verb}"
        body = json.dumps({"container": self._container, **content}).encode()
        connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        try:
            connection.request("POST", path, body, self._headers(path, body))
            response = connection.getresponse()
            answer = json.loads(response.read(MAX_ANSWER_BYTES) or b"{}")
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ClusterUnreachable(f"the coordinator at {self._host}:{self._port} does not answer {verb}: {error}.", "") from None
        finally:
            connection.close()
        if response.status == CONFLICT:
            raise Superseded(str(answer.get("error", "this incarnation was replaced.")), "")
        if response.status != http.client.OK or not isinstance(answer, dict):
            raise ClusterUnreachable(f"the coordinator refused {verb}: {response.status} {answer}.", "")
        return answer

    def _headers(self, path: str, body: bytes) -> dict[str, str]:
        time_s, nonce = f"{time.time():.3f}", secrets.token_hex(12)
        signature = sign(self._token, "POST", path, time_s, nonce, body)
        return {
            "Content-Type": "application/json", "X-Samzapy-Time": time_s, "X-Samzapy-Nonce": nonce, "X-Samzapy-Signature": signature,
        }  # fmt: skip
