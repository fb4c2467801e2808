"""The coordinator's two listeners: `web` for people, `control` for the run's own containers.

`web` reads, and changes something only on a POST with the run's token. `control` answers nothing that is not signed with it. Bodies are
bounded before they are parsed. Servers run on threads of their own and end with the coordinator.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from samzapy.api.errors import LauncherError, SamzapyError, Superseded
from samzapy.coordinator.exposition import exposition
from samzapy.coordinator.job_coordinator import JobCoordinator
from samzapy.coordinator.roster import Roster
from samzapy.signing import Gate

MAX_BODY_BYTES = 8 << 20
MAX_REQUEST_BYTES = 64 << 10
START_PATIENCE_S = 10.0
FORBIDDEN, CONFLICT, TOO_LARGE, BAD, UNAVAILABLE = 403, 409, 413, 400, 503


class Listener:
    """One HTTP server on a thread. `port` 0: any free one; `url` is known as soon as the object is made."""

    def __init__(self, app: Starlette, host: str, port: int) -> None:
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            raise LauncherError(
                f"cannot listen on {host}:{port}: {error.strerror}.", "Choose another `web.port`, or 0 for any free one."
            ) from None
        self._socket.listen(128)
        self.url = f"http://{host}:{self._socket.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._serve, name=f"listener {self.url}", daemon=True)

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def start(self) -> None:
        self._thread.start()
        deadline = time.monotonic() + START_PATIENCE_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise LauncherError(f"the listener {self.url} did not start.", "See the log.")
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()


def control_app(roster: Roster, token: str) -> Starlette:
    """What containers talk to."""
    gate = Gate(token)
    lock = threading.Lock()

    async def body_of(request: Request) -> bytes:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise ValueError("too large")
        return body

    def answering(act: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                body = await body_of(request)
            except ValueError:
                return JSONResponse({"error": f"more than {MAX_BODY_BYTES} bytes"}, TOO_LARGE)
            h = request.headers
            with lock:
                refused = gate.why_not(
                    request.method, request.url.path, h.get("X-Samzapy-Time", ""), h.get("X-Samzapy-Nonce", ""),
                    h.get("X-Samzapy-Signature", ""), body, time.time(),
                )  # fmt: skip
            if refused:
                return JSONResponse({"error": refused}, FORBIDDEN)
            try:
                content = json.loads(body)
                return JSONResponse(await run_in_threadpool(act, content))
            except Superseded as error:
                return JSONResponse({"error": error.message}, CONFLICT)
            except SamzapyError as error:
                return JSONResponse({"error": str(error)}, UNAVAILABLE)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                return JSONResponse({"error": f"not understood: {type(error).__name__}"}, BAD)

        return endpoint

    def register(content: Mapping[str, Any]) -> Mapping[str, Any]:
        given = roster.register(int(content["container"]), str(content["launch_id"]), str(content["incarnation"]), dict(content["facts"]))
        if given is None:
            return {"named": False}
        ends = None if given.end_offsets is None else dict(given.end_offsets)
        return {"named": True, "run_id": given.run_id, "end_offsets": ends}

    def heartbeat(content: Mapping[str, Any]) -> Mapping[str, Any]:
        return roster.heartbeat(int(content["container"]), str(content["incarnation"]), dict(content["report"]))

    def finished(content: Mapping[str, Any]) -> Mapping[str, Any]:
        roster.finished(int(content["container"]), str(content["incarnation"]), dict(content["report"]))
        return {}

    verbs = {"register": register, "heartbeat": heartbeat, "finished": finished}
    return Starlette(routes=[Route(f"/control/{verb}", answering(act), methods=["POST"]) for verb, act in verbs.items()])


def web_app(coordinator: JobCoordinator, token: str) -> Starlette:
    """What people and their tools talk to."""
    roster = coordinator.roster

    def is_owner(request: Request) -> bool:
        return hmac.compare_digest(request.headers.get("Authorization", "").encode(), f"Bearer {token}".encode())

    def status(_: Request) -> Response:
        return JSONResponse(roster.status())

    def job_model(_: Request) -> Response:
        return JSONResponse(roster.model().to_json())

    def metrics(_: Request) -> Response:
        return PlainTextResponse(exposition(roster.status(), roster.reports()), media_type="text/plain; version=0.0.4; charset=utf-8")

    def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    def readyz(_: Request) -> Response:
        state = roster.state
        return PlainTextResponse(f"{state}\n", 200 if state == "RUNNING" else UNAVAILABLE)

    def changing(act: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if not is_owner(request):
                return JSONResponse({"error": "the run's token is needed"}, FORBIDDEN)
            body = b""
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_REQUEST_BYTES:
                    return JSONResponse({"error": f"more than {MAX_REQUEST_BYTES} bytes"}, TOO_LARGE)
            try:
                return JSONResponse(await run_in_threadpool(act, dict(json.loads(body or b"{}"))))
            except SamzapyError as error:
                return JSONResponse({"error": error.message, "remedy": error.remedy, "code": error.code}, CONFLICT)
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                return JSONResponse({"error": f"not understood: {type(error).__name__}: {error}"}, BAD)

        return endpoint

    def stop(_: Mapping[str, Any]) -> Mapping[str, Any]:
        coordinator.request_stop()
        return {"state": roster.state}

    def scale(wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        return coordinator.request_scale(int(wanted["containers"]))

    def restart(wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        container = wanted.get("container")
        return coordinator.request_restart(None if container is None else int(container))

    return Starlette(
        routes=[
            Route("/api/v1/status", status),
            Route("/api/v1/job-model", job_model),
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/api/v1/stop", changing(stop), methods=["POST"]),
            Route("/api/v1/scale", changing(scale), methods=["POST"]),
            Route("/api/v1/restart", changing(restart), methods=["POST"]),
        ]
    )
