"""Windows that take sums of several records of one slice and key, as well as records."""

from __future__ import annotations

from typing import Any

from samzapy.api.errors import StateUnreadable, TaskError
from samzapy.streams.operators.failing_panes import SlicesThatFail


class SlicesOfSums(SlicesThatFail):
    """As `Slices`, and it takes sums."""

    def join(self, key: Any, data: bytes, time: int, records: int) -> int:
        """The sum of so many records, all of the slice of this time. Returns how many of them are too late, and were left out: all, or none.

        Raises:
            TaskError: it does not fit. The message says how many records that is about.
        """
        try:
            return self._join(key, data, time, records)
        except TaskError as error:
            if records == 1 or isinstance(error, StateUnreadable):
                raise
            said = f"{error.message} This is the sum of {records} records; if it is skipped, all of them are left out."
            raise type(error)(said, f"{error.remedy} With `combine=False` in the key_by before this window, only records that do not fit fail.".strip()) from error

    def _join(self, key: Any, data: bytes, time: int, records: int) -> int:
        """As `join`.

        Sums are only made for windows without lateness that give one pane each. So one gives no pane here and is late as it was there, whatever the
        window has become.
        """
        end = (time - self._offset) // self._every * self._every + self._offset + self._every
        if end <= self._now.bound and self.is_too_late(end, self._now.watermark, lateness_ms=0):
            return records
        encoded, sum_ = self._encode_key(key), self._sums.decode(data)
        row, keys = self._prefix(end) + encoded, self._keys.get(end, ())
        found = None if keys is not None and encoded not in keys else self._held.find(end, key, row)
        if found is None:
            self._note(end, encoded)
            self._held.write(end, key, row, records, sum_, True)
        else:
            self._held.write(end, key, row, found[0] + records, self._sums.merge_parts(found[1], sum_), False)
        return 0
