"""Starting containers, each where its state is if that can be had in time; and doing without those for which there is no slot."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from samzapy.coordinator import membership as state
from samzapy.coordinator.membership import Member
from samzapy.coordinator.owning import Owning
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import CoordinatorSettings
from samzapy.ids import random_id
from samzapy.plan.hosts import NoRoom, Start, choose_host
from samzapy.ports import Clock, Launcher

LOG = logging.getLogger("samzapy.coordinator")


class Starting:
    """Launches what is wanted.

    Args:
        payload: what a container is started with, besides its number, launch id and the job model.
        plan_anew: decides again where tasks run; called when the containers that can run change.
    """

    def __init__(
        self,
        roster: Roster,
        owning: Owning,
        settings: CoordinatorSettings,
        clock: Clock,
        launcher: Launcher,
        payload: Mapping[str, Any],
        plan_anew: Callable[[], object],
        new_id: Callable[[], str] = random_id,
    ) -> None:
        self._roster = roster
        self._owning = owning
        self._settings = settings
        self._clock = clock
        self._launcher = launcher
        self._payload = payload
        self._plan_anew = plan_anew
        self._new_id = new_id
        self._room_since: float | None = None
        self.control_url = ""

    def launch_wanted(self) -> None:
        wanted = [
            m for m in self._roster.members.values() if m.wanted_since is not None and m.handle is None and not m.done and not m.ending
        ]
        if not wanted:
            return
        slots = self._launcher.hosts()
        for member in wanted:
            now = self._clock.monotonic()
            if now < member.launch_at:
                continue
            used = self._used()
            waited_s = now - max(member.wanted_since or 0.0, member.launch_at)
            chosen = choose_host(member.preferred_host, self._state_of(member), slots, used, waited_s, self._settings.host_affinity_s)
            if isinstance(chosen, Start):
                self._launch(member, chosen, now)
            elif isinstance(chosen, NoRoom) and any(m.is_live for m in self._roster.members.values()):
                self._park(member, chosen.why)
            else:
                member.reason = chosen.why

    def _launch(self, member: Member, chosen: Start, now: float) -> None:
        with self._roster.lock:
            member.launch_id = self._new_id()
            member.wanted_since = None
            member.heard_at = now
            member.state, member.reason, member.affinity = state.STARTING, "", chosen.miss
            member.hear({})
            member.last_word = None
            member.launched_on = chosen.host
            member.memory_bytes, member.oom_kills = None, self._settings.oom_kills()
            member.knows = frozenset(self._roster.tasks)
        payload = {
            **self._payload, "model": self._roster.model().to_json(), "container": member.number, "launch_id": member.launch_id,
            "control_url": self.control_url,
        }  # fmt: skip
        member.handle = self._launcher.launch(member.number, payload, chosen.host)

    def _used(self) -> dict[str, int]:
        """Slots that containers of ours take, by host."""
        used: dict[str, int] = {}
        for member in self._roster.members.values():
            host = member.host if member.is_live else member.launched_on
            if member.handle is not None and host:
                used[host] = used.get(host, 0) + 1
        return used

    def _state_of(self, member: Member) -> dict[str, int]:
        """By host, how many of the tasks that it will have left their newest state there."""
        found: dict[str, int] = {}
        for task, number in self._roster.desired.items():
            hosts = self._owning.locality.get(task)
            if number == member.number and hosts:
                newest = max(hosts, key=lambda h: hosts[h])
                found[newest] = found.get(newest, 0) + 1
        return found

    def _park(self, member: Member, why: str) -> None:
        with self._roster.lock:
            member.is_parked, member.wanted_since, member.state, member.reason = True, None, state.LOST, f"{why}; its tasks run elsewhere"
            LOG.warning("container %d is not started: %s; its tasks go to the others", member.number, why)
            self._plan_anew()

    def make_room(self) -> None:
        """Containers that found no slot are started once there has been one for a while."""
        parked = [m for m in self._roster.members.values() if m.is_parked]
        if not parked:
            return
        now, used = self._clock.monotonic(), self._used()
        free = sum((1 << 30 if n is None else n - used.get(host, 0)) for host, n in self._launcher.hosts().items())
        free -= sum(1 for m in self._roster.members.values() if m.wanted_since is not None and not m.done)
        if free <= 0:
            self._room_since = None
        elif self._room_since is None:
            self._room_since = now
        elif now - self._room_since >= self._settings.host_affinity_s:
            self._room_since = None
            with self._roster.lock:
                for member in parked[:free]:
                    self._unpark(member, now)
                self._plan_anew()

    def _unpark(self, member: Member, now: float) -> None:
        member.is_parked, member.wanted_since, member.launch_at, member.reason = False, now, now, ""
        member.state = state.STARTING
        LOG.info("container %d is started again: there is a slot", member.number)
