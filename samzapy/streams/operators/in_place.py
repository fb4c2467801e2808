"""Windows whose records are mostly counted in memory by the generated code itself, without a call."""

from __future__ import annotations

from typing import Any

from samzapy.streams.operators.held import KEY_TYPES, Slots
from samzapy.streams.operators.window_firing import MOST_KEYS, Slices


class SlicesInPlace(Slices):
    """As `Slices`, and it says which records need no more than a change of what is in memory."""

    def near(self) -> tuple[int, int, Slots]:
        """Of the last record's slice the times, from and before, and its slots: a record whose key is there only changes the entry, and gives nothing. No
        times at all, if records of this slice may give something."""
        end = self._near_end
        return (0, 0, self._near) if self._each or end <= self._now.bound else (max(0, end - self._every), end, self._near)

    def fresh(self, key: Any) -> bool:
        """Of a window that counts: a record whose time is one of `near`, and whose key is not in the slots that `near` gave. Whether that was all: a new
        row was made of it; else it is to be added."""
        end, keys = self._near_end, self._keys.get(self._near_end)
        if keys is None or self._known >= MOST_KEYS or type(key) not in KEY_TYPES:
            return False
        data = self._encode_key(key)
        if data in keys or not self._held.begin(end, self._near, key, self._prefix(end) + data, self._add(None, None, end)):
            return False
        keys.add(data)
        self._known += 1
        return True
