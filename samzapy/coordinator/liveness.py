"""Who is alive: containers that ended, fell silent, or will not do as they are told are ended at the broker before anything else is decided.

A container is believed dead for one of four reasons: its process was seen to end, its lease is over, it did not register, it did not
release. None of them is proof, and none needs to be: it is ended in the coordinator topic and fenced, so that it may wake up at any time
and commit nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from samzapy import failpoints
from samzapy.api.errors import NotAuthenticated, NotAuthorized, TlsFailed
from samzapy.coordinator import membership as state
from samzapy.coordinator.membership import Death, Member
from samzapy.coordinator.owning import Owning
from samzapy.coordinator.roster import Roster
from samzapy.coordinator.settings import CoordinatorSettings
from samzapy.model.caution import Piece, piece_from_json
from samzapy.model.ownership import ContainerRecord
from samzapy.plan.memory import killed_for_memory
from samzapy.plan.moves import orphans
from samzapy.plan.restarts import FIRST_BACKOFF_S, GiveUp, Restart, decide_restart
from samzapy.plan.suspects import Found, after_death, next_limit
from samzapy.ports import Clock

LOG = logging.getLogger("samzapy.coordinator")
ASKED = "asked to stop"
SUPERSEDED = "superseded"
TOLD_DEATHS = 5
SUDDEN = ("SIGKILL", "killed or crashed", "executor was lost")
REFUSED = frozenset(c.code for c in (NotAuthorized, NotAuthenticated, TlsFailed))
REFUSALS = 3  # of one container within `containers.restart_window`: somebody must give it access, starting again does not


class Liveness:
    """Sees who is gone, ends them, and decides whether they are started again."""

    def __init__(self, roster: Roster, owning: Owning, settings: CoordinatorSettings, clock: Clock) -> None:
        self._roster = roster
        self._owning = owning
        self._settings = settings
        self._clock = clock

    def look_at(self, member: Member, now: float) -> None:
        if member.done or member.ending:
            return
        if member.last_word is not None and self._took_leave(member, member.last_word):
            return
        if member.handle is None:
            if self._roster.is_stopping:
                member.done, member.state = True, state.STOPPED
            return
        ended = member.handle.exited()
        overdue = [t for t, since in member.releasing.items() if now - since > self._settings.lease_s]
        silent_s = now - member.heard_at
        if ended is not None:
            self._lose(member, ended + (self._memory_of(member, silent_s) if _is_sudden(ended) else ""))
        elif member.registered and silent_s > self._settings.lease_s:
            self._lose(member, f"silent for {silent_s:.1f} s, its lease of {self._settings.lease_s:g} s is over")
        elif member.registered and overdue:
            self._lose(member, f"did not release {', '.join(overdue)} within its lease of {self._settings.lease_s:g} s")
        elif not member.registered and silent_s > self._settings.register_timeout_s:
            self._lose(member, f"did not register within {self._settings.register_timeout_s:g} s")
        elif not member.registered and self._roster.is_stopping:
            member.handle.kill()
            member.done, member.state = True, state.STOPPED

    def _took_leave(self, member: Member, word: Mapping[str, Any]) -> bool:
        """A container that said how it ended. True: there is no more to do about it."""
        error, outcome = word.get("error"), word.get("outcome")
        if outcome == "finished" and not self._roster.is_stopping and (never_had := self._finished(member)):
            LOG.info("container %d finished before it heard that it also has %s; it is started again", member.number, ", ".join(never_had))
            member.stop_wanted, member.ending = True, ASKED
            member.stop_reason = f"it finished before it heard that it also has {', '.join(never_had)}"
            return True
        if outcome == "finished" or (outcome == "stopped" and self._roster.is_stopping):
            member.state, member.done = state.STOPPED, True
            return True
        if outcome == "stopped":
            member.ending = ASKED
            return True
        if outcome == SUPERSEDED:  # by its own account, e.g. because this process was stopped for most of its lease
            self._lose(member, str((error or {}).get("message", "")).rstrip(".") or "it gave its tasks up")
            return True
        if error and (error.get("fatal") or self._all_failed_alike(member, error)):
            self._roster.fail(member, error)
            return True
        if error and error.get("code") in REFUSED:
            now = self._clock.monotonic()
            member.refused_at = [*(t for t in member.refused_at if now - t <= self._settings.restart_window_s), now]
            if len(member.refused_at) >= REFUSALS:
                self._roster.fail(member, error)
                return True
        if error:
            member.last_error = str(error.get("message", ""))
        return False

    def _finished(self, member: Member) -> list[str]:
        """A container has come to the end of its tasks: notes them. Returns those that it was given and had not taken up yet."""
        ended = {task for task in member.tasks if member.report_of(task).get("state") == state.STOPPED}
        self._roster.finished.update(ended)
        return [task for task in member.tasks if task not in ended]

    def _all_failed_alike(self, member: Member, error: Mapping[str, Any]) -> bool:
        """Every container ended with the same error before any commit: starting again will not help."""
        words = [m.last_word or m.report for m in self._roster.members.values()]
        codes = {w["error"].get("code") if w.get("error") else None for w in words}
        return not self._roster.any_commit and len(codes) == 1 and None not in codes

    def _memory_of(self, member: Member, heard_s: float) -> str:
        kernel_killed = self._settings.oom_kills() > member.oom_kills
        return killed_for_memory(member.memory_bytes, self._settings.memory_bytes, heard_s, kernel_killed)

    def _lose(self, member: Member, why: str) -> None:
        """It is gone, or is to be: its tasks are taken by force in this turn."""
        if member.handle is not None:
            member.handle.kill()
        if self._roster.failure is None and not self._roster.is_stopping:
            LOG.warning("container %d (%s): %s", member.number, _where(member), why)
        member.ending = why
        member.state = state.LOST

    def end_lost(self) -> None:
        """(a) to (c) for those that are gone; if this raises, the next turn does it again."""
        gone = [m for m in self._roster.members.values() if m.ending]
        if not gone:
            return
        failpoints.hit("coordinator.lost.before")
        self._owning.end([self.record(m) for m in gone if m.incarnation])
        with self._roster.lock:
            for member in gone:
                self._after_end(member)

    def _after_end(self, member: Member) -> None:
        now, why = self._clock.monotonic(), member.ending
        lost, host, where = member.tasks, member.host or "", _where(member)
        self._roster.left.update({t: (member.number, now) for t in lost if t not in self._roster.left})
        asked = member.stop_wanted and why == ASKED
        at, said_why = piece_from_json(member.report.get("under_way")), _said_why(member)
        member.tasks, member.incarnation, member.registered, member.applicant = (), "", False, None
        member.launch_id = ""  # whoever was launched and asks only now, or again, is not named any more
        member.handle, member.launched_on, member.ending, member.last_word = None, None, "", None
        member.releasing, member.standby, member.stop_wanted, member.pid = {}, (), False, None
        member.hear({})
        if self._roster.is_stopping or (asked and self._roster.finished >= set(self._roster.tasks)):
            member.done, member.state = True, state.STOPPED
            return
        if member.number >= self._roster.target:
            del self._roster.members[member.number]
            self._roster.must_plan = True
            return
        member.wanted_since = now
        reason = (member.stop_reason or why) if asked else (member.last_error or why)
        member.last_restart, member.stop_reason = Death(now, self._clock.now_ms(), where, reason), ""
        if asked:
            member.state = state.STARTING
            return
        found = Found(self._roster.caution) if said_why else self._suspect(member, at, why)
        death = replace(member.last_restart, counts=not found.is_nearer, records=str(found.at or ""))
        member.last_restart = death
        member.deaths.append(death)
        decision = self._decide(member, now)
        if isinstance(decision, GiveUp):
            story = "; ".join(str(d) for d in member.deaths[-TOLD_DEATHS:])
            self._roster.fail(
                member, {"code": "SZ340", "message": f"{decision.reason}. The last ones: {story}", "remedy": "See its log lines above."}
            )
            return
        member.restarts += 1
        member.launch_at = now + decision.delay_s
        member.last_error = ""
        holders = {m.number: m.holder() for m in self._roster.members.values() if m.is_live}
        self._roster.desired.update(orphans(holders, lost, host))

    def _decide(self, member: Member, now: float) -> Restart | GiveUp:
        """What its last death leads to."""
        if not member.deaths[-1].counts:
            return Restart(FIRST_BACKOFF_S)
        counted = [d.at_s for d in member.deaths if d.counts]
        return decide_restart(counted, now, self._settings.max_restarts, self._settings.restart_window_s)

    def _suspect(self, member: Member, at: Piece | None, why: str) -> Found:
        """A container that could not say why it ended: what is known of the records that it was at."""
        found = after_death(self._roster.caution, at, why, member.number, self._settings.restart_window_s)
        self._roster.caution = found.caution
        if found.condemned is not None:
            LOG.error(
                "record %s ended container %d %d times while it alone was processed (%s): `on_error` applies to it",
                found.condemned.record, member.number, found.condemned.deaths, why,
            )  # fmt: skip
        elif at is not None:
            suspects = next(s for s in found.caution.suspects if s.piece is at)
            LOG.warning(
                "container %d ended while it processed %s: processed again, %d at a time, to find the record that ends it",
                member.number, _counted(at), next_limit(suspects),
            )  # fmt: skip
        return found

    def record(self, member: Member) -> ContainerRecord:
        return ContainerRecord(
            member.number, member.epoch, member.incarnation, member.tasks, self._roster.run_id, member.host or "", member.pid or 0
        )


def _said_why(member: Member) -> bool:
    """Whether a container left with an error, or because another owns its tasks; it may not be the records that end such a one."""
    word = member.last_word or {}
    return bool(word.get("error")) or word.get("outcome") == SUPERSEDED


def _counted(piece: Piece) -> str:
    return f"record {piece}" if piece.count == 1 else f"{piece.count} records ({piece})"


def _is_sudden(ended: str) -> bool:
    """Whether a process ended as one does that the kernel or the cluster killed: without a word."""
    return any(words in ended for words in SUDDEN)


def _where(member: Member) -> str:
    return f"process {member.pid} on {member.host}" if member.registered else "before it registered"
