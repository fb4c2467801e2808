"""Looking inside a running container: what its loop does now, its stack, a profile, a trace of a task's next records. Through the long poll; nothing changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, Protocol

from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.coordinator.events import PEOPLE
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.switchboard import Switchboard

LOG = logging.getLogger("samzapy.web")
WAIT_S = 5.0
MORE_S = 8.0  # than a profile or a trace takes


class Inside(Protocol):
    """`by`: who asks, as the timeline names them.

    Raises (all): SamzapyError: there is no such thing, it does not answer, or refuses.
    """

    def stack(self, container: int, by: str) -> dict[str, Any]: ...

    def profile(self, container: int, seconds: float, by: str) -> dict[str, Any]: ...

    def trace(self, task: str, records: int, seconds: float, by: str) -> dict[str, Any]: ...


class Nobody:
    """Inside, where nothing runs."""

    def stack(self, container: int, by: str) -> dict[str, Any]:
        raise _nobody()

    def profile(self, container: int, seconds: float, by: str) -> dict[str, Any]:
        raise _nobody()

    def trace(self, task: str, records: int, seconds: float, by: str) -> dict[str, Any]:
        raise _nobody()


def _nobody() -> ConfigurationError:
    return ConfigurationError("the job is not running, so there is nothing to inspect.", "Start it: `samzapy run JOB.yaml`.")


class Looking:
    """Inside, of a job that runs."""

    def __init__(self, roster: Roster, switchboard: Switchboard) -> None:
        self._roster = roster
        self._switchboard = switchboard

    def stack(self, container: int, by: str) -> dict[str, Any]:
        LOG.info("stack of container %d, asked for by %s", container, by)
        return self._ask(container, "stack", {}, WAIT_S)

    def profile(self, container: int, seconds: float, by: str) -> dict[str, Any]:
        self._note("profile", container, by, f"a profile of {seconds:.0f} s of container {container}")
        return self._ask(container, "profile", {"seconds": seconds}, seconds + MORE_S)

    def trace(self, task: str, records: int, seconds: float, by: str) -> dict[str, Any]:
        """As soon as so many records came, or with those that came in `seconds`."""
        container = self._container_of(task)
        self._note("trace", container, by, f"a trace of the next {records} records of {task}")
        return self._ask(container, "trace", {"task": task, "records": records, "seconds": seconds}, seconds + MORE_S)

    def hasten(self) -> None:
        """There are orders for all containers: they are to ask for them now."""
        with self._roster.lock:
            members = {member.number: member.owner.incarnation for member in self._roster.members.values() if member.is_live}
        for number, incarnation in members.items():
            self._switchboard.hasten(number, incarnation)

    def _container_of(self, task: str) -> int:
        with self._roster.lock:
            if task not in self._roster.tasks:
                raise ConfigurationError(f"there is no task {task[:100]!r}.", "`samzapy status JOB.yaml` shows their names.")
            owner = next((member for member in self._roster.members.values() if task in member.tasks), None)
        if owner is None:
            raise ConfigurationError(f"no container runs {task} now.", "Ask again when it runs.")
        return owner.number

    def _ask(self, container: int, kind: str, content: Mapping[str, Any], wait_s: float) -> dict[str, Any]:
        with self._roster.lock:
            self._roster.refuse_unknown(container)
        incarnation = self._roster.incarnation_of(container)
        if not incarnation:
            raise ConfigurationError(f"container {container} does not run now.", "`samzapy status JOB.yaml` says why.")
        try:
            found = self._switchboard.ask(container, incarnation, kind, content, wait_s)
        except ClusterUnreachable as error:
            raise ClusterUnreachable(f"{error.message} {self._last_known(container)}".rstrip(), error.remedy) from None
        return {"container": container, "at_ms": time.time_ns() // 1_000_000, **found}

    def _last_known(self, container: int) -> str:
        now = self._roster.reports().get(container, {}).get("now")
        if not isinstance(now, Mapping):
            return ""
        return f"When it was last heard, a hook{now.get('record', '')} had been going on for {float(now.get('silent_s', 0.0)):.0f} s, at {now.get('at', '?')}."

    def _note(self, what: str, container: int, by: str, words: str) -> None:
        LOG.info("%s, asked for by %s", words, by)
        with self._roster.lock:
            self._roster.events.add(PEOPLE, what, f"{by} asked for {words}", container=container, by=by)
