"""The application: the table of routes, the live frames, the page's files, health and metrics, and under /api/v1 the short paths of the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Match
from starlette.routing import Route as Path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from samzapy.api.errors import SamzapyError
from samzapy.coordinator.host_names import HostNames
from samzapy.coordinator.http import BAD, CONFLICT, FORBIDDEN, MISDIRECTED, TOO_LARGE, UNAVAILABLE, TooLarge, body_of, throw_away
from samzapy.model.bounded_json import NOT_UNDERSTOOD, read_object
from samzapy.model.states import JobState
from samzapy.printable import printable_json
from samzapy.signing import NOT_SIGNED, is_signed_body
from samzapy.web.access import Access, Caller, May, Refused
from samzapy.web.bodies import NoBody
from samzapy.web.cluster import Cluster
from samzapy.web.contents import Contents
from samzapy.web.exposition import metrics_text
from samzapy.web.facts import Actions, Facts
from samzapy.web.files import PageFiles
from samzapy.web.frames import Streams
from samzapy.web.looking import Inside, Nobody
from samzapy.web.openapi import document
from samzapy.web.route import Asked, J, Route, checked_query
from samzapy.web.route_errors import NotFound
from samzapy.web.routes import TABLE

MAX_REQUEST_BYTES = 64 << 10
MAX_ANSWER_BYTES = 8 << 20
NOT_FOUND, NOT_ALLOWED = 404, 405
HEALTH = ("/healthz", "/readyz")
TITLES = {
    400: "Not understood", 401: "A token is needed", 403: "Not allowed", 404: "Not found", 405: "Another method", 409: "Refused", 413: "Too large",
    429: "Too often", 503: "Not now",
}  # fmt: skip
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
NOT_SHOWN = Refused(
    FORBIDDEN, "keys and values of records are not shown here: the job file says `web.data: false`",
    "In a terminal: `samzapy dlq list JOB.yaml`, then `dlq show` with a number of that list; the command `tail` shows the records of a topic.",
)  # fmt: skip
Endpoint = Callable[[Request], Awaitable[Response]]


def web_app(
    facts: Facts, actions: Actions, contents: Contents, token: str, names: HostNames | None = None, inside: Inside | None = None,
    cluster: Cluster | None = None, tokens: Mapping[May, str] | None = None,
) -> Starlette:  # fmt: skip
    """The application. `names`: the host names that requests may use; None: loopback's. `inside`: None: nobody can be asked. `cluster`: None: other
    jobs are not known. `tokens`: fixed ones."""
    job = _Job(facts, actions, contents, inside or Nobody(), cluster or Cluster(tuple))
    names = names or HostNames()
    access = Access(token, fixed=tokens)
    streams, files = Streams(facts), PageFiles()

    async def metrics(_: Request) -> Response:
        text = await run_in_threadpool(lambda: metrics_text(facts.status(), facts.reports()))
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        state = facts.state()
        return PlainTextResponse(f"{state}\n", 200 if state in (JobState.RUNNING, JobState.PAUSED) else UNAVAILABLE)

    async def openapi(_: Request) -> Response:
        return JSONResponse(document())

    async def stream(request: Request) -> Response:
        found = access.caller(request, May.VIEW, changes=False)
        if isinstance(found, Refused):
            return await _refuse(request, found)
        if not _is_this_job(facts, request.path_params):
            return problem(NOT_FOUND, "there is no such job here")
        answer = streams.open(request)
        return await _refuse(request, answer) if isinstance(answer, Refused) else answer

    table = [Path(row.path, _endpoint(row, job, access, problem), methods=[row.method]) for row in TABLE]
    rows = {row.name: row for row in TABLE}
    short = [
        Path(f"/api/v1/{name}", _endpoint(rows[name], job, access, short_error), methods=[rows[name].method])
        for name in ("status", "stop", "scale", "restart", "pause", "resume", "commit")
    ]
    model = Path("/api/v1/job-model", _open(lambda: facts.model()))
    fixed = [Path("/metrics", metrics), Path("/healthz", healthz), Path("/readyz", readyz), Path("/v1/openapi.json", openapi)]
    page = [Path(path, files.endpoint) for path in files.paths]
    return Starlette(
        routes=[*fixed, *page, *short, model, Path(f"{J}/stream", stream), *table],
        middleware=[Middleware(_OnlyByName, names=names), Middleware(_SafeHeaders)],
        exception_handlers={NOT_FOUND: _no_such_path, NOT_ALLOWED: _no_such_method},
    )


@dataclass(frozen=True, slots=True)
class _Job:
    """What the routes ask."""

    facts: Facts
    actions: Actions
    contents: Contents
    inside: Inside
    cluster: Cluster


def _open(read: Callable[[], Any]) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(read))

    return endpoint


def problem(status: int, detail: str, remedy: str = "", code: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """An error as RFC 9457 has it."""
    content = {"type": "about:blank", "title": TITLES.get(status, "Refused"), "status": status, "detail": detail, "code": code, "remedy": remedy}
    return JSONResponse(content, status, dict(headers or {}), "application/problem+json")


async def _no_such_path(request: Request, _: Exception) -> Response:
    return problem(NOT_FOUND, "there is nothing at this path")


async def _no_such_method(request: Request, _: Exception) -> Response:
    """Of the paths that match, the one with the fewest parameters says which methods there are: a letter's number may be any word."""
    found = [each for each in request.app.routes if isinstance(each, Path) and each.matches(request.scope)[0] is not Match.NONE]
    fewest = min(len(each.param_convertors) for each in found)
    allowed = sorted({method for each in found if len(each.param_convertors) == fewest for method in each.methods or ()})
    return problem(NOT_ALLOWED, f"{request.method} is not for this path", headers={"Allow": ", ".join(allowed)})


