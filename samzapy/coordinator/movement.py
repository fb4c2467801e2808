"""Who runs what: where each task should run, and the records that bring it there, one agreed step at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from samzapy import failpoints
from samzapy.coordinator import membership as state
from samzapy.coordinator.membership import Applicant, Member
from samzapy.coordinator.owning import Named, Owning
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import CoordinatorSettings
from samzapy.model.ownership import Ledger
from samzapy.plan.assignment import plan
from samzapy.plan.members import Phase
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

    def replan(self, fixed: Mapping[int, str] | None = None) -> Mapping[int, str | None]:
        """Decide anew where every task should run. Those that run stay on their host unless `fixed` says otherwise. Returns the hosts to ask for."""
        self._roster.must_plan = False
        roster = self._roster
        names = [t for t in roster.tasks if t not in self._roster.finished]
        for number in range(min(roster.target, len(roster.tasks))):
            if number not in self._roster.members:
                roster.members.want(number)
        numbers = [n for n, m in sorted(self._roster.members.items()) if n < roster.target and m.phase not in (Phase.PARKED, Phase.DONE)]
        live = {n: self._roster.members[n].host or "" for n in numbers if self._roster.members[n].is_live} if fixed is None else fixed
        if not numbers or not names:
            return {}
        before = {t: n for t, n in roster.desired.items() if t in roster.tasks}
        decided = plan(names, numbers, before, self._owning.locality, self._launcher.hosts(), live)
        roster.desired = {t: n for n, tasks in decided.tasks.items() for t in tasks}
        for number in numbers:
            if not self._roster.members[number].is_live:
                roster.members.prefer(roster.members[number], decided.hosts.get(number))
        return decided.hosts

    def name_and_move(self) -> None:
        """One transaction: those who ask to be named, and tasks that change hands."""
        with self._roster.lock:
            roster, now = self._roster, self._clock.monotonic()
            holders = {m.number: m.holder() for m in self._roster.members.values() if m.is_live and not m.is_done}
            desired = {t: n for t, n in roster.desired.items() if t not in roster.finished}  # who finished still has it, in the topic
            steps = decide_moves(desired, holders, self._settings.has_changelogs)
            roster.waiting, roster.warm = steps.waiting, steps.warm
            for number, names in steps.release.items():
                roster.members.order_release(roster.members[number], names)
            self._spread_copies()
            owned = {t for n, h in holders.items() for t in steps.records.get(n, h.tasks)}
            owned |= {t for m in self._roster.members.values() if m.phase in (Phase.DONE, Phase.ENDING) for t in m.tasks}
            named = [self._to_be_named(self._roster.members[n], tasks) for n, tasks in steps.records.items()]
            applicants = [(m, m.applicant) for m in roster.members.values() if m.phase is Phase.APPLYING and m.applicant is not None]
            for member, applicant in applicants:
                facts = applicant.facts
                if "holds" in facts:
                    self._owning.confirm(str(facts.get("host", "")), facts["holds"])
                tasks = tuple(t for t in roster.tasks if roster.desired.get(t) == member.number and t not in owned)
                named.append(Named(member.number, applicant.incarnation, tasks, str(facts.get("host", "")), int(facts.get("pid", 0))))
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
                roster.members.give(roster.members[number], tasks_of[number], epochs[number], holders[number].released)
            for member, applicant in applicants:
                self._named(member, applicant, tasks_of[member.number], epochs[member.number])

    def _to_be_named(self, member: Member, tasks: tuple[str, ...]) -> Named:
        return Named(member.number, member.owner.incarnation, tasks, member.host or "", member.owner.pid or 0)

    def _named(self, member: Member, applicant: Applicant, tasks: tuple[str, ...], epoch: int) -> None:
        """The coordinator topic names it now."""
        self._roster.members.name(member, applicant, tasks, epoch)
        self._roster.must_plan = True
        if member.preferred_host is None:
            return
        if member.host == member.preferred_host:
            self._roster.members.note_affinity(member, True, "on its preferred host")
        else:
            why = member.affinity.reason or f"Spark had no free slot there within {self._settings.host_affinity_s:g} s"
            self._roster.members.note_affinity(member, False, f"not on {member.preferred_host}: {why}")
            LOG.warning("container %d runs on %s, %s", member.number, member.host, member.affinity.reason)

    def _spread_copies(self) -> None:
        """Which containers keep warm copies of which tasks."""
        if not self._settings.standby or not self._settings.has_changelogs:
            return
        live = {m.number: m for m in self._roster.members.values() if m.is_live and not m.is_done}
        owners = {n: m.tasks for n, m in live.items()}
        if owners == self._copied:
            return
        self._copied = owners
        before = {n: m.standby for n, m in live.items()}
        chosen = standbys(owners, {n: m.host for n, m in live.items()}, self._settings.standby, before, self._owning.locality)
        for number, member in live.items():
            self._roster.members.keep_copies(member, tuple(chosen.get(number, ())))

    def reconcile(self, ledger: Ledger) -> None:
        """After a write that was in doubt: what the topic says is what holds."""
        with self._roster.lock:
            for member in self._roster.members.values():
                record = ledger.containers.get(member.number)
                if record is None or not record.incarnation:
                    continue
                applicant = member.applicant if member.phase is Phase.APPLYING else None
                if applicant is not None and record.incarnation == applicant.incarnation:
                    self._named(member, applicant, record.tasks, record.epoch)
                elif record.incarnation == member.owner.incarnation:
                    self._roster.members.give(member, record.tasks, record.epoch)

    def dismiss_surplus(self) -> None:
        """Containers that are too many stop once their tasks are elsewhere; all that have no tasks do when there is nothing left to run."""
        nothing_left = self._roster.finished >= set(self._roster.tasks)
        for member in list(self._roster.members.values()):
            if member.tasks or not (nothing_left or member.number >= self._roster.target):
                continue
            if member.phase is Phase.LIVE:
                self._roster.members.ask_to_stop(member)
            elif member.phase in (Phase.WANTED, Phase.PARKED) and not nothing_left:
                self._roster.members.remove(member)

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
                    LOG.info("%s moved from container %d to %d; no container ran it for %.1f s", task, number, owner.number, now - at)
