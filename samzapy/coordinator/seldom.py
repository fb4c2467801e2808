"""Limits log messages that anyone outside can cause to one a minute, so that strangers cannot fill the log."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass


@dataclass(slots=True)
class _Said:
    at_s: float
    left_out: int = 0


class Seldom(logging.Filter):
    """A filter: each message (by its text without arguments) at most once in `every_s` seconds, with the number of those left out."""

    def __init__(self, every_s: float) -> None:
        super().__init__()
        self._every_s = every_s
        self._said: dict[str, _Said] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        now, template = time.monotonic(), str(record.msg)[:200]
        said = self._said.get(template)
        if said is not None and now - said.at_s < self._every_s:
            said.left_out += 1
            return False
        if said is not None and said.left_out:
            record.msg = f"{record.getMessage()} ({said.left_out} more of these in {now - said.at_s:.0f} s)"
            record.args = ()
        if len(self._said) < 1000 or template in self._said:
            self._said[template] = _Said(now)
        return True
