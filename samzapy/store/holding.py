"""The store of an operator that holds values in memory between commits (ports.HeldValues): they are kept, undone and dropped with its writes."""

from __future__ import annotations

from typing import Any

from samzapy.ports import HeldValues
from samzapy.store import misuse
from samzapy.store.overlay import OverlayStore


class HoldingStore(OverlayStore):
    """An OverlayStore, with what is held for it; the arguments are those of OverlayStore."""

    __slots__ = ("_held",)

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._held: HeldValues | None = None
        super().__init__(*arguments, **more)

    def hold(self, held: HeldValues) -> int:
        self._held = held
        return self._max_record_bytes - misuse.RECORD_OVERHEAD_BYTES

    def write_held(self) -> None:
        if self._held is not None:
            self._held.write_out()
            self.keep()
            self._held.trim()

    @property
    def uncommitted_bytes(self) -> int:
        return self._bytes + (0 if self._held is None else self._held.unwritten_bytes)

    def keep(self) -> None:
        super().keep()
        if self._held is not None:
            self._held.keep()

    def undo(self) -> None:
        super().undo()
        if self._held is not None:
            self._held.undo()

    def discard(self) -> None:
        super().discard()
        if self._held is not None:
            self._held.clear()

    def written(self, limit: int) -> list[tuple[Any, Any, Any]]:
        return (super().written(limit) + ([] if self._held is None else self._held.written()))[:limit]
