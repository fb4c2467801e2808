"""Named points at every step of the protocol (PROTOCOL.md) where a test can end the process, or do something else to it. Inert by default.

It guarantees: unless somebody asked for it twice (SAMZAPY_FAILPOINTS and SAMZAPY_FAILPOINTS_OK=1), `hit` is a function that does nothing,
and no call stands in the loop over records. `POINTS` is the whole list: what a name means in the protocol, and which row of "What each crash
point leaves" says what a crash there leaves. A test compares it with the calls in the code.

    SAMZAPY_FAILPOINTS="commit.C4.before=kill@3/0, restore.batch.applied=stop"     name=action[@nth][/container]

    kill            SIGKILL to this process; `kill:0.002`: so many seconds later, while the step goes on
    exit            leave at once, code 86
    stop            SIGSTOP to this process
    raise           raise FailpointError here
    sleep:SECONDS   wait here, then go on

It strikes at the nth hit (default: the first) in a process, in the given container or in any. With SAMZAPY_FAILPOINTS_DIR, a directory, hits
are counted there over all processes: each failpoint then strikes once in all, and a container that is started again does not die for ever.
Callers write `failpoints.hit("name")`, so that arming, which replaces `hit`, reaches them.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from samzapy.api.errors import ConfigurationError

LOG = logging.getLogger("samzapy.failpoints")
VARIABLE, CONSENT, DIRECTORY = "SAMZAPY_FAILPOINTS", "SAMZAPY_FAILPOINTS_OK", "SAMZAPY_FAILPOINTS_DIR"
EXIT_CODE = 86
KILL, EXIT, STOP, RAISE, SLEEP = "kill", "exit", "stop", "raise", "sleep"

# Rows of "What each crash point leaves" in PROTOCOL.md.
START = "O1…T6: no commit is affected; a restore goes on from the position stored with the data"
OPEN = "polled, processed, C0–C3: aborted, invisible; inputs read again from the checkpoint"
INSIDE_C4 = "inside C4: the whole transaction or none of it"
DECIDED = "after C4: committed; each store catches up from its own position to the barrier"
HANDED_OVER = "between the last commit and the report of a release or of the end: the release or the end is in Kafka"
OWNING = "owning: the coordinator topic says who owns what; an owner is ended and fenced before another is named"
COPY = "a warm copy: a cache; it can lag, never wrong"
PURGE = "a purge: what it removes was read and committed before; the rest is removed by the next purge"


@dataclass(frozen=True, slots=True)
class Point:
    """Where a failpoint stands: a step of the protocol, and the row that says what a crash there leaves."""

    step: str
    row: str


POINTS: Mapping[str, Point] = {
    # -- a container: owning, starting ---------------------------------------------------------------------------------------------
    "own.init.before": Point("before O1", START),
    "own.init.after": Point("O1 done: predecessors are fenced, the topic is not read yet", START),
    "own.checked": Point("O2 done", START),
    "start.barrier.sent": Point("T1: barriers flushed, not committed", START),
    "start.barrier.committed": Point("T1 done", START),
    "start.checkpoint.read": Point("T2: a task's checkpoint is read", START),
    "store.create.made": Point("T3: a generation's directory exists, without a store", START),
    "store.set_aside.marked": Point("T3: a generation is marked, its lock still held", START),
    "store.delete.emptied": Point("T3: of a generation that was set aside only the mark is left", START),
    "restore.chosen": Point("T3 done for a store: kept or new, nothing loaded yet", START),
    "restore.batch.applied": Point("T4: a batch and its position are in the store", START),
    "restore.done.before_flush": Point("T4: a store is complete and not flushed", START),
    "start.first_checkpoint.before": Point("T5: checkpoint 0 is flushed, not committed", START),
    "start.first_checkpoint.after": Point("T5: checkpoint 0 is committed, init() was not called", START),
    "init.before": Point("T6: before a task's init()", START),
    "init.after": Point("T6: after a task's init(), its effects kept", OPEN),
    "inputs.assigned": Point("T6 done: inputs are at the checkpoint", START),
    # -- a container: processing, commit -------------------------------------------------------------------------------------------
    "process.batch": Point("a batch is processed and sent, not committed", OPEN),
    "release.before": Point("before the records of hooks are handed to the producer", OPEN),
    "commit.C0.cut": Point("C0 done", OPEN),
    "marks.sent": Point("after C0: an internal topic has the marks of the transaction, of which nobody sees anything yet", OPEN),
    "commit.C1.sent": Point("C1: the changes of a task are sent", OPEN),
    "commit.C2.flushed": Point("C2 done", OPEN),
    "commit.C3.sent": Point("C3: the checkpoint of a task is sent", OPEN),
    "commit.C4.before": Point("before C4; with a delay: inside C4", INSIDE_C4),
    "commit.C4.after": Point("C4 done: decided, nothing applied", DECIDED),
    "store.apply.done": Point("C5: a store has its committed changes, in memory", DECIDED),
    "store.write_out.part": Point("a part of a store's committed changes is written, in its memtable", DECIDED),
    "commit.C5.between_stores": Point("C5: between two stores' batches", DECIDED),
    "commit.C5.applied": Point("C5 done", DECIDED),
    "commit.C6.done": Point("C6 done: the group's offsets are mirrored", DECIDED),
    "store.flush.before": Point("before a store's memtable is flushed", DECIDED),
    "store.flush.after": Point("a store's memtable is flushed", DECIDED),
    # -- a container: giving back, ending ------------------------------------------------------------------------------------------
    "move.commit.before_release": Point("a task that is to be released is committed, not closed", HANDED_OVER),
    "move.released.before_ack": Point("a task is closed, not reported", HANDED_OVER),
    "end.final_commit.before": Point("end_of_stream() has returned, its effects are not committed", OPEN),
    "end.final_commit.after": Point("the commit with the run's id is done, the task is not closed", HANDED_OVER),
    "stop.final_commit.before": Point("a graceful stop, before its commit", OPEN),
    "stop.final_commit.after": Point("a graceful stop, after its commit, before close()", HANDED_OVER),
    "end.report.before": Point("all is done, not reported to the coordinator", HANDED_OVER),
    "standby.opened": Point("a warm copy's store is chosen or made", COPY),
    "standby.batch.applied": Point("a warm copy has taken a batch", COPY),
    "standby.flush.before": Point("before a warm copy is flushed", COPY),
    "purge.before": Point("before what was read and committed of internal topics is removed", PURGE),
    "purge.after": Point("it is removed, and this container alone knows how far", PURGE),
    # -- the coordinator -----------------------------------------------------------------------------------------------------------
    "coordinator.lease.before": Point("before the lease is renewed", OWNING),
    "coordinator.taken_over": Point("earlier coordinators are fenced, earlier containers are not", OWNING),
    "coordinator.fenced": Point("every container id of earlier runs is fenced, nothing assigned", OWNING),
    "coordinator.named.before": Point("before owners are named", OWNING),
    "coordinator.named.after": Point("owners are named, no container knows it", OWNING),
    "coordinator.moved.before": Point("before released tasks change hands", OWNING),
    "coordinator.moved.after": Point("tasks have changed hands, no container knows it", OWNING),
    "coordinator.lost.before": Point("a container is declared lost, nothing is written", OWNING),
    "coordinator.end.a": Point("(a) the record that ends an incarnation is committed", OWNING),
    "coordinator.end.b": Point("(b) it was read back", OWNING),
    "coordinator.end.c": Point("(c) a container's id is fenced, its tasks not assigned", OWNING),
    "coordinator.finish.before": Point("all containers have ended, the end is not written", HANDED_OVER),
}


class FailpointError(Exception):
    """What the action `raise` raises: an error that nobody foresaw."""


class Crash(BaseException):
    """For tests within a process: raised by their callback, it ends the actor that hit the point as SIGKILL would."""


def _nothing(name: str) -> None:
    """`hit` while nothing is armed."""


hit: Callable[[str], None] = _nothing


@contextmanager
def calling(callback: Callable[[str], None]) -> Iterator[None]:
    """For tests: every hit in this process calls `callback(name)` while the block is open."""
    global hit
    before, hit = hit, callback
    try:
        yield
    finally:
        hit = before


def arm(environment: Mapping[str, str], container: int | None = None) -> None:
    """Arm what the environment asks for, in this process; `container`: which one it is (None: the driver). Call once, at its start.

    Raises:
        ConfigurationError: what is asked for cannot be read, or SAMZAPY_FAILPOINTS_OK=1 is not set.
    """
    global hit
    text = environment.get(VARIABLE, "")
    if not text.strip():
        return
    if environment.get(CONSENT) != "1":
        raise ConfigurationError(
            f"{VARIABLE} is set: this process will fail on purpose at {text!r}.",
            f"Unset it; it is for tests. To allow it, set {CONSENT}=1.",
        )
    where = "the driver" if container is None else f"container {container}"
    rules = [rule for rule in parsed(text) if rule.container is None or rule.container == container]
    directory = environment.get(DIRECTORY)
    hit = _Armed(rules, Path(directory) if directory else None, where)
    LOG.critical("FAILPOINTS ARE ARMED in %s: %s", where, ", ".join(str(rule) for rule in rules) or "none of its own")


# -- what was asked for --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """A failpoint that is armed: it does `action` at the `nth` hit, in `container` or (None) in any process."""

    name: str
    action: str
    seconds: float = 0.0
    nth: int = 1
    container: int | None = None

    def __str__(self) -> str:
        seconds = f":{self.seconds:g}" if self.seconds else ""
        return f"{self.name}={self.action}{seconds}@{self.nth}" + ("" if self.container is None else f"/{self.container}")

    def file(self, directory: Path) -> Path:
        """Where its hits are counted over all processes, a byte each."""
        return directory / str(self).replace("/", "_")


_RULE = re.compile(r"(?P<name>[\w.]+)=(?P<action>[a-z]+)(:(?P<seconds>[\d.]+))?(@(?P<nth>[1-9]\d*))?(/(?P<container>\d+))?")


def parsed(text: str) -> list[Rule]:
    """What a value of SAMZAPY_FAILPOINTS asks for.

    Raises:
        ConfigurationError: it is not of the form, or names a point or an action that there is not.
    """
    return [_rule(part.strip()) for part in text.split(",") if part.strip()]


def _rule(part: str) -> Rule:
    found = _RULE.fullmatch(part)
    if found is None:
        raise ConfigurationError(f"{VARIABLE}: {part!r} is not a failpoint.", "Write name=action[@nth][/container].")
    name, action, seconds = found["name"], found["action"], found["seconds"]
    if name not in POINTS:
        raise ConfigurationError(f"{VARIABLE}: there is no failpoint {name!r}.", f"There are: {', '.join(POINTS)}.")
    if action not in _ACTIONS or (action == SLEEP and not seconds) or (seconds and action not in (KILL, SLEEP)):
        raise ConfigurationError(
            f"{VARIABLE}: {part!r} has no such action.", "There are: kill, kill:SECONDS, exit, stop, raise, sleep:SECONDS."
        )
    try:
        wait_s = float(seconds or 0)
    except ValueError:
        raise ConfigurationError(f"{VARIABLE}: {seconds!r} in {part!r} is not a number of seconds.", "Write e.g. sleep:0.5.") from None
    container = found["container"]
    return Rule(name, action, wait_s, int(found["nth"] or 1), None if container is None else int(container))


# -- striking ------------------------------------------------------------------------------------------------------------------------


class _Armed:
    """`hit` of a process in which failpoints are armed."""

    def __init__(self, rules: Sequence[Rule], directory: Path | None, where: str) -> None:
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            self._rules.setdefault(rule.name, []).append(rule)
        self._directory = directory
        self._where = where
        self._counts: dict[Rule, int] = {}
        self._lock = threading.Lock()

    def __call__(self, name: str) -> None:
        for rule in self._rules.get(name, ()):
            if self._count(rule) == rule.nth:
                LOG.critical("FAILPOINT %s strikes in %s (%s)", rule, self._where, POINTS[name].step)
                _ACTIONS[rule.action](rule)

    def _count(self, rule: Rule) -> int:
        """Which hit this is: of this process, or of all that count in the same directory."""
        if self._directory is not None:
            return note(rule.file(self._directory))
        with self._lock:
            self._counts[rule] = self._counts.get(rule, 0) + 1
            return self._counts[rule]


def note(file: Path) -> int:
    """Append a byte; how many there are then. No two processes get the same number."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, b".")
        return os.lseek(descriptor, 0, os.SEEK_CUR)
    finally:
        os.close(descriptor)


def _kill(rule: Rule) -> None:
    if not rule.seconds:
        os.kill(os.getpid(), signal.SIGKILL)
        return
    timer = threading.Timer(rule.seconds, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


def _raise(rule: Rule) -> None:
    raise FailpointError(f"failpoint {rule}")


_ACTIONS: Mapping[str, Callable[[Rule], None]] = {
    KILL: _kill,
    EXIT: lambda rule: os._exit(EXIT_CODE),
    STOP: lambda rule: signal.pthread_kill(threading.get_ident(), signal.SIGSTOP),  # before the next line, and the whole process
    RAISE: _raise,
    SLEEP: lambda rule: time.sleep(rule.seconds),
}
