"""Starts containers, each on the host that has its state if that is free in time; parks those for which there is no slot."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from samzapy.coordinator.membership import Launch, Member
from samzapy.coordinator.ownership_records import OwnershipRecords
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import CoordinatorSettings
from samzapy.ids import random_id
from samzapy.model.ownership import LeaseRecord
from samzapy.plan.container_phases import Phase
from samzapy.plan.host_choice import NoRoom, Start, choose_host
from samzapy.ports import Clock, Launcher

LOG = logging.getLogger("samzapy.coordinator")
REPLACED_ENDS_S = 15.0  # a run that was replaced finds that out when it renews its lease, and then frees its slots


class Starting:
    """Launches what is wanted.

    Args:
        payload: what a container is started with, in addition to its number, launch id and the job model.
        replan: decides again where tasks run, given the launcher's hosts; called when the containers that can run change.

    Attributes:
        replaced: the lease of the run that this one took the job from, which had not ended: it may hold Spark's slots.
    """

    def __init__(
        self,
        roster: Roster,
        ownership: OwnershipRecords,
        settings: CoordinatorSettings,
        clock: Clock,
        launcher: Launcher,
        payload: Mapping[str, Any],
        replan: Callable[[Mapping[str, int | None]], object],
        new_id: Callable[[], str] = random_id,
    ) -> None:
        self._roster = roster
        self._ownership = ownership
        self._settings = settings
        self._clock = clock
        self._launcher = launcher
        self._payload = payload
        self._replan = replan
        self._new_id = new_id
        self._room_since: float | None = None
        self.control_url = ""
        self.replaced: LeaseRecord | None = None

    def launch_wanted(self) -> None:
        wanted = [m for m in self._roster.members.values() if m.phase is Phase.WANTED]
        if not wanted:
            return
        slots = self._launcher.hosts()
        for member in wanted:
            now = self._clock.monotonic()
            if now < member.wanted.not_before:
                continue
            used = self._used()
            waited_s = now - max(member.wanted.since, member.wanted.not_before)
            if not slots and waited_s >= REPLACED_ENDS_S:
                self._blame_replaced()
            chosen = choose_host(member.preferred_host, self._state_of(member), slots, used, waited_s, self._settings.host_affinity_s)
            if isinstance(chosen, Start):
                self._launch(member, chosen)
            elif isinstance(chosen, NoRoom) and any(m.is_live and not m.is_done for m in self._roster.members.values()):
                self._park(member, chosen.why, slots)
            else:
                self._roster.members.wait(member, chosen.why)

    def _launch(self, member: Member, chosen: Start) -> None:
        with self._roster.lock:
            knows = frozenset(self._roster.tasks)
            launch = Launch(id=self._new_id(), host=chosen.host, knows=knows, oom_kills=self._settings.oom_kills())
            self._roster.members.launch(member, launch, chosen.miss)
        payload = {
            **self._payload, "model": self._roster.model().to_json(), "container": member.number, "launch_id": launch.id,
            "control_url": self.control_url,
        }  # fmt: skip
        self._roster.members.launched(member, self._launcher.launch(member.number, payload, chosen.host))

    def _blame_replaced(self) -> None:
        """Said once: a process that is suspended frees nothing, and nobody but its user can end it."""
        if self.replaced is not None:
            LOG.warning(
                "no executor is available: the run that this one replaced, process %d on %s, may hold them. If it has not ended, it is suspended or cannot "
                "reach Kafka: end it there, with `kill -9 %d`",
                self.replaced.pid, self.replaced.host, self.replaced.pid,
            )  # fmt: skip
            self.replaced = None

    def _used(self) -> dict[str, int]:
        """Slots that this job's containers take, by host. One that is done takes none: its process has ended, or is about to."""
        used: dict[str, int] = {}
        for member in self._roster.members.values():
            host = member.host if member.is_live else member.launch.host
            if member.launch.handle is not None and host and not member.is_done:
                used[host] = used.get(host, 0) + 1
        return used

    def _state_of(self, member: Member) -> dict[str, int]:
        """By host, how many of its tasks-to-be have their newest state there."""
        found: dict[str, int] = {}
        for task, number in self._roster.desired.items():
            hosts = self._ownership.locality.get(task)
            if number == member.number and hosts:
                newest = max(hosts, key=lambda h: hosts[h])
                found[newest] = found.get(newest, 0) + 1
        return found

    def _park(self, member: Member, why: str, slots: Mapping[str, int | None]) -> None:
        with self._roster.lock:
            self._roster.members.park(member, why)
            LOG.warning("container %d is not started: %s; its tasks go to the others", member.number, why)
            self._replan(slots)

    def make_room(self) -> None:
        """Start parked containers once there has been a slot for a while."""
        parked = [m for m in self._roster.members.values() if m.phase is Phase.PARKED]
        if not parked:
            return
        now, used, slots = self._clock.monotonic(), self._used(), self._launcher.hosts()
        free = sum((1 << 30 if n is None else n - used.get(host, 0)) for host, n in slots.items())
        free -= sum(1 for m in self._roster.members.values() if m.phase is Phase.WANTED)
        if free <= 0:
            self._room_since = None
        elif self._room_since is None:
            self._room_since = now
        elif now - self._room_since >= self._settings.host_affinity_s:
            self._room_since = None
            with self._roster.lock:
                for member in parked[:free]:
                    self._roster.members.unpark(member)
                    LOG.info("container %d is started again: there is a slot", member.number)
                self._replan(slots)
