"""The status document for those who have no token: errors' texts may quote a record, so they are left out."""

from __future__ import annotations

import re
from typing import Any

from samzapy.container.retry_notice import BEFORE_ERROR

HIDDEN = "its text is shown only with a token, because it may quote a record"
_CODED = re.compile(r"(SZ\d+\]?): .*", re.DOTALL)


def open_status(status: dict[str, Any]) -> dict[str, Any]:
    """The same document, without texts of errors; their codes stay."""
    last = status.get("last_run")
    return {
        **status,
        "reason": _coded(status["reason"]),
        "containers": [_container(c) for c in status["containers"]],
        "tasks": [_task(t) for t in status["tasks"]],
        "hints": [{**hint, "sentence": _coded(hint["sentence"]), "detail": _coded(hint["detail"])} for hint in status["hints"]],
        **({} if last is None else {"last_run": {**last, "error": _coded(last["error"])}}),
    }


def _container(container: dict[str, Any]) -> dict[str, Any]:
    reason, error, restart = container["reason"], container["last_error"], container["last_restart"]
    return {
        **container,
        "reason": HIDDEN if reason and reason == error else _coded(reason),
        "last_error": HIDDEN if error else error,
        "last_restart": restart and {**restart, "reason": HIDDEN if restart["reason"] else ""},
    }


def _task(task: dict[str, Any]) -> dict[str, Any]:
    reason, quotes, _ = (task["reason"] or "").partition(BEFORE_ERROR)
    return {**task, "reason": f"{reason}{BEFORE_ERROR}{HIDDEN}" if quotes else task["reason"]}


def _coded(text: str) -> str:
    return _CODED.sub(rf"\1: {HIDDEN}", text or "")
