"""A stuck hook, one that does not return: seen from another thread, by looking at the loop's stack; the loop itself does nothing for it. As a hook
counts all code of the user's that the loop calls: functions of a program, serdes and times of inputs too.

The run loop says every few milliseconds that it is not inside a hook. When it has not for half of `commit.timeout`, the stack and the
record are logged. At the whole of it the transaction is about to time out at the broker and nothing of this container can be committed any
more: it ends, and its replacement starts from the last commit.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

PACKAGE = Path(__file__).resolve().parents[1]
CALLERS = {str(Path(__file__).with_name(name).resolve()) for name in ("hooks.py", "processing.py")}  # of hooks
LOOP = ("_process", "_attempt")
# What of samzapy calls code of the user's between the loop and a hook: programs of streams, serdes, and what hands records over.
_OF_CONTAINER = ("batches", "context", "envelopes", "hot_loop", "process_with_time", "task_instance", "tracing")
BETWEEN = ("streams", "serde", *(f"container/{name}.py" for name in _OF_CONTAINER), "wiring/event_time.py")
PROGRAM = str(PACKAGE / "streams" / "<program>")  # the file that generated code says it is of


def user_frames(thread_id: int) -> tuple[list[str], str]:
    """The stack of the user's code that the loop called in a thread, outermost first, and its record; ([], "") while none runs there."""
    frames: list[FrameType] = []
    frame = sys._current_frames().get(thread_id)
    while frame is not None and frame.f_code.co_filename not in CALLERS:
        frames.append(frame)
        frame = frame.f_back
    count = of_users([f.f_code.co_filename for f in frames])
    if frame is None or not count:
        return [], ""
    return [line_of(f) for f in reversed(frames[:count])], _record(frame)


def of_users(paths: Sequence[str]) -> int:
    """How many of these frames are of the user's code, and of what that called. `paths`: their files, innermost first, up to the loop that called the
    outermost. A function in C that a program calls has no frame: the line of the program is there for it."""
    for count in range(len(paths), 0, -1):
        path = Path(paths[count - 1])
        if not path.is_relative_to(PACKAGE):
            return count
        if not any(path.is_relative_to(PACKAGE / between) for between in BETWEEN):
            return 0
    return 1 if paths and paths[0] == PROGRAM else 0


def line_of(frame: FrameType) -> str:
    """Where a frame is: file, line, function, and what stands there."""
    at = traceback.extract_stack(frame, limit=1)[0]
    return f"{Path(at.filename).name}:{at.lineno} in {at.name}: {at.line}"


def _record(loop: FrameType) -> str:
    if loop.f_code.co_name not in LOOP:
        return ""
    message, records, run = loop.f_locals.get("message"), loop.f_locals.get("records", ()), loop.f_locals.get("run")
    if run is not None:  # the hot loop is at one of the batch's records; it may have no frame
        message = loop.f_locals["batch"][run.index]
    after = f" or one of the {len(records) - 1} after it" if len(records) > 1 else ""
    return "" if message is None else f" on record {message.topic()}[{message.partition()}]@{message.offset()}{after}"
