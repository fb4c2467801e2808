"""The HTTP endpoints for a run's containers. A request is answered only if it is signed with the run's token, fresh, and not a repetition;
otherwise its body is never kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from samzapy.api.errors import SamzapyError, Superseded
from samzapy.coordinator.http import BAD, CONFLICT, FORBIDDEN, TOO_LARGE, UNAVAILABLE, TooLarge, body_of, knows, throw_away
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.switchboard import Switchboard
from samzapy.model.bounded_json import NOT_UNDERSTOOD, read_object
from samzapy.signing import NOT_SIGNED, Gate, SteadyTime, is_signed_body, time_headers

MAX_BODY_BYTES = 8 << 20
MAX_BODIES_BYTES = 64 << 20  # of all requests that are being read
GONE = Response(status_code=BAD)  # an answer that nobody reads
STRANGERS = 128
LONGEST_PARKED_S = 25.0
Act = Callable[[Mapping[str, Any]], Mapping[str, Any]]
AsyncAct = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


def control_connections(tasks: int) -> int:
    """How many connections without a signature so far are accepted: room for strangers, and for every possible container to begin two
    requests at once."""
    return STRANGERS + 2 * tasks


def control_app(roster: Roster, token: str, switchboard: Switchboard | None = None) -> Starlette:
    """Registration, heartbeat, final report and long poll of each container."""
    check, room, board = signature_check(token), _Room(MAX_BODIES_BYTES), switchboard or Switchboard()

    def register(content: Mapping[str, Any]) -> Mapping[str, Any]:
        given = roster.register(int(content["container"]), str(content["launch_id"]), str(content["incarnation"]), dict(content["facts"]))
        if given is None:
            return {"named": False}
        ends = None if given.end_offsets is None else dict(given.end_offsets)
        return {"named": True, "run_id": given.run_id, "end_offsets": ends, "caution": given.caution.to_json(), "paused": given.paused}

    def heartbeat(content: Mapping[str, Any]) -> Mapping[str, Any]:
        return roster.heartbeat(int(content["container"]), str(content["incarnation"]), dict(content["report"]))

    def report_final(content: Mapping[str, Any]) -> Mapping[str, Any]:
        roster.report_final(int(content["container"]), str(content["incarnation"]), dict(content["report"]))
        return {}

    async def long_poll(content: Mapping[str, Any]) -> Mapping[str, Any]:
        who = int(content["container"]), str(content["incarnation"]), int(content["n"])
        await run_in_threadpool(roster.refuse_strangers, who[0], who[1])
        asked, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(asked.set)

        board.arrive(*who, [answer for answer in content["answers"] if isinstance(answer, dict)], wake)
        try:
            async with asyncio.timeout(min(max(0.0, float(content["park_s"])), LONGEST_PARKED_S)):
                await asked.wait()
        except TimeoutError:
            pass
        return {"questions": board.take(*who)}

    verbs: dict[str, AsyncAct] = {"register": _in_thread(register), "heartbeat": _in_thread(heartbeat), "finished": _in_thread(report_final), "line": long_poll}
    return Starlette(routes=[Route(f"/control/{verb}", _answering(check, room, act), methods=["POST"]) for verb, act in verbs.items()])


def _in_thread(act: Act) -> AsyncAct:
    return lambda content: run_in_threadpool(act, content)


def signature_check(token: str) -> Callable[[Request], tuple[str, dict[str, str]]]:
    """Why a request is refused, from its head alone, and the headers that tell its sender more; "" if it is accepted, which happens once per
    signature."""
    gate, lock, steady = Gate(token), threading.Lock(), SteadyTime()

    def why_not(request: Request) -> tuple[str, dict[str, str]]:
        now_s, path = steady.now(), request.url.path
        with lock:
            refused = gate.why_not(request.method, path, request.headers, now_s)
        if not refused:
            knows(request)
        return refused, time_headers(token, path, request.headers, refused, now_s)

    return why_not


class _Room:
    """A limit on the bytes of all request bodies at a time. Used on the listener's loop only."""

    def __init__(self, limit_bytes: int) -> None:
        self._left = limit_bytes

    @contextmanager
    def taken(self, size: int) -> Iterator[bool]:
        """Reserve `size` bytes for the block; False: there is no room for them."""
        is_there = size <= self._left
        self._left -= size if is_there else 0
        try:
            yield is_there
        finally:
            self._left += size if is_there else 0


def _answering(check: Callable[[Request], tuple[str, dict[str, str]]], room: _Room, act: AsyncAct) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            refused, more = check(request)
            if refused:
                await throw_away(request)
                return JSONResponse({"error": refused}, FORBIDDEN, more)
            with room.taken(_expected_bytes(request)) as is_room:
                if not is_room:
                    await throw_away(request)
                    return JSONResponse({"error": "too many large requests at once"}, UNAVAILABLE)
                return await _act(request, act, await body_of(request, MAX_BODY_BYTES))
        except TooLarge as error:
            await throw_away(request)
            return JSONResponse({"error": str(error)}, TOO_LARGE)
        except ClientDisconnect:
            return GONE

    return endpoint


def _expected_bytes(request: Request) -> int:
    length = request.headers.get("Content-Length", "")
    return min(int(length), MAX_BODY_BYTES) if length.isdecimal() and len(length) <= 18 else MAX_BODY_BYTES


async def _act(request: Request, act: AsyncAct, body: bytes) -> Response:
    if not is_signed_body(request.headers, body):
        return JSONResponse({"error": f"{NOT_SIGNED}: the body does not match the signature"}, FORBIDDEN)
    try:
        return JSONResponse(await act(read_object(body, MAX_BODY_BYTES)))
    except Superseded as error:
        return JSONResponse({"error": error.message}, CONFLICT)
    except SamzapyError as error:
        return JSONResponse({"error": str(error)}, UNAVAILABLE)
    except NOT_UNDERSTOOD as error:
        return JSONResponse({"error": f"request not understood: {type(error).__name__}"}, BAD)
