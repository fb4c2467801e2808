"""A call that may take for ever, with an end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


class NotInTime(Exception):
    """The call goes on; nobody waits for it any more."""


def within(limit_s: float, call: Callable[[], T], name: str) -> T:
    """What `call` returns or raises, on a thread of its own of that name, which is left alone if time is up.

    Raises:
        NotInTime: not within `limit_s` seconds. The caller must take from it what it waits for.
    """
    answer: Future[T] = Future()

    def work() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001  it is raised where the answer is awaited
            answer.set_exception(error)

    threading.Thread(target=work, daemon=True, name=name).start()
    try:
        return answer.result(limit_s)
    except TimeoutError:
        if answer.done():
            raise
        raise NotInTime from None
