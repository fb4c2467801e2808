"""Where the run loop's time goes, as a flame graph: of samples of its stack, which sampling.py takes."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Self

from samzapy.container.sampling import Sampler, Samples, Stack

LOG = logging.getLogger("samzapy.container")
WRITE_S = 30.0
WIDTH, ROW, LETTER, MARGIN = 1200.0, 17, 6.6, 10  # pixels


class LoopProfile:
    """Samples the main thread from `with` to its end, and writes `<name>.folded` and `<name>.svg` into `folder`: every 30 s, and at the end.

    Args:
        folder: made if it is not there.
        name: of the files, without ending.
        sampler: takes the samples; None: one of its own, for the length of the block.

    Raises:
        RuntimeError: not called by the main thread. OSError: the folder cannot be made.
    """

    def __init__(self, folder: Path, name: str, sampler: Sampler | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / name
        self._samples = Samples()
        self._given, self._sampler = sampler, sampler
        self._next_write = 0.0
        self._is_over = False

    def __enter__(self) -> Self:
        self._sampler = self._given or Sampler()
        self._next_write = time.perf_counter() + WRITE_S
        self._sampler.begin(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()

    def add(self, stack: Stack, microseconds: int) -> None:
        """A sample."""
        self._samples.add(stack, microseconds)
        if time.perf_counter() >= self._next_write:
            self._write()
            self._next_write = time.perf_counter() + WRITE_S

    def end(self) -> None:
        """No more samples; the files are written. Once is enough."""
        if self._sampler is None or self._is_over:
            return
        self._is_over = True
        self._sampler.end(self)
        if self._given is None:
            self._sampler.close()
        self._write()
        LOG.info("profile: %s.svg, and %s.folded for other tools", self._path, self._path)

    def _write(self) -> None:
        """Both files, each replaced as a whole; a profile that cannot be written does not end a container."""
        stacks = self._samples.microseconds
        try:
            for ending, text in ((".folded", folded(stacks)), (".svg", flame_graph(stacks, self._path.name))):
                draft = self._path.with_name(f"{self._path.name}{ending}.{os.getpid()}")
                draft.write_text(text, encoding="utf-8")
                draft.replace(self._path.with_name(self._path.name + ending))
        except OSError as error:
            LOG.warning("the profile %s was not written: %s", self._path, error)


def folded(stacks: Mapping[Stack, int], most: int | None = None) -> str:
    """A line per stack, outermost frame first: `frame;frame;frame microseconds`, as flame graph tools read it. `most`: only so many, those that
    took most."""
    kept = sorted(stacks.items()) if most is None else sorted(sorted(stacks.items(), key=lambda one: -one[1])[:most])
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in kept)


def stacks_in(text: str) -> dict[Stack, int]:
    """What `folded` wrote.

    Raises:
        ValueError: it is something else.
    """
    lines = (line.rpartition(" ") for line in text.splitlines())
    return {tuple(stack.split(";")): int(count) for stack, _, count in lines}


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
