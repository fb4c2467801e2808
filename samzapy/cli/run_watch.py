"""Beside a run: the line at the bottom of a terminal, whether Kafka answers, restores on other hosts."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from samzapy.api.errors import SamzapyError
from samzapy.cli.run_line import line_of, restored, summary_of
from samzapy.coordinator.roster import Roster
from samzapy.kafka.own_certificate import Certificate
from samzapy.log_output import show_line
from samzapy.ports import Admin, Clock, Log

LOG = logging.getLogger("samzapy")
EVERY_S = 0.5
ASK_EVERY_S = 1.0
LOOK_AT_CERTIFICATE_S = 10.0
ANSWER_S = 1.5  # together with ASK_EVERY_S less than three seconds


class RunWatch:
    """Watches a run from threads of its own, which never keep the process.

    Args:
        roster: of the run's coordinator.
        topic: one of the job's, which Kafka is asked for.
        is_shown: whether there is a terminal to draw a line in.
        is_elsewhere: whether containers log on other hosts, so that their restores are told here.
        certificate: reads the client certificate that the job file names.
    """

    def __init__(
        self, roster: Roster, log: Log, clock: Clock, topic: str, *, is_shown: bool, is_elsewhere: bool,
        certificate: Callable[[], Certificate | None] = lambda: None,
    ) -> None:  # fmt: skip
        self._roster, self._log, self._clock, self._topic = roster, log, clock, topic
        self._is_shown, self._is_elsewhere = is_shown and is_terminal(), is_elsewhere
        self._certificate, self._look_at, self._said = certificate, clock.monotonic(), ""
        self._is_over = threading.Event()
        self._told: dict[tuple[str, str], str] = {}
        self._silent_since: float | None = None
        self._began = clock.monotonic()

    def __enter__(self) -> RunWatch:
        threading.Thread(target=self._watch, name="run-watch", daemon=True).start()
        threading.Thread(target=self._ask_kafka, name="kafka-watch", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        show_line("")

    def summary(self, has_stages: bool) -> str:
        """What the run did. `has_stages`: of a program with internal topics."""
        status = self._look()
        restarts = sum(container["restarts"] for container in status["containers"])
        return summary_of(self._roster.totals, restarts, self._clock.monotonic() - self._began, has_stages)

    def _watch(self) -> None:
        while not self._is_over.wait(EVERY_S):
            if not self._is_shown and not self._is_elsewhere:  # a status is work, with many tasks
                continue
            status = self._look()
            if self._is_shown:
                silent_s = None if self._silent_since is None else self._clock.monotonic() - self._silent_since
                show_line(line_of(status, self._roster.totals, silent_s, _width()))

    def _look(self) -> dict[str, Any]:
        status = self._roster.status()
        if self._is_elsewhere:
            for key, sentence in restored(status).items():
                if self._told.get(key) != sentence:
                    self._told[key] = sentence
                    LOG.info("%s", sentence)
        return status

    def _ask_kafka(self) -> None:
        while not self._is_over.is_set():  # after silence with a new client: that reads a new certificate
            with self._log.admin() as admin:
                while not self._is_over.wait(ASK_EVERY_S):
                    self.look_at_certificate()
                    if not self.ask(admin):
                        break

    def look_at_certificate(self) -> None:
        """Every ten seconds: that the client certificate has expired, or soon will, becomes a hint, and is logged once."""
        if self._clock.monotonic() < self._look_at:
            return
        self._look_at = self._clock.monotonic() + LOOK_AT_CERTIFICATE_S
        own = self._certificate()
        found = own.finding() if own is not None else None
        with self._roster.lock:
            self._roster.diagnosing.set_certificate(found)
        said = "" if own is None or found is None else f"{found.severity} {own}"
        if found is not None and said != self._said:
            LOG.warning("%s %s", found.sentence, found.remedy)
        self._said = said

    def ask(self, admin: Admin) -> bool:
        """Ask Kafka once; tell when it begins not to answer, and when it answers again. Returns whether it did."""
        asked_at = self._clock.monotonic()
        try:
            admin.outlines([self._topic], ANSWER_S)
        except SamzapyError as error:
            if self._silent_since is None and not self._is_over.is_set():
                self._silent_since = asked_at
                LOG.warning("Kafka does not answer; the job waits for it: %s", error)
            return False
        if self._silent_since is not None:
            LOG.info("Kafka answers again, after %.0f s", self._clock.monotonic() - self._silent_since)
            self._silent_since = None
        return True


def is_terminal() -> bool:
    """Whether a person sees standard error as it is written."""
    return sys.stderr.isatty()


def _width() -> int:
    try:
        return os.get_terminal_size(2).columns or 80  # 0: it does not know
    except OSError:
        return 80
