"""A stuck hook, one that does not return: seen from another thread, by looking at the loop's stack; the loop itself does nothing for it.

The run loop says every few milliseconds that it is not inside a hook. When it has not for half of `commit.timeout`, the stack and the
record are logged. At the whole of it the transaction is about to time out at the broker and nothing of this container can be committed any
more: it ends, and its replacement starts from the last commit.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import FrameType

PACKAGE = Path(__file__).resolve().parents[1]
CALLERS = {str(Path(__file__).with_name(name).resolve()) for name in ("hooks.py", "processing.py")}  # of hooks
LOOP = ("_process", "_attempt")


def user_frames(thread_id: int) -> tuple[list[str], str]:
    """The stack of the hook that runs in a thread, outermost first, and its record; ([], "") while no hook runs there."""
    frames: list[FrameType] = []
    frame = sys._current_frames().get(thread_id)
    while frame is not None and frame.f_code.co_filename not in CALLERS:
        frames.append(frame)
        frame = frame.f_back
    if frame is None or not frames or Path(frames[-1].f_code.co_filename).is_relative_to(PACKAGE):
        return [], ""
    return [line_of(f) for f in reversed(frames)], _record(frame)


def line_of(frame: FrameType) -> str:
    """Where a frame is: file, line, function, and what stands there."""
    at = traceback.extract_stack(frame, limit=1)[0]
    return f"{Path(at.filename).name}:{at.lineno} in {at.name}: {at.line}"


def _record(loop: FrameType) -> str:
    if loop.f_code.co_name not in LOOP:
        return ""
    message, records = loop.f_locals.get("message"), loop.f_locals.get("records", ())
    after = f" or one of the {len(records) - 1} after it" if len(records) > 1 else ""
    return "" if message is None else f" on record {message.topic()}[{message.partition()}]@{message.offset()}{after}"
