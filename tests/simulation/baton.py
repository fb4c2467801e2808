"""Many threads of which exactly one runs: virtual time, and a seed that decides who goes next.

Every actor is a thread of its own, because the code that it runs is written as a process runs it; but a thread goes on only while it has the
baton, and gives that away only where it sleeps, waits, or ends. The baton goes to whoever is due first; among those that are due together
the seed decides. Time passes only when nobody is due, and then at once. So a history depends on the seed alone.

Actors belong to processes, or to the world outside. A process can be frozen, as by SIGSTOP: none of its actors is due before it is over. It
can be killed, as by SIGKILL: each of its actors is unwound where it stands by an exception that nobody catches, and whatever it asks of this
world on the way out raises the same again, so nothing that stands in a `finally` has an effect.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from samzapy import failpoints

FOREVER = float("inf")
START_MS = 1_700_000_000_000
STILL = 200_000  # so often the baton may change hands while no time passes


class Stuck(AssertionError):
    """No time passes any more, or nobody will ever be due. Raised in the first actor."""


@dataclass(eq=False)
class SimProcess:
    """What is killed and frozen together.

    Attributes:
        ended: how it ended; "" while it runs.
        frozen_until: when a freeze will be over; 0 while it is not frozen.
        on_end: called when it has ended, however that came.
        on_thaw: called when it goes on after a freeze, with the seconds that it lasted.
    """

    name: str
    ended: str = ""
    frozen_since: float = 0.0
    frozen_until: float = 0.0
    on_end: Callable[[], None] = lambda: None
    on_thaw: Callable[[float], None] = lambda seconds: None
    actors: list[Actor] = field(default_factory=list)


class Actor:
    """A thread that waits for the baton, until `due` or until its event is set. Also what `spawn` gives: it can be joined."""

    def __init__(self, baton: Baton, name: str, process: SimProcess | None) -> None:
        self.name, self.process = name, process
        self.due = 0.0
        self.event: threading.Event | None = None
        self.lot = 0.0
        self.gate = threading.Lock()
        self.gate.acquire()
        self.ended = threading.Event()
        self._baton = baton

    def join(self, timeout: float | None = None) -> None:
        self._baton.wait(self.ended, FOREVER if timeout is None else timeout)

    def is_alive(self) -> bool:
        return not self.ended.is_set()


class Baton:
    """The scheduler; also ports.Clock for every actor. Whoever makes it is its first actor.

    Attributes:
        errors: what actors raised that was not a crash, in order.
        switches: how often the baton was given away.
    """

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.switches = 0
        self.errors: list[tuple[str, BaseException]] = []
        self._random = random.Random(seed)
        self._actors: list[Actor] = []
        self._still = 0
        self._undertaker: Actor | None = None  # who gets the baton when an actor that is unwound has ended
        self._why_stuck = ""
        self.current = self._first = self._new_actor("the story", None)
        self._doomed: list[tuple[float, SimProcess, str]] = []
        self._is_over = False
        self._told = threading.Event()
        self.spawn("the reaper", self._reap)

    # -- ports.Clock -----------------------------------------------------------------------------------------------------------------

    def monotonic(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return START_MS + int(self.now * 1000)

    def sleep(self, seconds: float) -> None:
        self._pause(None, seconds)

    def wait(self, event: threading.Event, seconds: float) -> None:
        if not event.is_set():
            self._pause(event, seconds)

    # -- actors ----------------------------------------------------------------------------------------------------------------------

    def spawn(self, name: str, work: Callable[[], None], process: SimProcess | None = None, delay_s: float = 0.0) -> Actor:
        """Begin this work, after so many seconds, as an actor of this process."""
        self.check_alive()
        actor = self._new_actor(name, process)
        actor.due = self.now + delay_s
        threading.Thread(target=self._live, args=(actor, work), name=name, daemon=True).start()
        return actor

    def check_alive(self) -> None:
        """Raises in an actor of a process that was killed."""
        process = self.current.process
        if process is not None and process.ended:
            raise failpoints.Crash(process.ended)

    def freeze(self, process: SimProcess, seconds: float) -> None:
        """It stands still for so long; at once, also where it called this itself."""
        process.frozen_since, process.frozen_until = self.now, self.now + seconds
        if self.current.process is process:
            self.sleep(0.0)

    def thaw(self, process: SimProcess) -> None:
        """A freeze is over now."""
        process.frozen_until = min(process.frozen_until, self.now)

    def kill(self, process: SimProcess, how: str) -> None:
        """It ends at once, and what it had is let go of before anything of it can run again. Raises if that is the process that called this."""
        if not process.ended:
            self._finish(process, how, self.current)
        self.check_alive()

    def doom(self, process: SimProcess, delay_s: float, how: str) -> None:
        """It will be killed after so many seconds."""
        self._doomed.append((self.now + delay_s, process, how))
        self._told.set()

    def end(self) -> None:
        """All other actors end; nothing runs any more."""
        self._is_over = True
        world = SimProcess("the world", "the end")
        for actor in list(self._actors):
            if actor is not self.current:
                (actor.process or world).ended = "the end"
                actor.process = actor.process or world
                self._unwind(actor, self.current)

    # -- inside ------------------------------------------------------------------------------------------------------------------------

    def _new_actor(self, name: str, process: SimProcess | None) -> Actor:
        actor = Actor(self, name, process)
        actor.lot = self._random.random()
        self._actors.append(actor)
        if process is not None:
            process.actors.append(actor)
        return actor

    def _live(self, actor: Actor, work: Callable[[], None]) -> None:
        actor.gate.acquire()
        try:
            self._note_thaw(actor)
            self.check_alive()
            work()
        except failpoints.Crash:
            if actor.process is not None and not actor.process.ended:  # raised by a callback: the whole process goes
                self._finish(actor.process, "crashed", actor)
        except BaseException as error:
            if actor.process is None or not actor.process.ended:
                self.errors.append((actor.name, error))
        self._actors.remove(actor)
        if actor.process is not None and actor in actor.process.actors:
            actor.process.actors.remove(actor)
        actor.ended.set()
        heir, self._undertaker = self._undertaker, None
        self.current = heir or self._next()
        self.current.gate.release()

    def _finish(self, process: SimProcess, how: str, caller: Actor) -> None:
        process.ended = how
        process.on_end()
        for actor in list(process.actors):
            if actor is not caller and actor.is_alive():
                self._unwind(actor, caller)

    def _unwind(self, actor: Actor, caller: Actor) -> None:
        self._undertaker = caller
        self.current = actor
        actor.gate.release()
        caller.gate.acquire()

    def _pause(self, event: threading.Event | None, seconds: float) -> None:
        self.check_alive()
        actor = self.current
        actor.event, actor.due, actor.lot = event, self.now + max(0.0, seconds), self._random.random()
        chosen = self._next()
        if chosen is not actor:
            self.switches += 1
            self.current = chosen
            chosen.gate.release()
            actor.gate.acquire()
        actor.event = None
        if actor is self._first and self._why_stuck:
            why, self._why_stuck = self._why_stuck, ""
            raise Stuck(why)
        self._note_thaw(actor)
        self.check_alive()

    def _next(self) -> Actor:
        now = self.now
        best, best_due = None, FOREVER
        for actor in self._actors:
            due = now if actor.event is not None and actor.event.is_set() else actor.due
            if actor.process is not None and actor.process.frozen_until > due:
                due = actor.process.frozen_until
            if due < now:
                due = now
            if due < best_due or (due == best_due and best is not None and actor.lot < best.lot):
                best, best_due = actor, due
        if best is None:
            return self._give_up(f"at {now:.3f} s nobody will ever be due: {', '.join(a.name for a in self._actors)}")
        self._still = 0 if best_due > now else self._still + 1
        if self._still > STILL:
            return self._give_up(f"no time passes at {now:.3f} s; {best.name} is due again and again")
        self.now = best_due
        return best

    def _give_up(self, why: str) -> Actor:
        """The first actor hears of it, whoever has the baton now."""
        self._why_stuck, self._still = why, 0
        return self._first

    def _note_thaw(self, actor: Actor) -> None:
        process = actor.process
        if process is not None and process.frozen_until and not process.ended:
            seconds = self.now - process.frozen_since
            process.frozen_until = 0.0
            process.on_thaw(seconds)

    def _reap(self) -> None:
        while True:
            self._told.clear()
            for entry in [e for e in self._doomed if e[0] <= self.now]:
                self._doomed.remove(entry)
                self.kill(entry[1], entry[2])
            self.wait(self._told, min((at for at, _, _ in self._doomed), default=FOREVER) - self.now)
