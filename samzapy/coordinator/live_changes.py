"""Changes while the job runs: more or fewer containers, a rolling restart, hosts that leave, inputs that grow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from samzapy.api import exit_codes
from samzapy.api.errors import ConfigurationError, LogError, NotAuthorized, SamzapyError, StateMismatch, StateRefused
from samzapy.coordinator.membership import Member
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import CoordinatorSettings, InputTopics
from samzapy.model.job_model import TaskModel
from samzapy.model.offsets import TopicPartition
from samzapy.plan.assignment import check_slots
from samzapy.plan.container_phases import Phase
from samzapy.ports import Clock, Launcher

LOG = logging.getLogger("samzapy.coordinator")
LEAVE_S = 2.0
DECOMMISSIONED = "its host was being decommissioned"
TIMED_GROWTH_S = 1.0  # event time goes on until growth is noticed


class Changes:
    """Changes requested of a running job, carried out a step at a time.

    Args:
        replan: decides where tasks run, given the launcher's hosts and which containers stay on which host; returns the hosts to ask for.
    """

    def __init__(
        self,
        roster: Roster,
        settings: CoordinatorSettings,
        clock: Clock,
        launcher: Launcher,
        input_topics: InputTopics,
        replan: Callable[[Mapping[str, int | None], Mapping[int, str]], Mapping[int, str | None]],
    ) -> None:
        self._roster = roster
        self._settings = settings
        self._growth_s = min(settings.growth_s, TIMED_GROWTH_S) if input_topics.timed else settings.growth_s
        self._clock = clock
        self._launcher = launcher
        self._input_topics = input_topics
        self._replan = replan
        self._looked_at = self._left_at = clock.monotonic()
        self._is_unknown = False  # whether the last look at the job's topics brought no answer
        self._roll: list[tuple[int, str]] = []  # to be restarted: container, and the launch that is to end
        self._roll_reason = ""
        self._leaving: set[str] = set()  # hosts, when they were last asked for
        self._must_ask = self._has_asked = False  # for them, before the next container leaves its host
        self._roll_homes: dict[int, str | None] = {}

    @property
    def is_under_way(self) -> bool:
        return bool(self._roll)

    def scale(self, containers: int, dry_run: bool = False) -> dict[str, Any]:
        """Run the job in this many containers from now on; returns what changes. `dry_run`: only that.

        Raises:
            ConfigurationError: not a number of containers, or the job is stopping. LauncherError: more than there are slots.
        """
        if containers < 1:
            raise ConfigurationError(f"{containers} containers: a job runs in one or more.", "")
        slots = list(self._launcher.hosts().values())
        wanted = min(containers, len(self._roster.tasks))
        check_slots(wanted, None if any(n is None for n in slots) else sum(n or 0 for n in slots), "")
        with self._roster.lock:
            self._refuse_while_stopping()
            before = self._roster.target
            if not dry_run:
                self._roster.target = wanted
                self._roster.must_plan = True
                LOG.info(*(("scaling from %d to %d containers", before, wanted) if before != wanted else ("%d containers, as before", wanted)))
            return {"containers": wanted, "before": before, "tasks": len(self._roster.tasks)}

    def restart(self, container: int | None, dry_run: bool = False) -> dict[str, Any]:
        """Restart one container, or all, one after the other; each on the host that has its state. Returns which, and how many tasks they have.
        `dry_run`: only that.

        Raises:
            ConfigurationError: no such container, it has ended, or the job is stopping.
        """
        slots = self._launcher.hosts()  # without the lock: they may be late
        with self._roster.lock:
            self._refuse_while_stopping()
            if container is not None:
                self._roster.refuse_unknown(container)
                self._refuse_ended(container)
            members = self._roster.members
            numbers = [container] if container is not None else sorted(n for n, m in members.items() if not m.is_done)
            asked = [n for n in numbers if members[n].launch.handle is not None]
            if not dry_run:
                self._roll_reason = "its restart was requested"
                if container is None:
                    self._roll_homes = dict(self._replan(slots, {}))
                asked.sort(key=lambda n: members[n].host == self._roll_homes.get(n, members[n].host))
                # an earlier request that is still under way is carried out too: who made it waits for that
                earlier = [(n, launch_id) for n, launch_id in self._roll if n not in numbers]
                self._roll = [*earlier, *((n, members[n].launch.id) for n in asked)]
            return {"containers": asked, "tasks": sum(len(members[n].tasks) for n in asked)}

    def _refuse_ended(self, container: int) -> None:
        if self._roster.members[container].is_done:
            raise ConfigurationError(f"container {container} has ended: all its tasks have finished.", "The other containers can be restarted.")

    def _refuse_while_stopping(self) -> None:
        if self._roster.is_stopping:
            raise ConfigurationError("the job is stopping.", "Start it again with `samzapy run JOB.yaml`.")

    def go_on_with_restart(self) -> None:
        """One container at a time, and only while all others run."""
        with self._roster.lock:
            if not self._roll:
                return
            number, launch_id = self._roll[0]
            member = self._roster.members.get(number)
            others = [m for m in self._roster.members.values() if m.number != number and m.phase not in (Phase.DONE, Phase.PARKED)]
            has_begun_again = member is not None and member.launch.id != launch_id and (self._is_at_work(member) or member.phase is Phase.PARKED)
            if member is None or member.is_done or has_begun_again:  # a parked one begins again once there is a slot
                self._roll.pop(0)
            elif member.launch.id == launch_id and member.phase is Phase.LIVE and all(self._is_at_work(m) for m in others):
                if self._roll_reason == DECOMMISSIONED and not self._has_asked:
                    self._must_ask = True  # without the lock: `leave_hosts` does it
                    return
                self._has_asked = False
                self._roster.members.ask_to_stop(member, self._roll_reason)
                LOG.info("restarting container %d", number)
            if member is not None and not member.is_live and self._roll_homes.get(number):
                self._roster.members.prefer(member, self._roll_homes[number])
            if not self._roll:
                self._roll_homes = {}

    def leave_hosts(self) -> None:
        """Restart containers of hosts that are being decommissioned on other hosts, before those hosts end. A host that lost an executor looks so for
        some seconds, too: one that does not any more keeps its other containers."""
        now = self._clock.monotonic()
        if (now - self._left_at < LEAVE_S and not self._must_ask) or (self._roll and self._roll_reason != DECOMMISSIONED):
            return
        self._left_at = now
        before, self._leaving = self._leaving, set(self._launcher.leaving())
        with self._roster.lock:
            self._has_asked, self._must_ask = self._must_ask, False
            if self._roll:
                self._keep_on_hosts_that_stay()
                return
            gone = before & self._leaving
            leaves = [m for m in self._roster.members.values() if m.is_live and not m.is_done and m.host in gone]
            for member in leaves:
                self._roster.members.prefer(member, None)
                LOG.info("container %d leaves %s, which is being decommissioned", member.number, member.host)
            if leaves:
                self._roll, self._roll_reason = [(m.number, m.launch.id) for m in leaves], DECOMMISSIONED

    def _keep_on_hosts_that_stay(self) -> None:
        for number, launch_id in list(self._roll):
            member = self._roster.members.get(number)
            if member is not None and member.launch.id == launch_id and member.phase is Phase.LIVE and member.host not in self._leaving:
                self._roll.remove((number, launch_id))
                self._roster.members.prefer(member, member.host)
                LOG.info("container %d stays on %s, which is not being decommissioned any more", number, member.host)

    def _is_at_work(self, member: Member) -> bool:
        return member.is_ready and all(member.is_at_work(t) for t in member.tasks)

    def look_for_growth(self) -> None:
        """Check for deleted topics of the job, for settings of them that lose state, and for partitions added to the inputs."""
        now = self._clock.monotonic()
        if now - self._looked_at < self._growth_s:
            return
        self._looked_at = now
        try:
            if self._input_topics.check is not None:
                self._say_unsafe(self._input_topics.check())
            if self._input_topics.find_tasks is None or self._roster.ends is not None:
                return
            tasks = self._input_topics.find_tasks()
        except SamzapyError as error:
            if isinstance(error, LogError) and not isinstance(error, NotAuthorized):  # passes, or is found by who needs the topic
                if not self._is_unknown:
                    LOG.warning("the job's topics could not be checked, trying again every %.0f s: %s", self._settings.growth_s, error)
                self._is_unknown = True
                return
            with self._roster.lock:
                self._roster.ends_at_once = isinstance(error, StateRefused)  # a final commit would name what is there no more, or wait for it
                self._roster.fail(None, error.to_json())
            return
        self._is_unknown = False
        unread = self._unread(tasks)
        if any(p.topic in self._input_topics.timed for p in unread):
            with self._roster.lock:
                if self._roster.failure is None:
                    self._roster.fail(None, _late_in_next_run(unread).to_json())
            return
        self._say_unread(unread)
        new = [t for t in tasks if t not in self._roster.tasks]
        if new:
            with self._roster.lock:
                LOG.info("the inputs have grown: %s", ", ".join(new))
                self._roster.tasks.update({t: tasks[t] for t in new})
                self._roster.must_plan = True

    def _say_unsafe(self, wrong: str) -> None:
        """Settings of internal topics that changed while the job runs: it goes on, because they can be corrected before anything is lost."""
        before, self._roster.unsafe = self._roster.unsafe, wrong
        if wrong and wrong != before:
            LOG.warning("%s. The job goes on; until this is corrected, the next run is refused (SZ303)", wrong)
        elif before and not wrong:
            LOG.info("the settings of the job's topics are correct again; this is over: %s", before)

    def _unread(self, tasks: Mapping[str, TaskModel]) -> list[TopicPartition]:
        """Partitions that inputs have by now and that the running tasks do not read: of a broadcast input, or of one with fewer than there are tasks."""
        running = self._roster.tasks
        return sorted({p for name, now in tasks.items() if name in running for p in set(now.inputs) - set(running[name].inputs)})

    def _say_unread(self, unread: Sequence[TopicPartition]) -> None:
        why = f"{', '.join(map(str, unread))}: added while the job runs; this run does not read them, the next `samzapy run` does" if unread else ""
        if why and why != self._roster.unread:
            LOG.warning("%s, from their start", why)
        self._roster.unread = why


def _late_in_next_run(unread: Sequence[TopicPartition]) -> StateMismatch:
    """The error that ends a job whose event time goes on without these partitions."""
    error = StateMismatch(
        f"{', '.join(map(str, unread))}: added while the job runs. No task of this run reads them, and the longer it ran on without them, the more of "
        "their records would come too late for its windows. The job stops after a last commit.",
        "Start it again now: `samzapy run JOB.yaml` reads the new partitions from their start.",
    )
    error.exit_code = exit_codes.FAILED  # nothing has to be changed: a service manager is to start it again
    return error
