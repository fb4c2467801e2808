"""The containers of a run, and the only writer of their fields: each method is an event of one container.

What may happen when is in plan/container_phases.py. Callers hold the roster's lock where other threads look.
"""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterator, Mapping, ValuesView
from dataclasses import replace
from typing import Any

from samzapy.coordinator.events import CONTAINER, Events
from samzapy.coordinator.membership import Applicant, Death, Ending, FinalReport, Heard, Launch, Member, Wanted
from samzapy.model.process_end import ProcessEnd, other
from samzapy.model.states import ContainerOutcome, ContainerState
from samzapy.plan.container_phases import Event, next_phase
from samzapy.plan.declared_dead import ASKED, REFUSALS, REFUSED
from samzapy.ports import Clock, ContainerHandle


class Members(Mapping[int, Member]):
    """Members by number.

    Attributes:
        restarts: after deaths, also of containers that are no more.
    """

    def __init__(self, clock: Clock, events: Events) -> None:
        self._clock = clock
        self._events = events
        self._by_number: dict[int, Member] = {}
        self.restarts = 0

    def __getitem__(self, number: int) -> Member:
        return self._by_number[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_number)

    def __len__(self) -> int:
        return len(self._by_number)

    def values(self) -> ValuesView[Member]:
        return self._by_number.values()

    def items(self) -> ItemsView[int, Member]:
        return self._by_number.items()

    def add(self, member: Member) -> None:
        self._by_number = {**self._by_number, member.number: member}  # never changed in place: other threads may be going through it

    def remove(self, member: Member) -> None:
        """There are too many."""
        self._happens(member, Event.REMOVE)
        self._by_number = {n: m for n, m in self._by_number.items() if n != member.number}

    def _happens(self, member: Member, event: Event) -> None:
        member.phase = next_phase(member.number, member.phase, event)

    def _tell(self, member: Member, what: str, text: str, **more: Any) -> None:
        text = f"container {member.number} {text}"
        self._events.add(CONTAINER, what, text, container=member.number, state=member.state, host=member.host, **more)

    # -- before it is named --------------------------------------------------------------------------------------------------------------

    def want(self, number: int) -> None:
        """A new container."""
        self.add(Member(number=number, wanted=Wanted(since=self._clock.monotonic())))

    def prefer(self, member: Member, host: str | None) -> None:
        member.preferred_host = host

    def wait(self, member: Member, reason: str) -> None:
        """It is not launched yet; why."""
        member.reason = reason

    def launch(self, member: Member, launch: Launch, missed: str) -> None:
        """It is being launched. `missed`: why not on its preferred host."""
        self._happens(member, Event.LAUNCH)
        member.launch = launch
        member.state, member.reason = ContainerState.STARTING, ""
        member.affinity = replace(member.affinity, reason=missed)
        self._tell(member, "launched", "is being started" + (f" on {launch.host}" if launch.host else ""))
        member.heard = Heard(at=self._clock.monotonic())

    def launched(self, member: Member, handle: ContainerHandle) -> None:
        member.launch = replace(member.launch, handle=handle)

    def park(self, member: Member, why: str) -> None:
        self._happens(member, Event.PARK)
        member.state, member.reason = ContainerState.LOST, f"{why}; its tasks run elsewhere"
        self._tell(member, "parked", f"is not started: {why}; its tasks run elsewhere")

    def unpark(self, member: Member) -> None:
        self._happens(member, Event.UNPARK)
        now = self._clock.monotonic()
        member.wanted = Wanted(since=now, not_before=now)
        member.state, member.reason = ContainerState.STARTING, ""

    def apply(self, member: Member, incarnation: str, facts: Mapping[str, Any]) -> None:
        """It asks to be named in the topic; repeated until it is."""
        if member.applicant is None:
            self._happens(member, Event.APPLY)
        member.applicant = Applicant(incarnation, facts)

    def note_place(self, member: Member, place: str, where: str) -> bool:
        """It reported where the code of its earlier process `where` was when that ended; False: that is not the process that died last."""
        past = member.history
        if not past.deaths or past.deaths[-1].place or past.deaths[-1].where != where:
            return False
        last = replace(past.deaths[-1], place=place)
        member.history = replace(past, deaths=(*past.deaths[:-1], last), last_restart=last)
        return True

    # -- while it is live ----------------------------------------------------------------------------------------------------------------

    def name(self, member: Member, applicant: Applicant, tasks: tuple[str, ...], epoch: int) -> None:
        """The coordinator topic names it now."""
        self._happens(member, Event.NAME)
        host, pid = str(applicant.facts.get("host", "")), int(applicant.facts.get("pid", 0))
        member.owner = replace(member.owner, incarnation=applicant.incarnation, tasks=tasks, epoch=epoch, host=host, pid=pid)
        member.applicant = None
        member.state, member.reason = ContainerState.STARTING, ""
        self.hear(member)
        self._tell(member, "named", f"runs as process {pid} on {host}")

    def note_affinity(self, member: Member, is_hit: bool, reason: str) -> None:
        """Whether it runs on the host with its state."""
        before = member.affinity
        member.affinity = replace(before, hits=before.hits + is_hit, misses=before.misses + (not is_hit), reason=reason)

    def give(self, member: Member, tasks: tuple[str, ...], epoch: int, released: Collection[str] = ()) -> None:
        """A newer record gives its incarnation these tasks; `released`: those that it had released under the record before."""
        member.owner = replace(member.owner, tasks=tasks, epoch=epoch)
        kept = set(tasks) - set(released)
        member.releasing = {t: at for t, at in member.releasing.items() if t in kept}

    def order_release(self, member: Member, tasks: Collection[str]) -> None:
        """All tasks that it is to release."""
        now = self._clock.monotonic()
        member.releasing = {t: member.releasing.get(t, now) for t in tasks}

    def keep_copies(self, member: Member, tasks: tuple[str, ...]) -> None:
        member.standby = tasks

    def ask_to_stop(self, member: Member, reason: str = "") -> None:
        self._happens(member, Event.ASK_TO_STOP)
        member.stop_reason = reason
        self._tell(member, "asked to stop", f"is asked to stop: {reason}" if reason else "is asked to stop")

    def hear(self, member: Member) -> None:
        """A sign of life, whatever its content."""
        member.heard = replace(member.heard, at=self._clock.monotonic())

    def report(self, member: Member, report: Mapping[str, Any]) -> None:
        """A heartbeat. Two threads of a container send them, so an older one may arrive later."""
        self.hear(member)
        if int(report.get("number", 0)) >= int(member.heard.report.get("number", 0)):
            member.heard = member.heard.with_report(report)
            before, member.state = member.state, str(report.get("state", ContainerState.RUNNING))
            if member.state != before:
                self._tell(member, "state", f"is {member.state}")
        memory = report.get("memory_bytes")
        member.heard = replace(member.heard, memory_bytes=memory if isinstance(memory, int) else None)

    def report_final(self, member: Member, report: Mapping[str, Any]) -> None:
        """Its final report. A report that arrives twice is one refusal by Kafka, not two."""
        error, outcome, past = report.get("error"), str(report.get("outcome", "")), member.history
        if error and error.get("code") in REFUSED and member.heard.final is None:
            past = replace(past, refused_at=(*past.refused_at, self._clock.monotonic())[-REFUSALS:])
        if error and outcome != ContainerOutcome.SUPERSEDED:
            past = replace(past, last_error=str(error.get("message", "")))
        member.history = past
        self.hear(member)
        member.heard = replace(member.heard.with_report(report), final=FinalReport(outcome, error))

    # -- its end -------------------------------------------------------------------------------------------------------------------------

    def lose(self, member: Member, end: ProcessEnd) -> None:
        """It is declared dead; its tasks are taken by force."""
        self._happens(member, Event.LOSE)
        member.ending, member.state = Ending(end), ContainerState.LOST
        self._tell(member, "died", f"died: {end}", end=end.to_json())

    def leave(self, member: Member, is_asked: bool, restart_reason: str) -> None:
        """It stopped in an orderly way, and is to be started again."""
        self._happens(member, Event.LEAVE)
        member.ending = Ending(other(ASKED), is_asked, restart_reason)

    def finish(self, member: Member) -> None:
        """It ended in an orderly way and is not needed again."""
        self._happens(member, Event.FINISH)
        member.state = ContainerState.STOPPED
        self._tell(member, "ended", "has ended normally")

    def dismiss(self, member: Member) -> None:
        """The job stops, or no task is left to run, and this one was never named."""
        self._happens(member, Event.DISMISS)
        member.state = ContainerState.STOPPED

    def fail(self, member: Member, message: str) -> None:
        """Its error ends the job."""
        self._happens(member, Event.FAIL)
        member.ending, member.state = None, ContainerState.FAILED
        member.history = replace(member.history, last_error=message)
        self._tell(member, "failed", f"failed: {message}")

    def clear(self, member: Member) -> None:
        """It was ended in the coordinator topic and fenced: it has no tasks any more, and its launched process cannot be named."""
        member.owner = replace(member.owner, incarnation="", tasks=(), pid=None)
        member.launch, member.applicant = Launch(), None
        member.heard = Heard(at=member.heard.at, memory_bytes=member.heard.memory_bytes)
        member.releasing, member.standby, member.stop_reason = {}, (), ""

    def end(self, member: Member) -> None:
        """Cleared, and not needed again."""
        self._happens(member, Event.END)
        if member.ending is not None and not member.ending.is_asked:
            member.history = replace(member.history, last_error=member.ending.why)
        member.ending, member.state = None, ContainerState.STOPPED

    def died(self, member: Member, death: Death) -> None:
        past = member.history
        member.history = replace(past, deaths=(*past.deaths, death), last_restart=death)

    def restart(self, member: Member, death: Death) -> None:
        """Cleared, and to be started again at once: it was asked to stop."""
        self._happens(member, Event.RESTART)
        member.ending, member.state = None, ContainerState.STARTING
        member.wanted = replace(member.wanted, since=death.at_s)
        member.history = replace(member.history, last_restart=death, last_error="")

    def restart_after_death(self, member: Member, delay_s: float) -> None:
        """Cleared, and to be started again after `delay_s`."""
        self._happens(member, Event.RESTART)
        now, past = self._clock.monotonic(), member.history
        member.ending = None
        member.wanted = Wanted(since=now, not_before=now + delay_s)
        member.history = replace(past, restarts=past.restarts + 1, last_error="")
        self.restarts += 1
        self._tell(member, "fenced", f"was fenced, and is started again {f'in {delay_s:.1f} s' if delay_s else 'now'}")
