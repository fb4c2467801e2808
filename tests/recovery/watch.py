"""Looking at a running job all the time, in a thread: its status as it is now, and the samples from which recovery times are told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from tests.recovery.faults import Sample, sample_of
from tests.recovery.job import Status

LOOK_S = 0.05


class Watch:
    """Asks `look` every 50 ms while the block is open."""

    def __init__(self, look: Callable[[], Status | None]) -> None:
        self._look = look
        self._changed = threading.Condition()
        self._looks = 0
        self._samples: list[Sample] = []
        self._status: Status | None = None
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def samples(self) -> list[Sample]:
        with self._changed:
            return list(self._samples)

    def next(self, limit_s: float = 30.0) -> Status | None:
        """The status of a look that begins after this call; None where no coordinator answers.

        Raises:
            what ended the watch, if something did.
        """
        with self._changed:
            wanted = self._looks + 2  # one may be under way
            came = self._changed.wait_for(lambda: self._looks >= wanted or self._failure is not None, limit_s)
            if self._failure is not None:
                raise self._failure
            assert came, f"no look at the job's status within {limit_s:.0f} s"
            return self._status

    def _run(self) -> None:
        try:
            while not self._stopping.wait(LOOK_S):
                at_ms = time.time_ns() // 1_000_000
                status = self._look()
                with self._changed:
                    self._status = status
                    self._samples.append(sample_of(status, at_ms))
                    self._looks += 1
                    self._changed.notify_all()
        except Exception as failure:
            with self._changed:
                self._failure = failure  # raised to whoever asks
                self._changed.notify_all()
