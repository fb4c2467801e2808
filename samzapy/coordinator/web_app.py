"""What people and their tools talk to. Looking is free; what changes something is a POST with the run's token."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from samzapy.api.errors import SamzapyError
from samzapy.coordinator.exposition import exposition
from samzapy.coordinator.http import BAD, CONFLICT, FORBIDDEN, TOO_LARGE, UNAVAILABLE, TooLarge, body_of
from samzapy.coordinator.job_coordinator import JobCoordinator

MAX_REQUEST_BYTES = 64 << 10
Act = Callable[[Mapping[str, Any]], Mapping[str, Any]]
Endpoint = Callable[[Request], Awaitable[Response]]


def web_app(coordinator: JobCoordinator, token: str) -> Starlette:
    """What people and their tools talk to."""
    roster = coordinator.roster

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

    changing = _only_with(token)

    def stop(_: Mapping[str, Any]) -> Mapping[str, Any]:
        coordinator.request_stop()
        return {"state": roster.state}

    def scale(wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        return coordinator.changes.scale(int(wanted["containers"]))

    def restart(wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        container = wanted.get("container")
        return coordinator.changes.restart(None if container is None else int(container))

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


def _only_with(token: str) -> Callable[[Act], Endpoint]:
    """Makes endpoints that act only for whoever has the token."""
    expected = f"Bearer {token}".encode()

    def changing(act: Act) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), expected):
                return JSONResponse({"error": "the run's token is needed"}, FORBIDDEN)
            try:
                body = await body_of(request, MAX_REQUEST_BYTES)
                return JSONResponse(await run_in_threadpool(act, dict(json.loads(body or b"{}"))))
            except TooLarge as error:
                return JSONResponse({"error": str(error)}, TOO_LARGE)
            except SamzapyError as error:
                return JSONResponse({"error": error.message, "remedy": error.remedy, "code": error.code}, CONFLICT)
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                return JSONResponse({"error": f"not understood: {type(error).__name__}: {error}"}, BAD)

        return endpoint

    return changing
