"""What the job's topics hold, read from Kafka when somebody asks for it, whether the job runs or not; bounded, and never on the path of a heartbeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from samzapy.config.schema import Settings
from samzapy.model.run_record import RunRecord
from samzapy.ports import Clock, Log
from samzapy.web.letters import Letters, Note
from samzapy.web.record_fields import RecordFields
from samzapy.web.runs import Rows, Runs
from samzapy.web.tap import Tap
from samzapy.wiring.job_topics import job_of


def _unnoted(what: str, by: str, effect: str) -> None:
    """A job that does not run has no timeline."""


class Contents:
    """Dead letters, records of topics, and the last runs.

    Args:
        folders: where the user's serdes and schemas are looked for.
        note: is told of each change: what, by whom, with which effect.
        this_run: the run of this process as it is now; None: it runs none.
        file: the configuration that the job file has now: key, value, from.

    Attributes:
        are_shown: whether people may see keys and values of records (`web.data`).
    """

    def __init__(
        self,
        settings: Settings,
        folders: Sequence[Path],
        log: Log,
        clock: Clock,
        *,
        file: Callable[[], Rows],
        note: Note = _unnoted,
        this_run: Callable[[], RunRecord | None] = lambda: None,
    ) -> None:
        self.are_shown = settings.web.data
        fields = RecordFields(settings, folders)
        self.letters = Letters(settings, fields, log, clock, note)
        self.tap = Tap(settings, fields, log, clock)
        self.runs = Runs(job_of(settings), log, clock, this_run, file)
