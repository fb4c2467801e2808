"""Where the run loop's time goes: the main thread's stack, sampled by a timer, as a flame graph.

The timer's signal is handled by the main thread itself, at its next bytecode. A sampling thread would have to wait for the interpreter's lock,
and so would see mostly the calls that release it. A sample counts for the time since the sample before it, so a call that blocks for long counts
whole, on the line that made it. Code in C has no frame of its own: it counts on the line that called it.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

LOG = logging.getLogger("samzapy.container")
INTERVAL_S = 0.005
WRITE_S = 30.0
MOST_STACKS = 20_000
DEEPEST = 100
OTHERS = ("(stacks beyond the first 20,000)",)
WIDTH, ROW, LETTER, MARGIN = 1200.0, 17, 6.6, 10  # pixels
Stack = tuple[str, ...]


class LoopProfile:
    """Samples the main thread from `with` to its end, and writes `<name>.folded` and `<name>.svg` into `folder`: every 30 s, and at the end.

    Args:
        folder: made if it is not there.
        name: of the files, without ending.

    Raises:
        RuntimeError: not called by the main thread. OSError: the folder cannot be made.
    """

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / name
        self._microseconds: Counter[Stack] = Counter()
        self._names: dict[Any, str] = {}  # by code object
        self._last = self._next_write = 0.0
        self._before: Any = None
        self._is_sampling = False

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("only the main thread can be profiled: its signal handlers take the samples")
        self._last = time.perf_counter()
        self._next_write = self._last + WRITE_S
        self._before = signal.signal(signal.SIGALRM, self._sample)
        signal.siginterrupt(signal.SIGALRM, False)
        self._is_sampling = True
        self._sample_soon()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        """No more samples; the files are written. Once is enough."""
        if not self._is_sampling:
            return
        self._is_sampling = False
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, self._before)
        self._write()
        LOG.info("profile: %s.svg, and %s.folded for other tools", self._path, self._path)

    def _sample(self, _: int, frame: FrameType | None) -> None:
        now = time.perf_counter()
        stack = self._stack(frame)
        if stack not in self._microseconds and len(self._microseconds) >= MOST_STACKS:
            stack = OTHERS
        self._microseconds[stack] += int((now - self._last) * 1e6)
        self._last = now
        if now >= self._next_write:
            self._write()
            self._last = time.perf_counter()  # writing is not the loop's time
            self._next_write = self._last + WRITE_S
        self._sample_soon()

    def _sample_soon(self) -> None:
        """The timer fires once. A periodic one would fire while a sample is taken or the files are written (a second, where there are many stacks),
        and each of these samples would begin inside the one before, until the stack is full."""
        if self._is_sampling:
            signal.setitimer(signal.ITIMER_REAL, INTERVAL_S)

    def _stack(self, frame: FrameType | None) -> Stack:
        names = [] if frame is None else [f"line {frame.f_lineno}"]
        while frame is not None and len(names) < DEEPEST:
            code = frame.f_code
            name = self._names.get(code)
            if name is None:
                name = self._names[code] = f"{frame.f_globals.get('__name__', '?')}:{code.co_qualname}".replace(";", ",")
            names.append(name)
            frame = frame.f_back
        return tuple(reversed(names))

    def _write(self) -> None:
        """Both files, each replaced as a whole; a profile that cannot be written does not end a container."""
        try:
            for ending, text in ((".folded", folded(self._microseconds)), (".svg", flame_graph(self._microseconds, self._path.name))):
                draft = self._path.with_name(f"{self._path.name}{ending}.{os.getpid()}")
                draft.write_text(text, encoding="utf-8")
                draft.replace(self._path.with_name(self._path.name + ending))
        except OSError as error:
            LOG.warning("the profile %s was not written: %s", self._path, error)


def folded(stacks: Mapping[Stack, int]) -> str:
    """A line per stack, outermost frame first: `frame;frame;frame microseconds`, as flame graph tools read it."""
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in sorted(stacks.items()))


def flame_graph(stacks: Mapping[Stack, int], title: str) -> str:
    """An SVG: a box per frame, as wide as its share of the time; callers below, what they call above. A box's tooltip says its share."""
    total = sum(stacks.values())
    rows = max((len(stack) for stack in stacks), default=0)
    height = (rows + 2) * ROW + 2 * MARGIN
    boxes: list[str] = []
    _draw(boxes, sorted(stacks.items()), 0, 0, total, height - MARGIN - ROW)
    heading = escape(f"{title}: {total / 1e6:.1f} s; a box is as wide as its share of the time; point at it to read it")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 2 * MARGIN:.0f}" height="{height}" font-family="monospace" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="#fffdf8"/>\n<text x="{MARGIN}" y="{MARGIN + 10}">{heading}</text>\n'
        + "".join(boxes)
        + "</svg>\n"
    )


def _draw(boxes: list[str], stacks: Sequence[tuple[Stack, int]], depth: int, before: int, total: int, y: int) -> None:
    """The boxes of frames at `depth`, of stacks that agree up to it and are in order; `before`: microseconds to the left of them."""
    first = 0
    while first < len(stacks):
        stack, _ = stacks[first]
        if len(stack) <= depth:
            before += stacks[first][1]
            first += 1
            continue
        last = first
        while last < len(stacks) and len(stacks[last][0]) > depth and stacks[last][0][depth] == stack[depth]:
            last += 1
        here = sum(count for _, count in stacks[first:last])
        width = WIDTH * here / total if total else 0.0
        if width >= 0.5:
            _box(boxes, stack[depth], MARGIN + WIDTH * before / total, y - depth * ROW, width, here, total)
            _draw(boxes, stacks[first:last], depth + 1, before, total, y)
        before += here
        first = last


def _box(boxes: list[str], name: str, x: float, y: int, width: float, microseconds: int, total: int) -> None:
    hue = 10 + sum(name.encode()) % 45
    letters = int(width / LETTER)
    text = name if len(name) <= letters else name[: letters - 1] + "…" if letters > 3 else ""
    boxes.append(
        f"<g><title>{escape(name)}: {microseconds / 1e6:.3f} s, {100 * microseconds / total:.1f} %</title>"
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" rx="1" fill="hsl({hue},75%,68%)"/>'
        f'<text x="{x + 3:.1f}" y="{y + 12}">{escape(text)}</text></g>\n'
    )
