"""Windows that take sums of several records of one slice and key, as well as records."""

from __future__ import annotations

from typing import Any

from samzapy.streams.operators.slices import COUNT_BYTES, MOST_RECORDS, Slices


class SlicesOfSums(Slices):
    """As `Slices`, for windows without lateness that give one pane each."""

    def join(self, key: Any, data: bytes, time: int, records: int) -> int:
        """The sum of so many records, all of the slice of this time. Returns how many of them are too late, and were left out: all, or none."""
        end = (time - self._offset) // self._every * self._every + self._offset + self._every
        if end <= self._now.bound and end <= (watermark := self._now.watermark):
            if end + self._stays <= watermark or end + self._size - self._every <= self._closed:
                return records
            self.at = max(self.at, watermark)
            self._write()
        encoded, sum_ = self._encode_key(key), self._sums.decode(data)
        row = self._prefix(end) + encoded
        found = self._get(row)
        if found is None:
            self._note(end, encoded)
        else:
            records = min(int.from_bytes(found[:COUNT_BYTES], "big") + records, MOST_RECORDS)
            sum_ = self._sums.merge(self._sums.decode(found[COUNT_BYTES:]), sum_)
        self._put(row, records.to_bytes(COUNT_BYTES, "big") + self._sums.encode(sum_))
        return 0
