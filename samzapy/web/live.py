"""The facts of a job that runs, from its coordinator; and what may be done to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from samzapy.api.errors import ConfigurationError
from samzapy.coordinator.events import PEOPLE
from samzapy.coordinator.job_coordinator import JobCoordinator
from samzapy.model.states import TaskState
from samzapy.web.facts import Rows

LOG = logging.getLogger("samzapy.web")


class Live:
    """Facts and Actions of a running coordinator.

    Args:
        about: the job's topics, stores and configuration.
        notes: what people are to know of this process.
        hasten: lets containers fetch their orders now, not with their next heartbeats.
        check_code: raises SamzapyError where containers could not be started with the code as it is now.
    """

    def __init__(
        self,
        coordinator: JobCoordinator,
        about: Mapping[str, Any],
        notes: Callable[[], Sequence[str]] = tuple,
        hasten: Callable[[], None] = lambda: None,
        options: str = "",
        check_code: Callable[[], None] = lambda: None,
    ) -> None:
        self._coordinator = coordinator
        self._roster = coordinator.roster
        self._about = about
        self._notes = notes
        self._hasten = hasten
        self._check_code = check_code
        self._again = " ".join(["samzapy run JOB.yaml", options]).strip()

    def status(self) -> dict[str, Any]:
        return {**self._roster.status(), "notes": list(self._notes())}

    def state(self) -> str:
        return self._roster.state

    def model(self) -> dict[str, Any]:
        return self._roster.model().to_json()

    def reports(self) -> Mapping[int, Mapping[str, Any]]:
        return self._roster.reports()

    def events(self, since: int) -> Rows:
        with self._roster.lock:
            return self._roster.events.since(since)

    def commits(self) -> Rows:
        with self._roster.lock:
            return self._roster.events.commits()

    def errors(self) -> Rows:
        with self._roster.lock:
            return [dict(group) for group in self._roster.events.errors()]

    def series(self, step_s: float) -> Rows:
        with self._roster.lock:
            return self._roster.observed.series(step_s)

    def hints(self) -> Rows:
        with self._roster.lock:
            return self._roster.diagnosing.to_json()

    def about(self) -> dict[str, Any]:
        return dict(self._about)

    # -- what may be done ----------------------------------------------------------------------------------------------------------------

    def stop(self, by: str, dry_run: bool) -> dict[str, Any]:
        running = sum(1 for task in self._roster.task_states() if task == TaskState.RUNNING)
        effect = f"{running} tasks commit what they have done and stop; start the job again with `{self._again}`"
        if not dry_run:
            self.note("stop", by, effect)
            self._coordinator.request_stop(by)
            self._hasten()
        return {"state": self._roster.state, "effect": effect}

    def scale(self, containers: int, by: str, dry_run: bool) -> dict[str, Any]:
        done = self._coordinator.changes.scale(containers, dry_run)
        return self._told("scale", by, dry_run, done, _scaled(done["before"], done["containers"], done["tasks"]))

    def restart(self, container: int | None, by: str, dry_run: bool, *, is_checked: bool) -> dict[str, Any]:
        self._coordinator.changes.restart(container, dry_run=True)  # what is wrong with the request is told at once
        if not is_checked:
            self._check_code()
        done = self._coordinator.changes.restart(container, dry_run)
        return self._told("restart", by, dry_run, done, _restarted(sorted(done["containers"]), done["tasks"]))

    def _told(self, what: str, by: str, dry_run: bool, done: dict[str, Any], effect: str) -> dict[str, Any]:
        if not dry_run:
            self.note(what, by, effect)
        return {**done, "effect": effect}

    def pause(self, by: str, dry_run: bool) -> dict[str, Any]:
        with self._roster.lock:
            self._refuse_stopping("paused")
            before = self._roster.orders.why_paused()
            effect = f"nothing changes: the job is {before}" if before else (
                f"{self._at_work()} commit what they have done and process nothing more; they keep their state, and their places in the inputs. "
                "Containers that start again are paused, too, until the job is resumed or the run ends"
            )  # fmt: skip
            if not dry_run and not before:
                self._roster.orders.pause(by)
                self.note("pause", by, effect)
        if not dry_run:
            self._hasten()
        return {"effect": effect}

    def resume(self, by: str, dry_run: bool) -> dict[str, Any]:
        with self._roster.lock:
            is_paused = self._roster.orders.is_paused
            effect = f"{self._at_work()} go on where they stand" if is_paused else "nothing changes: the job is not paused"
            if not dry_run and is_paused:
                self._roster.orders.resume()
                self.note("resume", by, effect)
        if not dry_run:
            self._hasten()
        return {"effect": effect}

    def commit(self, by: str, dry_run: bool) -> dict[str, Any]:
        with self._roster.lock:
            self._refuse_stopping("told to commit")
            effect = f"{self._at_work()} commit what they have done since their last commits"
            if dry_run:
                return {"effect": effect, "number": self._roster.orders.commit}
            self.note("commit", by, effect)
            number = self._roster.orders.order_commit()
        self._hasten()
        return {"effect": effect, "number": number}

    def _refuse_stopping(self, what: str) -> None:
        if self._roster.is_stopping:
            raise ConfigurationError(f"the job is stopping: it cannot be {what}.", "See `samzapy status JOB.yaml`.")

    def _at_work(self) -> str:
        tasks, members = len(self._roster.tasks), sum(1 for m in self._roster.members.values() if not m.is_done)
        return f"{tasks} task{'s' if tasks != 1 else ''} in {members} container{'s' if members != 1 else ''}"

    def note(self, what: str, by: str, effect: str) -> None:
        """Something was done that somebody asked for."""
        LOG.info("%s, asked for by %s: %s", what, by, effect)
        with self._roster.lock:
            self._roster.events.add(PEOPLE, what, f"{by} asked for: {what}; {effect}", by=by)


def _scaled(before: int, after: int, tasks: int) -> str:
    if before == after:
        return f"{after} containers, as before: nothing changes"
    moved = sum(max(0, share - kept) for share, kept in zip(_shares(tasks, after), _shares(tasks, before) + [0] * after, strict=False))
    return f"{before} → {after} containers for {tasks} tasks; at least {moved} tasks move, each after a commit and, where needed, a restore"


def _restarted(containers: Sequence[int], tasks: int) -> str:
    if not containers:
        return "nothing changes: none of them runs now"
    if len(containers) > 1:
        these = f"containers {', '.join(map(str, containers))} commit, end and are started again, one after the other"
        return f"{these}; meanwhile the tasks of each do not run ({tasks} in all)"
    return f"container {containers[0]} commits, ends and is started again; meanwhile its tasks do not run ({tasks} in all)"


def _shares(tasks: int, containers: int) -> list[int]:
    return [tasks // containers + (n < tasks % containers) for n in range(containers)]
