"""The coordinator's two listeners without a coordinator, and requests as a stranger might make them."""

from __future__ import annotations

import hashlib
import http.client
import json
import secrets
import time
from types import TracebackType
from urllib.parse import urlsplit

from samzapy.clock import SystemClock
from samzapy.coordinator.control_app import control_app
from samzapy.coordinator.http import Listener
from samzapy.coordinator.roster import Roster
from samzapy.plan.grouping import group
from samzapy.signing import BODY, NONCE, SIGNATURE, TIME, sign
from samzapy.web.app import web_app
from samzapy.web.live import Live
from tests.page.staged import Stage as PageStage
from tests.page.staged import contents
from tests.unit.coordinator.test_job_coordinator import JOB, Stage

LIMIT_S = 30.0


class Listening:
    """Both listeners, answering."""

    def __init__(self, **limits: float) -> None:
        self.token = secrets.token_urlsafe(32)
        roster = Roster(JOB, "run", group({"in": 1}, set(), has_stores=False), 1, None, SystemClock())
        stage = Stage()  # not started: only the web listener runs
        self._control = Listener(control_app(roster, self.token), "127.0.0.1", 0, **limits)  # type: ignore[arg-type]
        live = Live(stage.coordinator, {"job": JOB.name, "id": JOB.id})
        self._web = Listener(web_app(live, live, contents(PageStage()), self.token), "127.0.0.1", 0, **limits)  # type: ignore[arg-type]

        self.control_url, self.web_url = self._control.url, self._web.url

    def __enter__(self) -> Listening:
        self._control.start()
        self._web.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._control.stop()
        self._web.stop()

    def post(
        self,
        path: str,
        body: bytes,
        token: str = "",
        signature: str | None = None,
        signed_body: bytes | None = None,
        signed_path: str = "",
        age_s: float = 0.0,
        time_s: str = "",
        times: int = 1,
        to_web: bool = False,
    ) -> tuple[int, str]:
        """A signed request, or one that is wrong in what is given; the answer to the last of `times`."""
        at, nonce = time_s or f"{time.time() - age_s:.3f}", secrets.token_hex(12)
        digest = hashlib.sha256(body if signed_body is None else signed_body).hexdigest()
        right = sign(token or self.token, "POST", signed_path or path, at, nonce, digest)
        headers = {TIME: at, NONCE: nonce, BODY: digest, SIGNATURE: right if signature is None else signature}
        answers = [_ask(self.web_url if to_web else self.control_url, path, body, headers) for _ in range(times)]
        return answers[-1]

    def change(self, path: str, authorization: str, body: bytes) -> tuple[int, str]:
        """A request that would change something."""
        return _ask(self._web.url, path, body, {"Authorization": authorization.encode("latin-1").decode("latin-1")})


def ask_for_websocket(url: str) -> int:
    """The status of the answer to who asks to go on in another protocol."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=LIMIT_S)
    try:
        connection.request("GET", "/", headers={"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"})
        return connection.getresponse().status
    finally:
        connection.close()


def _ask(url: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=LIMIT_S)
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, str(json.loads(text).get("error", "")) if text.startswith("{") else text
    finally:
        connection.close()
