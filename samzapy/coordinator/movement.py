"""Who runs what: where each task should run, and the records that bring it there, one agreed step at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from samzapy import failpoints
from samzapy.coordinator import membership as state
from samzapy.coordinator.membership import Member
from samzapy.coordinator.owning import Named, Owning
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import CoordinatorSettings
from samzapy.model.ownership import Ledger
from samzapy.plan.assignment import plan
from samzapy.plan.moves import decide_moves
from samzapy.plan.standby import standbys
from samzapy.ports import Clock, Launcher

LOG = logging.getLogger("samzapy.coordinator")


class Movement:
    """Plans, names those who ask for it, and moves tasks."""

    def __init__(self, roster: Roster, owning: Owning, settings: CoordinatorSettings, clock: Clock, launcher: Launcher) -> None:
        self._roster = roster
        self._owning = owning
        self._settings = settings
        self._clock = clock
        self._launcher = launcher
        self._copied: Mapping[int, tuple[str, ...]] = {}  # what the copies were last spread for

    def plan_anew(self, fixed: Mapping[int, str] | None = None) -> Mapping[int, str | None]:
        """Decide anew where every task should run. Those that run stay on their host unless `fixed` says otherwise. Returns the hosts to ask for."""
        self._roster.must_plan = False
        roster, now = self._roster, self._clock.monotonic()
        names = [t for t in roster.tasks if t not in self._roster.finished]
        for number in range(min(roster.target, len(roster.tasks))):
            if number not in self._roster.members:
                self._roster.members[number] = Member(number, wanted_since=now)
        numbers = [n for n, m in sorted(self._roster.members.items()) if n < roster.target and not m.is_parked and not m.done]
        live = {n: self._roster.members[n].host or "" for n in numbers if self._roster.members[n].is_live} if fixed is None else fixed
        if not numbers or not names:
            return {}
        before = {t: n for t, n in roster.desired.items() if t in roster.tasks}
        decided = plan(names, numbers, before, self._owning.locality, self._launcher.hosts(), live)
        roster.desired = {t: n for n, tasks in decided.tasks.items() for t in tasks}
        for number in numbers:
            if not self._roster.members[number].is_live:
                self._roster.members[number].preferred_host = decided.hosts.get(number)
        return decided.hosts

    def name_and_move(self) -> None:
        """One transaction: those who ask to be named, and tasks that change hands."""
        with self._roster.lock:
            roster, now = self._roster, self._clock.monotonic()
            holders = {m.number: m.holder() for m in self._roster.members.values() if m.is_live and not m.done}
            desired = {t: n for t, n in roster.desired.items() if t not in roster.finished}  # who finished still has it, in the topic
            steps = decide_moves(desired, holders, self._settings.has_changelogs)
            roster.waiting, roster.warm = steps.waiting, steps.warm
            for number, names in steps.release.items():
                member = self._roster.members[number]
                member.releasing = {t: member.releasing.get(t, now) for t in names}
            self._spread_copies()
            owned = {t for n, h in holders.items() for t in steps.records.get(n, h.tasks)}
            owned |= {t for m in self._roster.members.values() if m.done or m.ending for t in m.tasks}
            named = [self._to_be_named(self._roster.members[n], tasks) for n, tasks in steps.records.items()]
            applicants = [
                (m, *m.applicant) for m in self._roster.members.values() if m.applicant is not None and not m.registered and not m.done
            ]
            for member, incarnation, facts in applicants:
                if "holds" in facts:
                    self._owning.confirm(str(facts.get("host", "")), facts["holds"])
                tasks = tuple(t for t in roster.tasks if roster.desired.get(t) == member.number and t not in owned)
                named.append(Named(member.number, incarnation, tasks, str(facts.get("host", "")), int(facts.get("pid", 0))))
        if not named:
            return
        if steps.records:
            failpoints.hit("coordinator.moved.before")
        failpoints.hit("coordinator.named.before")
        epochs = self._owning.name(named)
        failpoints.hit("coordinator.named.after")
        with self._roster.lock:
            self._roster.left.update({t: (n, now) for n, tasks in steps.records.items() for t in holders[n].tasks if t not in tasks})
            tasks_of = {one.container: one.tasks for one in named}
            for number in steps.records:
                failpoints.hit("coordinator.moved.after")
                member = self._roster.members[number]
                member.tasks, member.epoch = tasks_of[number], epochs[number]
                kept = set(member.tasks) - holders[number].released
                member.releasing = {t: at for t, at in member.releasing.items() if t in kept}
            for member, incarnation, facts in applicants:
                self._named(member, incarnation, facts, tasks_of[member.number], epochs[member.number])

    def _to_be_named(self, member: Member, tasks: tuple[str, ...]) -> Named:
        return Named(member.number, member.incarnation, tasks, member.host or "", member.pid or 0)

    def _named(self, member: Member, incarnation: str, facts: Mapping[str, Any], tasks: tuple[str, ...], epoch: int) -> None:
        """The coordinator topic names it now."""
        member.incarnation, member.tasks, member.epoch = incarnation, tasks, epoch
        member.host, member.pid = str(facts.get("host", "")), int(facts.get("pid", 0))
        member.registered, member.applicant = True, None
        member.state, member.reason = state.STARTING, ""
        member.heard_at = self._clock.monotonic()
        self._roster.must_plan = True
        if member.preferred_host is None:
            return
        if member.host == member.preferred_host:
            member.hits, member.affinity = member.hits + 1, "on its preferred host"
        else:
            why = member.affinity or f"Spark had no free slot there within {self._settings.host_affinity_s:g} s"
            member.misses, member.affinity = member.misses + 1, f"not on {member.preferred_host}: {why}"
            LOG.warning("container %d runs on %s, %s", member.number, member.host, member.affinity)

    def _spread_copies(self) -> None:
        """Which containers keep warm copies of which tasks."""
        if not self._settings.standby or not self._settings.has_changelogs:
            return
        live = {m.number: m for m in self._roster.members.values() if m.is_live and not m.done}
        owners = {n: m.tasks for n, m in live.items()}
        if owners == self._copied:
            return
        self._copied = owners
        before = {n: m.standby for n, m in live.items()}
        chosen = standbys(owners, {n: m.host for n, m in live.items()}, self._settings.standby, before, self._owning.locality)
        for number, member in live.items():
            member.standby = tuple(chosen.get(number, ()))

    def agree_with(self, ledger: Ledger) -> None:
        """After a write that was in doubt: what the topic says is what holds."""
        with self._roster.lock:
            for member in self._roster.members.values():
                record = ledger.containers.get(member.number)
                if record is None or not record.incarnation:
                    continue
                if member.applicant is not None and record.incarnation == member.applicant[0]:
                    self._named(member, record.incarnation, member.applicant[1], record.tasks, record.epoch)
                elif record.incarnation == member.incarnation:
                    member.tasks, member.epoch = record.tasks, record.epoch
                    member.releasing = {t: at for t, at in member.releasing.items() if t in record.tasks}

    def dismiss_surplus(self) -> None:
        """Containers that are too many stop once their tasks are elsewhere; all that have no tasks do when there is nothing left to run."""
        nothing_left = self._roster.finished >= set(self._roster.tasks)
        for member in list(self._roster.members.values()):
            if member.tasks or member.done or member.ending or not (nothing_left or member.number >= self._roster.target):
                continue
            if member.is_live:
                member.stop_wanted = True
            elif member.handle is None and not nothing_left:
                del self._roster.members[member.number]

    def note_arrivals(self) -> None:
        """How long tasks that changed hands were away."""
        now, roster = self._clock.monotonic(), self._roster
        owners = {t: m for m in roster.members.values() for t in m.tasks} if roster.left else {}
        for task, (number, at) in list(roster.left.items()):
            owner = owners.get(task)
            if owner is not None and owner.report_of(task).get("state") in (state.RUNNING, state.STOPPED):
                del roster.left[task]
                took = {"seconds": round(now - at, 2), "at_ms": self._clock.now_ms()}
                roster.moved[task] = {"from": number, "to": owner.number, **took}
                if number != owner.number:
                    LOG.info("%s moved from container %d to %d; it was away for %.1f s", task, number, owner.number, now - at)