def short_error(status: int, detail: str, remedy: str = "", code: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """An error as the short paths have it."""
    content = {"error": detail, **({"remedy": remedy, "code": code} if code else {})}
    return JSONResponse(content, FORBIDDEN if status == 401 else status, dict(headers or {}))


async def _refuse(request: Request, refused: Refused, error: Callable[..., Response] = problem) -> Response:
    await throw_away(request)
    return error(refused.status, refused.why, refused.remedy, headers=dict(refused.headers))


def _is_this_job(facts: Facts, path: Mapping[str, str]) -> bool:
    about = facts.about()
    return "job" not in path or (path["job"], path["id"]) == (about["job"], about["id"])


def _endpoint(row: Route, job: _Job, access: Access, error: Callable[..., Response]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            found = access.caller(request, row.who, changes=row.changes)
            if isinstance(found, Refused):
                return await _refuse(request, found, error)
            if not _is_this_job(job.facts, request.path_params):
                return error(NOT_FOUND, "there is no such job here")
            if row.of_records and not job.contents.are_shown:
                return await _refuse(request, NOT_SHOWN, error)
            body = await body_of(request, MAX_REQUEST_BYTES) if row.changes else b""
            if found.is_signed and not is_signed_body(request.headers, body):
                return error(FORBIDDEN, f"{NOT_SIGNED}: the body does not match the signature")
            asked = _asked(row, request, found, body, job)
            if row.changes and not row.looks and not getattr(asked.body, "dry_run", False) and (refused := access.change(found)) is not None:
                return error(refused.status, refused.why, refused.remedy, headers=dict(refused.headers))
            return await run_in_threadpool(lambda: _answered(row.act(asked)))
        except TooLarge as too_large:
            await throw_away(request)
            return error(TOO_LARGE, str(too_large))
        except ClientDisconnect:
            return Response(status_code=BAD)  # nobody reads it
        except NotFound as missing:
            return error(NOT_FOUND, str(missing))
        except SamzapyError as refused:
            return error(CONFLICT, refused.message, refused.remedy, refused.code)
        except ValidationError as wrong:
            return error(BAD, f"request not understood: {_why(row, wrong)}")
        except NOT_UNDERSTOOD as wrong:
            return error(BAD, f"request not understood: {type(wrong).__name__}: {wrong}")

    return endpoint


def _asked(row: Route, request: Request, caller: Caller, body: bytes, job: _Job) -> Asked:
    query = checked_query(row, request.query_params)
    content = (row.body or NoBody).model_validate(read_object(body or b"{}", MAX_REQUEST_BYTES))
    return Asked(job.facts, job.actions, job.contents, job.inside, job.cluster, caller, request.path_params, query, content)


def _why(row: Route, wrong: ValidationError) -> str:
    """What is wrong with a body, field by field; of a field that there is not, also which there are."""
    told = [(".".join(map(str, e["loc"]))[:50], e) for e in wrong.errors()[:5]]
    fields = ", ".join(row.body.model_fields) if row.body is not None else "none"
    return "; ".join(f"no field {where!r}; there is {fields}" if e["type"] == "extra_forbidden" else f"{where}: {e['msg']}" for where, e in told)


def _answered(content: Any) -> Response:
    answer = _Readable(content)
    if len(answer.body) > MAX_ANSWER_BYTES:
        return problem(TOO_LARGE, f"the answer has more than {MAX_ANSWER_BYTES} bytes", "Ask for a part of it: `rows` has `limit` and `find`.")
    return answer


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
        error = f"host name {name[:100]!r} is not allowed for this job; if it is right, add it to `web: {{names: [...]}}` of the job file"
        await JSONResponse({"error": error}, MISDIRECTED)(scope, receive, send)


class _SafeHeaders:
    """What browsers are told: run and load nothing that is not from here, guess no types, keep nothing of the interface."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kept = (b"cache-control", b"no-store" if scope["path"].startswith(("/v1", "/api")) else b"no-cache")

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS, kept]}
            await send(message)

        await self._app(scope, receive, answer)
