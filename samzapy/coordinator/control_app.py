"""What a run's own containers talk to. Nothing is answered that is not signed with the run's token, fresh, and seen for the first time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from samzapy.api.errors import SamzapyError, Superseded
from samzapy.coordinator.http import BAD, CONFLICT, FORBIDDEN, TOO_LARGE, UNAVAILABLE, TooLarge, body_of
from samzapy.coordinator.roster import Roster
from samzapy.signing import Gate

MAX_BODY_BYTES = 8 << 20
Act = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def control_app(roster: Roster, token: str) -> Starlette:
    """Register, heartbeat and the last word of each container."""
    check = _signature_check(token)

    def register(content: Mapping[str, Any]) -> Mapping[str, Any]:
        given = roster.register(int(content["container"]), str(content["launch_id"]), str(content["incarnation"]), dict(content["facts"]))
        if given is None:
            return {"named": False}
        ends = None if given.end_offsets is None else dict(given.end_offsets)
        return {"named": True, "run_id": given.run_id, "end_offsets": ends}

    def heartbeat(content: Mapping[str, Any]) -> Mapping[str, Any]:
        return roster.heartbeat(int(content["container"]), str(content["incarnation"]), dict(content["report"]))

    def finished(content: Mapping[str, Any]) -> Mapping[str, Any]:
        roster.took_leave(int(content["container"]), str(content["incarnation"]), dict(content["report"]))
        return {}

    verbs: dict[str, Act] = {"register": register, "heartbeat": heartbeat, "finished": finished}
    return Starlette(routes=[Route(f"/control/{verb}", _answering(check, act), methods=["POST"]) for verb, act in verbs.items()])


def _signature_check(token: str) -> Callable[[Request, bytes], str]:
    gate, lock = Gate(token), threading.Lock()

    def why_not(request: Request, body: bytes) -> str:
        h = request.headers
        with lock:
            return gate.why_not(
                request.method, request.url.path, h.get("X-Samzapy-Time", ""), h.get("X-Samzapy-Nonce", ""),
                h.get("X-Samzapy-Signature", ""), body, time.time(),
            )  # fmt: skip

    return why_not


def _answering(check: Callable[[Request, bytes], str], act: Act) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            body = await body_of(request, MAX_BODY_BYTES)
        except TooLarge as error:
            return JSONResponse({"error": str(error)}, TOO_LARGE)
        refused = check(request, body)
        if refused:
            return JSONResponse({"error": refused}, FORBIDDEN)
        try:
            return JSONResponse(await run_in_threadpool(act, json.loads(body)))
        except Superseded as error:
            return JSONResponse({"error": error.message}, CONFLICT)
        except SamzapyError as error:
            return JSONResponse({"error": str(error)}, UNAVAILABLE)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            return JSONResponse({"error": f"not understood: {type(error).__name__}"}, BAD)

    return endpoint
