"""Which container runs which task: the plan, and the ownership records that carry it out, one agreed step at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from samzapy import failpoints
from samzapy.coordinator.events import TASK
from samzapy.coordinator.membership import Applicant, Member
from samzapy.coordinator.ownership_records import Named, OwnershipRecords
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import CoordinatorSettings
from samzapy.model.ownership import Ledger, container_key
from samzapy.model.process_end import other
from samzapy.plan.assignment import plan
from samzapy.plan.bounded_run import has_job_finished
from samzapy.plan.container_phases import GETS_NO_TASKS, Phase
from samzapy.plan.moves import decide_moves
from samzapy.plan.standby_placement import standbys
from samzapy.ports import Clock, ContainerHandle

LOG = logging.getLogger("samzapy.coordinator")


class Movement:
    """Plans, names containers that have registered, and moves tasks."""

    def __init__(self, roster: Roster, ownership: OwnershipRecords, settings: CoordinatorSettings, clock: Clock) -> None:
        self._roster = roster
        self._ownership = ownership
        self._settings = settings
        self._clock = clock
        self._copied: Mapping[int, tuple[str, ...]] = {}  # the owners for which copies were last assigned

    def replan(self, slots: Mapping[str, int | None], fixed: Mapping[int, str] | None = None) -> Mapping[int, str | None]:
        """Decide again where every task should run. `slots`: the launcher's hosts, asked for without the roster's lock, because they may be late. Running
        containers stay on their host unless `fixed` says otherwise. Returns the hosts to request."""
        self._roster.must_plan = False
        roster = self._roster
        names = [t for t in roster.tasks if t not in self._roster.finished]
        for number in range(min(roster.target, len(roster.tasks))):
            if number not in self._roster.members:
                roster.members.want(number)

        numbers = self._takers(bool(names))  # live ones keep their host
        live = {n: self._roster.members[n].host or "" for n in numbers if self._roster.members[n].is_live} if fixed is None else fixed
        if not numbers or not names:
            return {}

        # Plan from the previous plan, so that only tasks that must move do; then request hosts for containers that are not running yet.
        before = {t: n for t, n in roster.desired.items() if t in roster.tasks}
        decided = plan(names, numbers, before, self._ownership.locality, slots, live)
        roster.desired = {t: n for n, tasks in decided.tasks.items() for t in tasks}
        for number in numbers:
            if not self._roster.members[number].is_live:
                roster.members.prefer(roster.members[number], decided.hosts.get(number))
        return decided.hosts

    def _takers(self, is_needed: bool) -> list[int]:
        """The containers that tasks may run in. If all that the job is to have have ended while there are unfinished tasks, one more: one that is there
        in addition, because the job was scaled down, or a new one."""
        members, target = self._roster.members, self._roster.target
        able = [n for n, m in sorted(members.items()) if m.phase not in GETS_NO_TASKS]
        parked = [n for n, m in sorted(members.items()) if m.phase is Phase.PARKED]
        found = [n for n in able if n < target] or (able or parked)[:1]
        if not found and is_needed:
            found = [max(members) + 1]
            members.want(found[0])
        return found

    def name_and_move(self) -> None:
        """In one transaction: name containers that have registered, and move released tasks to their new owners.

        One transaction, because a task must never be in two records, or in none. The roster's lock is held to decide and to apply, not while
        the topic is written.
        """
        with self._roster.lock:
            roster, now = self._roster, self._clock.monotonic()
            holders = {m.number: m.holder() for m in self._roster.members.values() if m.is_live and not m.is_done}
            desired = {t: n for t, n in roster.desired.items() if t not in roster.finished}  # a finished task stays with its last owner, in the topic

            # A move takes several turns: order the owner to release, wait for its report and for a warm copy, then write both records.
            steps = decide_moves(desired, holders, self._settings.has_changelogs)
            roster.waiting, roster.warm = steps.waiting, steps.warm
            for number, names in steps.release.items():
                roster.members.order_release(roster.members[number], names)
            self._spread_copies()

            # A new container gets only tasks that no other container has: live ones as of this transaction, finished and ending ones as
            # they are, because ending ones are not fenced yet.
            owned = {t for n, h in holders.items() for t in steps.records.get(n, h.tasks)}
            owned |= {t for m in self._roster.members.values() if m.phase in (Phase.DONE, Phase.ENDING) for t in m.tasks}
            named = [self._to_be_named(self._roster.members[n], tasks) for n, tasks in steps.records.items()]

            # A registered container also reports the tasks whose state its host has; that corrects the locality records.
            applicants = [(m, m.applicant) for m in roster.members.values() if m.phase is Phase.APPLYING and m.applicant is not None]
            for member, applicant in applicants:
                facts = applicant.facts
                if "holds" in facts:
                    self._ownership.confirm(str(facts.get("host", "")), facts["holds"])
                tasks = tuple(t for t in roster.tasks if roster.desired.get(t) == member.number and t not in owned)
                named.append(Named(member.number, applicant.incarnation, tasks, str(facts.get("host", "")), int(facts.get("pid", 0))))
        if not named:
            return
        if steps.records:
            failpoints.hit("coordinator.moved.before")
        failpoints.hit("coordinator.named.before")
        epochs = self._ownership.name(named)  # without the lock: heartbeats are answered while Kafka is slow
        failpoints.hit("coordinator.named.after")

        # The records are committed: apply them to the members.
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
        """Apply to the member that the coordinator topic names it now."""
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
        """Decide which containers keep warm copies of which tasks, if the owners have changed."""
        if not self._settings.standby or not self._settings.has_changelogs:
            return
        live = {m.number: m for m in self._roster.members.values() if m.is_live and not m.is_done}
        owners = {n: m.tasks for n, m in live.items()}
        if owners == self._copied:
            return
        self._copied = owners
        before = {n: m.standby for n, m in live.items()}
        chosen = standbys(owners, {n: m.host for n, m in live.items()}, self._settings.standby, before, self._ownership.locality)
        for number, member in live.items():
            self._roster.members.keep_copies(member, tuple(chosen.get(number, ())))

    def reconcile(self, ledger: Ledger) -> None:
        """After a write that was in doubt: take over from the topic what was committed."""
        to_kill: list[ContainerHandle] = []  # without the lock: a launcher may be late
        with self._roster.lock:
            for member in self._roster.members.values():
                if container_key(member.number) in ledger.unreadable:
                    to_kill += self._doubt(member)
                    continue
                record = ledger.containers.get(member.number)
                if record is None or not record.incarnation:
                    continue
                applicant = member.applicant if member.phase is Phase.APPLYING else None
                if applicant is not None and record.incarnation == applicant.incarnation:
                    self._named(member, applicant, record.tasks, record.epoch)
                elif record.incarnation == member.owner.incarnation:
                    self._roster.members.give(member, record.tasks, record.epoch)
        for handle in to_kill:
            handle.kill()

    def _doubt(self, member: Member) -> list[ContainerHandle]:
        """What was written of it last cannot be read. Whoever it named is ended by force, which writes its record anew; who asks asks again. Returns
        what is to be killed."""
        if member.phase not in (Phase.LIVE, Phase.STOPPING):
            return []
        self._roster.members.lose(member, other("its record in the coordinator topic cannot be read"))
        return [] if member.launch.handle is None else [member.launch.handle]

    def dismiss_surplus(self) -> None:
        """Stop surplus containers once their tasks are elsewhere; when no task is left to run, all containers without tasks."""
        nothing_left = has_job_finished(self._roster.finished, self._roster.tasks)
        for member in list(self._roster.members.values()):
            if member.tasks or not (nothing_left or self._roster.is_surplus(member.number)):
                continue
            if member.phase is Phase.LIVE:
                self._roster.members.ask_to_stop(member)
            elif member.phase in (Phase.WANTED, Phase.PARKED):
                if nothing_left:
                    self._roster.members.dismiss(member)
                else:
                    self._roster.members.remove(member)

    def note_arrivals(self) -> None:
        """Note for each moved task how long no container ran it."""
        now, roster = self._clock.monotonic(), self._roster
        owners = {t: m for m in roster.members.values() for t in m.tasks} if roster.left else {}
        for task, (number, at) in list(roster.left.items()):
            owner = owners.get(task)
            if owner is not None and owner.is_at_work(task):
                del roster.left[task]
                took = {"seconds": round(now - at, 2), "at_ms": self._clock.now_ms()}
                roster.moved[task] = {"from": number, "to": owner.number, **took}
                if number != owner.number:
                    text = f"{task} moved from container {number} to {owner.number}; no container ran it for {now - at:.1f} s"
                    roster.events.add(TASK, "moved", text, container=owner.number, task=task)
                    LOG.info("%s moved from container %d to %d; no container ran it for %.1f s", task, number, owner.number, now - at)
