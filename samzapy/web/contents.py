"""What the job's topics hold, read from Kafka when somebody asks for it, whether the job runs or not; bounded, and never on the path of a heartbeat."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from samzapy.config.schema import Settings
from samzapy.ports import Clock, Log
from samzapy.web.letters import Letters, Note


def _unnoted(what: str, by: str, effect: str) -> None:
    """A job that does not run has no timeline."""


class Contents:
    """Dead letters.

    Args:
        folders: where the user's serdes and schemas are looked for.
        note: is told of each change: what, by whom, with which effect.
    """

    def __init__(self, settings: Settings, folders: Sequence[Path], log: Log, clock: Clock, note: Note = _unnoted) -> None:
        self.letters = Letters(settings, folders, log, clock, note)
