"""How the process of a container ended: values, on which decisions are taken, and their words, for people and for what is recorded."""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from enum import Enum

MAX_TEXT = 2000
WATCHDOG = "samzapy's watchdog over threads"  # it reads their stacks without the interpreter's lock


class Kind(Enum):
    """What is known of the end."""

    EXITED = "it exited with a code"
    KILLED = "a signal ended it"
    KILLED_OR_CRASHED = "it was killed, or it crashed"
    EXECUTOR_LOST = "Spark lost its executor"
    SILENT = "it was silent for longer than its lease"
    OTHER = "only the words tell"


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """The end of a process. Prints as a sentence's part, like `killed by SIGKILL`.

    Attributes:
        words: how it ended.
        signal: the name of the signal that ended it; "" if none did.
        memory: what is known of its memory before; `lacks_memory`: that it had too little is the likely cause.
        said: why it said that it ends itself; "" if it did not.
        is_watchdogs: it crashed in WATCHDOG.
    """

    kind: Kind
    words: str
    signal: str = ""
    memory: str = ""
    lacks_memory: bool = False
    said: str = ""
    is_watchdogs: bool = False

    def __str__(self) -> str:
        return self._told(": too little memory is the likely cause. Give the host more memory, or set containers.memory lower" if self.lacks_memory else "")

    def to_json(self) -> dict[str, object]:
        """For the hints; `why` without what memory may have to do with it."""
        return {"why": self._told("")[:MAX_TEXT], "signal": self.signal, "lacks_memory": self.lacks_memory, "said": self.said}

    @property
    def is_sudden(self) -> bool:
        """Whether the kernel or the cluster may have killed it."""
        return self.signal == "SIGKILL" or self.kind in (Kind.KILLED_OR_CRASHED, Kind.EXECUTOR_LOST)

    def _told(self, blamed: str) -> str:
        memory = f" ({self.memory}{blamed})" if self.memory else ""
        said = f": {self.said}" if self.said else ""
        watch = f" in {WATCHDOG}, after the process had been suspended, or because the machine was busy; no record was the cause" if self.is_watchdogs else ""
        return f"{self.words}{memory}{said}{watch}"


def exited(code: int) -> ProcessEnd:
    """It exited with this code."""
    return ProcessEnd(Kind.EXITED, f"exit code {code}")


def killed_by(number: int) -> ProcessEnd:
    """The signal of this number ended it."""
    try:
        name = signals.Signals(number).name
    except ValueError:
        return ProcessEnd(Kind.KILLED, f"killed by signal {number}", f"signal {number}")
    return ProcessEnd(Kind.KILLED, f"killed by {name}", name)


def ended_with(code: int) -> ProcessEnd:
    """As a return code of `subprocess` says: below 0 it is a signal's number.

    >>> str(ended_with(70)), str(ended_with(-9)), str(ended_with(-63))
    ('exit code 70', 'killed by SIGKILL', 'killed by signal 63')
    """
    return exited(code) if code >= 0 else killed_by(-code)


def killed_or_crashed(why: str) -> ProcessEnd:
    """Nobody saw which of the two."""
    return ProcessEnd(Kind.KILLED_OR_CRASHED, f"killed or crashed: {why}")


def executor_lost(why: str) -> ProcessEnd:
    """Spark lost the executor that it ran on."""
    return ProcessEnd(Kind.EXECUTOR_LOST, f"its executor was lost{why}")


def silent(silent_s: float, lease_s: float) -> ProcessEnd:
    """It was not heard of for longer than its lease."""
    return ProcessEnd(Kind.SILENT, f"silent for {silent_s:.1f} s, its lease of {lease_s:g} s is over")


def other(words: str) -> ProcessEnd:
    """An end that says nothing of how the process came to it."""
    return ProcessEnd(Kind.OTHER, words)
