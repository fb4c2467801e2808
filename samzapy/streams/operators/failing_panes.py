"""Windows whose firing can be taken back in memory, as the store takes back its rows, and that can pass a pane by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samzapy.streams.operators.in_place import SlicesInPlace
from samzapy.streams.operators.window_firing import FIRE, Given

STATE = ("_work", "_key", "_has_key", "_list", "_gone", "_to", "_closed", "_known", "at", "wake")
Saved = tuple[list[Any], list[int], dict[int, set[bytes] | None]]


class SlicesThatFail(SlicesInPlace):
    """As `Slices`; what fires may fail, and is fired again alone."""

    _is_passed_by = False

    @property
    def decode_key(self) -> Callable[[bytes], Any]:
        return self._decode_key

    def save(self) -> Saved:
        """How far firing is, for `go_back`."""
        return [getattr(self, name) for name in STATE], list(self._ends), dict(self._keys)

    def go_back(self, saved: Saved) -> None:
        """Firing is as far as it was. The rows are the store's to undo."""
        state, ends, keys = saved
        for name, value in zip(STATE, state, strict=True):
            setattr(self, name, value)
        self._ends, self._keys = list(ends), dict(keys)

    @property
    def place(self) -> tuple[int, int]:
        """Which windows have fired, and which take no records any more: a late record moves both. For `come_back`, if the records since are undone."""
        return self.at, self._closed

    def come_back(self, place: tuple[int, int]) -> None:
        """Records since `place` were undone. What is due next is looked for anew: the ends of the slices that they made are still known."""
        if place != self.place:
            self.at, self._closed = place
            self._look()

    def next_pane(self, watermark: int) -> tuple[bytes, int, int] | None:
        """Which pane `fire` gives first, if the key has one: key, start and end of the window; None: something else is to be done first."""
        saved = self.save()
        try:
            if self._work is None:
                self._work = self._next(max(watermark, self._to))
                self._key, self._has_key, self._list, self._gone = b"", False, None, 0
            if self._work is None or self._work[0] != FIRE:
                return None
            end = self._work[1]
            return next(((key, end - self._size, end) for key in self._some_keys(FIRE, end, 1)), None)
        finally:
            self.go_back(saved)

    def pass_by(self, watermark: int) -> None:
        """The pane that `fire` would give first is not made; what is deleted with it is."""
        self._is_passed_by = True
        try:
            self.fire(watermark, 1)
        finally:
            self._is_passed_by = False

    def _pane(self, key: Any, data: bytes, window_end: int, kind: Any) -> list[Given]:
        return [] if self._is_passed_by else super()._pane(key, data, window_end, kind)

    def _made(self, window_end: int, key: Any, kind: Any, records: int, sum_: Any) -> Any:
        return None if self._is_passed_by else super()._made(window_end, key, kind, records, sum_)
