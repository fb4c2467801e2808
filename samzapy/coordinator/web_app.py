"""The HTTP endpoints for people and their tools. Reading needs no token; every change is a POST with the run's token."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from samzapy.api.errors import SamzapyError
from samzapy.coordinator.control_app import signature_check
from samzapy.coordinator.host_names import HostNames
from samzapy.coordinator.http import BAD, CONFLICT, FORBIDDEN, MISDIRECTED, TOO_LARGE, UNAVAILABLE, TooLarge, body_of, throw_away
from samzapy.coordinator.job_coordinator import JobCoordinator
from samzapy.coordinator.metrics import metrics_text
from samzapy.model.bounded_json import NOT_UNDERSTOOD, read_object
from samzapy.printable import printable_json
from samzapy.signing import NOT_SIGNED, SIGNATURE, is_signed_body

MAX_REQUEST_BYTES = 64 << 10
HEALTH = ("/healthz", "/readyz")
Act = Callable[[Mapping[str, Any]], Mapping[str, Any]]
Endpoint = Callable[[Request], Awaitable[Response]]


def web_app(
    coordinator: JobCoordinator, token: str, names: HostNames | None = None, notes: Callable[[], Sequence[str]] = tuple
) -> Starlette:
    """The application. `names`: the host names that requests may use; None: loopback's. `notes`: what people are to know of this process."""
    roster = coordinator.roster

    def status(_: Request) -> Response:
        return _Readable({**roster.status(), "notes": list(notes())})

    def job_model(_: Request) -> Response:
        return JSONResponse(roster.model().to_json())

    def metrics(_: Request) -> Response:
        return PlainTextResponse(metrics_text(roster.status(), roster.reports()), media_type="text/plain; version=0.0.4; charset=utf-8")

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
        ],
        middleware=[Middleware(_OnlyByName, names=names or HostNames())],
    )


class _Readable(JSONResponse):
    """JSON that a terminal shows as text, whatever record is quoted in it."""

    def render(self, content: Any) -> bytes:
        return printable_json(bytes(super().render(content)).decode()).encode()


class _OnlyByName:
    """Answers only requests under one of its host names. The health check is answered under any: it is no secret, and probes use many names."""

    def __init__(self, app: ASGIApp, names: HostNames) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        name = request.headers.get("Host", "")
        if scope["path"] in HEALTH or self._names.allow(name):
            await self._app(scope, receive, send)
            return
        error = f"this job is not asked for by the name {name[:100]!r}; add it to `web: {{names: [...]}}` of the job file if it is right"
        await JSONResponse({"error": error}, MISDIRECTED)(scope, receive, send)


def _only_with(token: str) -> Callable[[Act], Endpoint]:
    """Makes endpoints that act only for clients with the token, proven by a signature or, as scripts do, by sending it."""
    expected, check = f"Bearer {token}".encode(), signature_check(token)

    def changing(act: Act) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            is_signed = SIGNATURE in request.headers
            try:
                more: dict[str, str] = {}
                if is_signed:
                    refused, more = check(request)
                else:
                    given = request.headers.get("Authorization", "").encode()
                    refused = "" if hmac.compare_digest(given, expected) else "the run's token is needed"
                if refused:
                    await throw_away(request)
                    return JSONResponse({"error": refused}, FORBIDDEN, more)
                body = await body_of(request, MAX_REQUEST_BYTES)
                if is_signed and not is_signed_body(request.headers, body):
                    return JSONResponse({"error": f"{NOT_SIGNED}: the body does not match the signature"}, FORBIDDEN)
                return JSONResponse(await run_in_threadpool(act, read_object(body or b"{}", MAX_REQUEST_BYTES)))
            except TooLarge as error:
                await throw_away(request)
                return JSONResponse({"error": str(error)}, TOO_LARGE)
            except ClientDisconnect:
                return Response(status_code=BAD)  # nobody reads it
            except SamzapyError as error:
                return JSONResponse({"error": error.message, "remedy": error.remedy, "code": error.code}, CONFLICT)
            except NOT_UNDERSTOOD as error:
                return JSONResponse({"error": f"request not understood: {type(error).__name__}: {error}"}, BAD)

        return endpoint

    return changing
