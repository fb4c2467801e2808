"""What is done with containers that ended, fell silent or do not release their tasks: they are fenced before anything else is decided. The rule is
in plan/declared_dead.py.

A container is believed dead for one of four reasons: its process was seen to end, its lease is over, it did not register, it did not
release. None of them is proof, and none needs to be: it is ended in the coordinator topic and fenced, so that it may wake up at any time
and commit nothing.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from samzapy import failpoints
from samzapy.coordinator.events import CONTAINER
from samzapy.coordinator.membership import Death, Member
from samzapy.coordinator.ownership_records import OwnershipRecords
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import CoordinatorSettings
from samzapy.model.caution import Piece, Suspects, piece_from_json
from samzapy.model.ownership import ContainerRecord
from samzapy.model.process_end import WATCHDOG, Kind, ProcessEnd
from samzapy.model.states import ContainerOutcome, TaskState
from samzapy.plan import restarts
from samzapy.plan.bounded_run import finished_tasks, has_job_finished
from samzapy.plan.container_phases import Event, Phase  # fmt: skip
from samzapy.plan.deadly_record_search import Found, after_death, hopeless, next_limit, unproved
from samzapy.plan.declared_dead import (
    Dismiss,
    Fail,
    Finish,
    JobCondition,
    Judgement,
    Leave,
    LifeSigns,
    Limits,
    Lose,
    Wait,
    after_end,
    judge,
)
from samzapy.plan.killed_for_memory import killed_for_memory
from samzapy.plan.moves import orphans
from samzapy.ports import Clock, ContainerHandle

LOG = logging.getLogger("samzapy.coordinator")
TOLD_DEATHS = 5


class Liveness:
    """Notices lost containers, ends and fences them, and decides whether they are started again."""

    def __init__(self, roster: Roster, ownership: OwnershipRecords, settings: CoordinatorSettings, clock: Clock) -> None:
        self._roster = roster
        self._ownership = ownership
        self._settings = settings
        self._clock = clock
        self._to_kill: list[ContainerHandle] = []

    def check_members(self, is_in_doubt: bool = False) -> None:
        """Judge the containers by what is known of them. `is_in_doubt`: a write is; whoever it may have named or given a task is judged when the
        topic was read again, unless the job stops anyway."""
        with self._roster.lock:
            now = self._clock.monotonic()
            for member in list(self._roster.members.values()):
                final = member.heard.final
                may_have_more = member.phase is Phase.APPLYING or (final is not None and final.outcome == ContainerOutcome.FINISHED and not self._roster.is_stopping)
                if not (is_in_doubt and may_have_more):
                    self._check_member(member, now)
        for handle in self._to_kill:  # without the lock: a launcher may be late
            handle.kill()
        self._to_kill = []

    def _check_member(self, member: Member, now: float) -> None:
        """Judge one container by what is known of it, and note what follows; `end_lost` acts on it."""
        facts = self._facts(member, now)
        job = JobCondition(is_stopping=self._roster.is_stopping, all_failed_alike=bool(facts.error) and self._all_failed_alike())
        self._roster.finished.update(finished_tasks(facts, member.tasks, job.is_stopping))
        self._apply(member, judge(facts, job, Limits(self._settings.lease_s, self._settings.register_timeout_s)))

    def _facts(self, member: Member, now: float) -> LifeSigns:
        final, handle, lease_s = member.heard.final, member.launch.handle, self._settings.lease_s
        silent_s = now - member.heard.at
        exited = None if handle is None or member.phase in (Phase.DONE, Phase.ENDING) else handle.exited()
        if exited is not None and exited.is_sudden:
            exited = self._with_memory(exited, member, silent_s)
        return LifeSigns(
            phase=member.phase,
            is_launched=handle is not None,
            exited=exited,
            silent_s=silent_s,
            overdue=tuple(t for t, since in member.releasing.items() if now - since > lease_s),
            outcome=final.outcome if final else "",
            error=final.error if final else None,
            not_taken_up=tuple(t for t in member.tasks if member.report_of(t).get("state") != TaskState.STOPPED) if final else (),
            refusals=sum(1 for at in member.history.refused_at if now - at <= self._settings.restart_window_s),
        )

    def _apply(self, member: Member, judgement: Judgement) -> None:
        members = self._roster.members
        match judgement:
            case Wait():
                pass
            case Lose(end):
                self._lose(member, end)
            case Leave(restart_reason):
                if restart_reason:
                    LOG.info("container %d is started again: %s", member.number, restart_reason)
                is_asked = member.phase is Phase.STOPPING or bool(restart_reason)
                members.leave(member, is_asked, restart_reason or member.stop_reason)
            case Finish():
                members.finish(member)
                self._roster.must_plan = True  # it takes no tasks any more
            case Fail(error):
                self._roster.fail(member, error)
            case Dismiss():
                if member.launch.handle is not None:
                    self._to_kill.append(member.launch.handle)
                members.dismiss(member)

    def _all_failed_alike(self) -> bool:
        heard = [m.heard for m in self._roster.members.values()]
        return restarts.all_failed_alike([h.final.error if h.final else h.report.get("error") for h in heard], self._roster.any_commit)

    def _with_memory(self, end: ProcessEnd, member: Member, heard_s: float) -> ProcessEnd:
        kernel_killed = self._settings.oom_kills() > member.launch.oom_kills
        return killed_for_memory(end, member.heard.memory_bytes, self._settings.memory_bytes, heard_s, kernel_killed)

    def _lose(self, member: Member, end: ProcessEnd) -> None:
        """The container is lost, or is to be ended: its tasks are taken by force in this turn."""
        if member.launch.handle is not None:
            self._to_kill.append(member.launch.handle)
        place = self._settings.last_place(member.number, member.owner.pid or 0)
        end = replace(end, said=member.heard.ends, is_watchdogs=place == WATCHDOG)
        if self._roster.failure is None and not self._roster.is_stopping:
            LOG.warning("container %d (%s): %s", member.number, member.where, end)
        self._roster.members.lose(member, end)
        if place and place != WATCHDOG:
            what = "held" if end.kind is Kind.SILENT else "ended"  # only whoever was silent may have been kept from being heard
            self._roster.events.add(CONTAINER, what, f"container {member.number} was at {place} when it ended", container=member.number, at=place)

    def end_lost(self) -> None:
        """(a) to (c) for lost containers; if this raises, the next turn does it again."""
        gone = [m for m in self._roster.members.values() if m.phase is Phase.ENDING]
        if not gone:
            return
        failpoints.hit("coordinator.lost.before")
        self._ownership.end([self.record(m) for m in gone if m.is_named])
        with self._roster.lock:
            for member in gone:
                self._after_end(member)

    def _after_end(self, member: Member) -> None:
        """A container was ended in the topic and fenced: start it again, or not."""
        roster, members, ending = self._roster, self._roster.members, member.ending
        if ending is None:
            raise AssertionError(f"container {member.number} is being ended for a reason")
        now, lost, host = self._clock.monotonic(), member.tasks, member.host or ""
        said = (member.history.last_error if not ending.is_asked else ending.restart_reason) or ending.why
        death = Death(now, self._clock.now_ms(), member.where, said)
        ended_itself = bool(member.heard.ends)
        at, said_why = piece_from_json(member.heard.report.get("under_way")), _said_why(member)
        roster.left.update({t: (member.number, now) for t in lost if t not in roster.left})
        members.clear(member)
        event = after_end(ending.is_asked, roster.is_stopping, has_job_finished(roster.finished, roster.tasks), roster.is_surplus(member.number))
        if event is Event.END:
            members.end(member)
        elif event is Event.REMOVE:
            members.remove(member)
            roster.must_plan = True
        elif ending.is_asked:
            members.restart(member, death)
        else:
            found = Found(roster.caution) if said_why else self._suspect(member, at, ending.end)
            members.died(member, replace(death, counts=not found.is_nearer, records=str(found.at or ""), is_unexplained=not said_why, said=ended_itself))
            self._restart_or_give_up(member, now, lost, host, unproved(found.caution, found.at))

    def _restart_or_give_up(self, member: Member, now: float, lost: tuple[str, ...], host: str, suspected: Suspects | None) -> None:
        """Plan again after a death; containers with copies on other hosts than `host` take over the tasks `lost` at once."""
        deaths = [(death.at_s, death.counts) for death in member.history.deaths]
        settings, caution = self._settings, self._roster.caution
        condemned = hopeless(caution)
        decision = restarts.restart_or_end(deaths, condemned, suspected, now, settings.max_restarts, settings.restart_window_s)
        if isinstance(decision, restarts.EndJob):
            story = "; ".join(str(d) for d in member.history.deaths[-TOLD_DEATHS:])
            remedy = f"See the log lines of container {member.number} in the output of the run."
            if condemned is not None:
                remedy = f"Skip the record: {_skip(condemned.record.topic, condemned.record.partition, condemned.record.offset + 1)} {remedy}"
            elif suspected is not None:
                remedy = _look_at(suspected)
            self._roster.fail(member, {"code": "SZ340", "message": f"{decision.reason}. The last deaths: {story}", "remedy": remedy})
            return
        self._roster.members.restart_after_death(member, decision.delay_s)
        holders = {m.number: m.holder() for m in self._roster.members.values() if m.is_live}
        self._roster.desired.update(orphans(holders, lost, host))

    def _suspect(self, member: Member, at: Piece | None, end: ProcessEnd) -> Found:
        """A container ended without a reason: update the suspects among the records that were under way."""
        found = after_death(self._roster.caution, at, end, member.number, self._settings.restart_window_s)
        self._roster.caution = found.caution
        suspected = unproved(found.caution, at)
        if found.condemned is not None:
            LOG.error(
                "record %s: while only this record was processed, it ended container %d, %d times (%s): `on_error` applies to the record",
                found.condemned.record, member.number, found.condemned.deaths, end,
            )  # fmt: skip
        elif suspected is not None:
            LOG.warning(
                "%d processes of container %d ended while only record %s was processed (%s). This does not prove that the record is the reason: somebody else may "
                "have ended the processes. So `on_error` is not applied yet, and the record is processed again",
                suspected.alone, member.number, suspected.piece, end,
            )  # fmt: skip
        elif at is not None and all(c.record != at.alone for c in found.caution.condemned):
            suspects = next(s for s in found.caution.suspects if s.piece is at)
            LOG.warning(
                "container %d ended while it processed %s. These are read again, at most %d at a time, to find a record that ends the process",
                member.number, _counted(at), next_limit(suspects),
            )  # fmt: skip
        return found

    def record(self, member: Member) -> ContainerRecord:
        o = member.owner
        return ContainerRecord(member.number, o.epoch, o.incarnation, o.tasks, self._roster.run_id, o.host or "", o.pid or 0)


def _said_why(member: Member) -> bool:
    """Whether a container reported an error, or that another owns its tasks: then no record is suspected."""
    final = member.heard.final
    return final is not None and (bool(final.error) or final.outcome == ContainerOutcome.SUPERSEDED)


def _look_at(suspected: Suspects) -> str:
    span = suspected.piece.spans[0]
    return (
        f"Find out what ends its processes: the kernel, for lack of memory (`journalctl -k`), somebody who sends SIGKILL, or the cluster. If it is record "
        f"{suspected.piece}, skip it: {_skip(span.topic, span.partition, span.end)}"
    )


def _skip(topic: str, partition: int, end: int) -> str:
    return f"`samzapy checkpoint set JOB.yaml --topic {topic} --partition {partition} --to-offset {end} --keep-state --execute`."


def _counted(piece: Piece) -> str:
    return f"record {piece}" if piece.count == 1 else f"{piece.count} records ({piece})"
