"""What commands ask of a running coordinator, over HTTP."""

from __future__ import annotations

import http.client
import json
import re
import time
from typing import Any
from urllib.parse import unquote, urlsplit

from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.http_client import NO_ANSWER, ask
from samzapy.signing import signed_headers, told_time

HTTP_TIMEOUT_S = 5.0


def http_json(
    method: str, url: str, token: str | None = None, content: dict[str, Any] | None = None, timeout_s: float = HTTP_TIMEOUT_S
) -> dict[str, Any]:
    """One request to a coordinator, done in `timeout_s` at most; with `token` it is signed.

    The token itself is not sent, because the URL comes from a topic that others may have written.

    Raises:
        ClusterUnreachable: no answer, or not a coordinator's; or what it asked did not answer. ConfigurationError: it refuses, and says why.
    """
    try:
        parts = urlsplit(url)
        sent = b"" if content is None else json.dumps(content).encode()
        now_s, deadline = time.time(), time.monotonic() + timeout_s
        for _ in range(2):
            headers = signed_headers(token, method, unquote(parts.path), sent, now_s) if token else {}  # as the server sees it
            left_s = max(0.0, deadline - time.monotonic())
            answer = ask(method, parts.hostname or "127.0.0.1", parts.port, parts.path, left_s, sent, headers, is_tls=parts.scheme == "https")
            told_s = told_time(token, unquote(parts.path), headers, answer.headers) if token else None
            if told_s is None:
                break
            now_s = told_s  # the clocks differ; the coordinator's counts
        if answer.status == http.client.FORBIDDEN:
            raise ConfigurationError(
                f"{method} {url} was refused: {_why(answer.json())}.",
                "Check that the token is this run's (--token-file).",
            )
        if answer.status in (http.client.CONFLICT, http.client.BAD_REQUEST, http.client.NOT_FOUND) and answer.headers.get_content_subtype().endswith("json"):
            refused = answer.json()
            kind = ClusterUnreachable if refused.get("code") == ClusterUnreachable.code else ConfigurationError
            raise kind(_why(refused), str(refused.get("remedy", "")))
        if not answer.is_ok:
            raise ClusterUnreachable(f"{method} {url}: {answer.status} {answer.reason}.", "See the log of the run: the coordinator is part of its process.")
        found = answer.json()
        if not isinstance(found, dict):
            raise ClusterUnreachable(f"{method} {url}: the answer is not from samzapy.", "Check what listens there.")
        return found
    except (*NO_ANSWER, KeyError, TypeError, AttributeError) as error:
        raise ClusterUnreachable(f"no coordinator answers at {url}: {error}.", "It may have stopped just now: see `samzapy status JOB.yaml`.") from None


def _why(refused: dict[str, Any]) -> str:
    return str(refused["error"] if "error" in refused else refused["detail"])


RUN_ID = re.compile(r"[\w-]{0,100}", re.ASCII)


def is_status(answer: dict[str, Any]) -> bool:
    """Whether this has the form of a coordinator's status: the lease's URL may lead to another server."""
    return (
        all(isinstance(answer.get(name), str) for name in ("job", "id", "state", "run_id", "coordinator"))
        and RUN_ID.fullmatch(answer["run_id"]) is not None  # it becomes a part of a path
        and all(_are_objects(answer.get(name)) for name in ("containers", "tasks", "moves"))
        and all({"id", "state", "pid", "tasks", "reason"} <= c.keys() and isinstance(c["tasks"], list) for c in answer["containers"])
        and all({"name", "state", "stores"} <= t.keys() and isinstance(t["stores"], dict) for t in answer["tasks"])
        and all({"task", "why"} <= m.keys() and isinstance(m["why"], str) for m in answer["moves"])
        and isinstance(notes := answer.get("notes", []), list)
        and all(isinstance(note, str) for note in notes)
    )


def _are_objects(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
