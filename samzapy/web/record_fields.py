"""Keys and values of records, for the page. What the user's code decodes is decoded in a process of its own: there it may crash, hang or take
Python's lock, and neither the coordinator nor its containers notice.

A request and its answer are a line of JSON each, with the bytes in base64. The process ends when nobody has asked for a while, and when the
driver ends. What ended it, or took too long, is not tried again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from samzapy.api.errors import SamzapyError
from samzapy.config.schema import Settings
from samzapy.ops.shown import Undecoded, decoded, field, read
from samzapy.serde.record_keys import as_key
from samzapy.serde.registry import is_users, serde_named
from samzapy.wiring.serdes import KEY, Serdes

START_S, DECODE_S, IDLE_S = 30.0, 2.0, 60.0  # imports may take long; a record may not
ALARM_S = 10  # after that the kernel ends a process that nobody waits for any more
MAX_DEATHS, DEATHS_S = 5, 60.0
MAX_BAD = 1000
MAX_ANSWER = 8 << 20  # bytes
DIED = "decoding it ended the process in which that was tried"
SLOW = f"decoding it had not ended after {DECODE_S:g} s"
NOT_IMPORTED = f"not decoded: importing the serde's module ended the process that tried it, or took more than {START_S:g} s"
NOT_NOW = f"not decoded: in the last {DEATHS_S:g} s, decoding other records ended {MAX_DEATHS} processes"


class RecordFields:
    """Makes the fields of documents from keys and values. `folders`: where the user's modules and schemas are looked for."""

    def __init__(self, settings: Settings, folders: Sequence[Path]) -> None:
        self._serdes, self._folders = Serdes(settings, folders), [str(folder) for folder in folders]
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._closes: threading.Timer | None = None
        self._bad: dict[bytes, str] = {}
        self._deaths: list[float] = []

    def field(self, serde: str, topic: str, part: str, data: bytes | None, limit: int, find: str = "") -> dict[str, Any]:
        """As `ops.shown.field`, of what the serde of that name reads of a topic's keys or values (`part`)."""
        if data is None or not is_users(serde):
            return field(decoded(self._serdes, serde, topic, part, data), data, limit, find)
        with self._lock:
            answer = self._by_child(serde, part, data, limit, find)
        return answer if isinstance(answer, dict) else field(Undecoded(data, answer), data, limit, find)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _by_child(self, serde: str, part: str, data: bytes, limit: int, find: str) -> dict[str, Any] | str:
        """The field, or why there is none."""
        name = hashlib.blake2b(f"{serde} {part} ".encode() + data, digest_size=16).digest()
        if name in self._bad:
            return self._bad[name]
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < DEATHS_S]
        if len(self._deaths) >= MAX_DEATHS:
            return NOT_NOW
        self._await_idle()
        try:
            child = self._child = self._child or _Child(self._folders)
            return child.why_not(serde, part) or child.field(serde, part, data, limit, find)
        except _Silent as silent:
            self._end()
            self._deaths.append(time.monotonic())
            if silent.is_of_record:
                self._bad[name] = str(silent)
                while len(self._bad) > MAX_BAD:
                    del self._bad[next(iter(self._bad))]
            return str(silent)

    def _await_idle(self) -> None:
        if self._closes is not None:
            self._closes.cancel()
        self._closes = threading.Timer(IDLE_S, self.close)
        self._closes.daemon = True
        self._closes.start()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


class _Silent(Exception):
    """No answer came, or none that can be used. `is_of_record`: because of the record, and not of the imports."""

    def __init__(self, why: str, is_of_record: bool) -> None:
        super().__init__(why)
        self.is_of_record = is_of_record


class _Child:
    """The process that decodes."""

    def __init__(self, folders: list[str]) -> None:
        self._folders = folders
        self._made: dict[tuple[str, str], str] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: PT018  for the type checker
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)

    def why_not(self, serde: str, part: str) -> str:
        """Have it make the serde, once; why that cannot be made, or "". Raises _Silent."""
        if (serde, part) not in self._made:
            request = {"serde": serde, "part": part, "folders": self._folders}
            self._made[serde, part] = str(self._ask(request, START_S, NOT_IMPORTED, is_of_record=False).get("problem", ""))
        return self._made[serde, part]

    def field(self, serde: str, part: str, data: bytes, limit: int, find: str) -> dict[str, Any]:
        """Raises _Silent."""
        request = {"serde": serde, "part": part, "data": base64.b64encode(data).decode(), "limit": limit, "find": find}
        answer = self._ask(request, DECODE_S, SLOW, is_of_record=True)
        text, problem, is_cut, is_found = answer.get("text"), answer.get("problem"), answer.get("is_cut"), answer.get("is_found", False)
        if not (isinstance(text, str) and isinstance(problem, str) and isinstance(is_cut, bool) and isinstance(is_found, bool)):
            raise _Silent(DIED, is_of_record=True)
        return {"text": text[:limit], "bytes": len(data), "is_cut": is_cut, "problem": problem[:300]} | ({"is_found": is_found} if find else {})

    def _ask(self, request: dict[str, Any], limit_s: float, slow: str, *, is_of_record: bool) -> dict[str, Any]:
        line, got, until = json.dumps(request).encode() + b"\n", bytearray(), time.monotonic() + limit_s
        with selectors.DefaultSelector() as ready:
            ready.register(self._from, selectors.EVENT_READ)
            ready.register(self._to, selectors.EVENT_WRITE)
            while not got.endswith(b"\n"):
                events = ready.select(max(0.0, until - time.monotonic()))
                if not events or len(got) > MAX_ANSWER:
                    raise _Silent(slow, is_of_record)
                try:
                    for key, _ in events:
                        if key.fd == self._from:
                            piece = os.read(self._from, 1 << 16)
                            if not piece:
                                raise BrokenPipeError
                            got += piece
                        elif line:
                            line = line[os.write(self._to, line) :]
                        else:
                            ready.unregister(self._to)
                except BrokenPipeError:
                    raise _Silent(DIED if is_of_record else slow, is_of_record) from None
        try:
            answer = json.loads(got)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise _Silent(DIED if is_of_record else slow, is_of_record)
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


# -- in the process ----------------------------------------------------------------------------------------------------------------------


def main() -> None:
    """Answer until nobody can ask any more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the user's code prints is no answer
    serve(sys.stdin.buffer, answers)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    made: dict[tuple[str, str], Any] = {}
    for line in requests:
        request = json.loads(line)
        signal.alarm(int(START_S) if "folders" in request else ALARM_S)
        place = request["serde"], request["part"]
        if "folders" in request:
            answer: dict[str, Any] = {}
            try:
                found = serde_named(place[0], [Path(folder) for folder in request["folders"]])
                made[place] = as_key(found) if place[1] == KEY else found
            except SamzapyError as error:
                answer = {"problem": error.message}
        else:
            data = base64.b64decode(request["data"])
            answer = _field(made[place], data, request["limit"], request["find"])
        signal.alarm(0)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _field(serde: Any, data: bytes, limit: int, find: str) -> dict[str, Any]:
    try:
        return field(read(serde, data), data, limit, find)
    except Exception as error:  # noqa: BLE001  whatever a serde, or the repr of what it gave, raises
        return field(Undecoded(data, f"{type(error).__name__}: {error}"), data, limit, find)


if __name__ == "__main__":
    main()
