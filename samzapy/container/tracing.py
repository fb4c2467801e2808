"""A trace of a task's next records, for whoever asks: key and value, how long its hook took, what it put and sent, what it raised.

While it is on, a traced record goes through the same loop as ever, alone instead of in a batch, and its hook is wrapped:
nothing that it does is done in another way. While it is off, one attribute is looked at for each batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from samzapy.api.errors import ConfigurationError
from samzapy.container.collector import Collector
from samzapy.container.failure import described, origin_of
from samzapy.container.spec import ContainerSpec
from samzapy.container.task_instance import TaskInput
from samzapy.model.key_partition import partition_of_key
from samzapy.ports import Message, Outgoing

MAX_RECORDS = 100
MAX_EFFECTS = 20  # puts, and sends, of a record that are told
MAX_TEXT = 300
Process = Callable[[list[Message], int, int], None]
Readers = Mapping[tuple[str, int], Sequence[TaskInput]]


class Tracing:
    """One trace at a time: asked for by one thread, made by the loop's.

    Attributes:
        is_on: the loop looks at this for each batch.
    """

    def __init__(self, spec: ContainerSpec, collector: Collector) -> None:
        self.is_on = False
        self._outputs = spec.outputs
        self._collector = collector
        self._task, self._left, self._until = "", 0, 0.0
        self._seen: list[dict[str, Any]] = []

    # -- who asks ------------------------------------------------------------------------------------------------------------------------

    def ask(self, task: str, records: int, seconds: float) -> None:
        """Trace the task's next records, for so long at most.

        Raises:
            ConfigurationError: a trace is on already.
        """
        if self.is_on:
            raise ConfigurationError(f"{self._task} of this container is being traced already.", "One task of a container is traced at a time.")
        self._task, self._left, self._until = task, min(records, MAX_RECORDS), time.monotonic() + seconds
        self._seen = []
        self.is_on = True

    def over(self) -> list[dict[str, Any]] | None:
        """The records, if it is over; None: it goes on."""
        if self.is_on and time.monotonic() < self._until:
            return None
        self.is_on = False
        return list(self._seen)

    # -- the loop ------------------------------------------------------------------------------------------------------------------------

    def around(self, process: Process, readers: Readers) -> Process:
        """The same as `process`; records that are to be traced come alone."""

        def traced(batch: list[Message], begin: int, end: int) -> None:
            for index in range(begin, end):
                task_input = self._reader(batch[index], readers)
                if task_input is not None:
                    if index > begin:
                        process(batch, begin, index)
                    with self._watched(task_input, batch[index]):
                        process(batch, index, index + 1)
                    begin = index + 1
            process(batch, begin, end)

        return traced

    def _reader(self, message: Message, readers: Readers) -> TaskInput | None:
        if not self.is_on:
            return None
        found = readers.get((message.topic(), message.partition()), ())
        return next((one for one in found if one.task.name == self._task and message.offset() >= one.resume_at), None)

    @contextmanager
    def _watched(self, task_input: TaskInput, message: Message) -> Iterator[None]:
        original, before = task_input.process, len(self._seen)
        told = {
            "record": str(origin_of(message)), "time_ms": message.timestamp()[1],
            "key": _decoded(task_input.decode_key, message.key()), "value": _decoded(task_input.decode_value, message.value()),
        }  # fmt: skip

        def watched(*arguments: Any) -> Any:
            pending, error, began = len(self._collector.pending), "", time.perf_counter()
            try:
                return original(*arguments)
            except BaseException as raised:
                error = described(raised)[:MAX_TEXT]
                raise
            finally:
                took = time.perf_counter() - began
                effects = self._effects(task_input, pending)
                self._seen.append({**told, "us": round(took * 1e6, 1), **effects, "error": error})

        task_input.process = watched
        try:
            yield
        finally:
            if task_input.process is watched:  # else its task has begun again meanwhile
                task_input.process = original
            if len(self._seen) == before:
                self._seen.append({**told, "us": None, "puts": [], "sent": [], "more": 0, "error": "it did not come to the hook: key or value cannot be decoded"})
            self._left -= 1
            if self._left <= 0 or time.monotonic() >= self._until or len(self._seen) >= 2 * MAX_RECORDS:
                self.is_on = False

    def _effects(self, task_input: TaskInput, pending: int) -> dict[str, Any]:
        """What the hook that has just returned put and sent."""
        puts: list[dict[str, str]] = []
        more = 0
        for store in task_input.stores:
            try:
                written = store.written(MAX_EFFECTS)
            except Exception as unknown:  # noqa: BLE001  looking must not become the record's failure
                puts.append({"store": store.name, "key": "?", "old": "?", "new": f"not known: {described(unknown)}"[:MAX_TEXT]})
                continue
            puts += [{"store": store.name, "key": shown(key), "old": shown(old), "new": shown(new)} for key, old, new in written]
            more += max(0, len(store.writes) - MAX_EFFECTS)
        sent = self._collector.pending[pending:]
        told = [self._sent(one) for one in sent[:MAX_EFFECTS]]
        return {"puts": puts[:MAX_EFFECTS], "sent": told, "more": more + max(0, len(puts) - MAX_EFFECTS) + max(0, len(sent) - MAX_EFFECTS)}

    def _sent(self, outgoing: Outgoing) -> dict[str, Any]:
        topic, value, key, partition, _, _ = outgoing
        output = self._outputs[topic]
        if partition < 0 and key is not None:
            partition = partition_of_key(key, output.partitions)
        to = {"topic": topic, "partition": partition if partition >= 0 else None}
        return {**to, "key": _decoded(output.key_serde.decode, key), "value": _decoded(output.value_serde.decode, value)}


def _decoded(decode: Callable[[bytes], Any], data: bytes | None) -> str:
    try:
        return shown(None if data is None else decode(data))
    except Exception:  # noqa: BLE001  whatever a serde raises: the bytes, then
        return shown(data)


def shown(value: Any) -> str:
    """A value as people read it: JSON where it is some, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        try:
            text = repr(value)
        except Exception as error:  # noqa: BLE001  a user's __repr__
            text = f"a {type(value).__name__} whose repr() raises {type(error).__name__}"
    text = text.encode("utf-8", "backslashreplace").decode()  # half of a surrogate pair has no place in the answer
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"
