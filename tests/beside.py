"""What goes on in a thread of its own while a block is open."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self


class Beside:
    """`_run` goes on until `_stopping` is set, when the block is left."""

    def __init__(self, name: str) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        raise NotImplementedError
