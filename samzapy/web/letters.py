"""Dead letters for the page and for programs: the newest of them, one with its record, and the way back; the code is that of `samzapy dlq`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from samzapy.api.errors import ClusterUnreachable
from samzapy.config.schema import Settings
from samzapy.config.secrets import without_secrets
from samzapy.model.dead_letter import Origin
from samzapy.model.offsets import TopicPartition
from samzapy.ops.dead_letters import DeadLetters
from samzapy.ops.letter_choice import Filter, Replay, by_kind, check_choice, discard_of, opened, replay_of
from samzapy.ops.letters import Entry, Found, letter_of, recent
from samzapy.ops.shown import BYTES, serdes_by_topic, shown_headers, text_of
from samzapy.ports import Clock, Log
from samzapy.printable import printable
from samzapy.readers import read_ranges
from samzapy.web.record_fields import RecordFields
from samzapy.web.route_errors import NotFound
from samzapy.wiring.job_topics import job_of
from samzapy.wiring.serdes import KEY, VALUE

FRESH_S = 2.0  # a list is read again after so long
WAIT_S = 20.0  # for another request that reads or sends
MAX_CHANGE_BYTES = 64 << 20
MAX_TEXT, MAX_SHORT, MAX_ERROR, MAX_STACK = 16_000, 200, 300, 8_000
MAX_HEADERS, MAX_NAMED, MAX_GROUPS = 100, 100, 50
Note = Callable[[str, str, str], None]


class Letters:
    """A job's dead letters. `note`: is told of each change: what, by whom, with which effect."""

    def __init__(self, settings: Settings, fields: RecordFields, log: Log, clock: Clock, note: Note) -> None:
        self._settings, self._log, self._clock, self._note = settings, log, clock, note
        self._names = job_of(settings)
        self._named, self._fields = serdes_by_topic(settings), fields
        self._lock = threading.Lock()
        self._read_at, self._found, self._is_all = float("-inf"), Found(()), True

    # -- looking -------------------------------------------------------------------------------------------------------------------------

    def rows(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """The newest first, those that the query chooses."""
        with self._alone():
            found, is_all = self._recent()
        chosen = Filter(query["task"] or None, query["topic"] or None, query["error"] or None)
        text = query["find"].casefold()
        entries = [e for e in found.entries if chosen.takes(e) and (e.is_waiting or query["state"] == "all")]
        shown = [e for e in reversed(entries) if not text or text in self._words(e)]
        end = query["offset"] + query["limit"]
        return {
            "topic": self._names.dead_letter_topic, "items": [self._row(e) for e in shown[query["offset"] : end]], "found": len(shown),
            "next": str(end) if end < len(shown) else None, "waiting": sum(e.is_waiting for e in found.entries), "all": len(found.entries),
            "groups": _groups(found.entries), "is_whole": is_all, "strangers": found.strangers,
        }  # fmt: skip

    def one(self, which: str) -> dict[str, Any]:
        """A dead letter with its whole record. Of a record that is named, the newest one.

        Raises:
            NotFound: there is none.
        """
        with self._alone():
            found, _ = self._recent()
            entry = next((e for e in reversed(found.entries) if which in (e.number, str(e.letter.origin))), None)
            place = entry.place if entry is not None else self._place(which)
            letter = None if place is None else self._letter(place)
        if letter is None or place is None:
            raise NotFound(f"there is no dead letter {which[:100]!r}")
        topic = letter.origin.topic
        key, value = self._named.get(topic, (BYTES, BYTES))
        whole = Entry(place, letter, entry.replayed_ms if entry else None, entry.discarded_ms if entry else None)
        return {
            **self._row(whole), "is_known": entry is not None,
            "key": self._fields.field(key, topic, KEY, letter.key, MAX_TEXT),
            "value": self._fields.field(value, topic, VALUE, letter.value, MAX_TEXT),
            "headers": shown_headers(letter.headers[:MAX_HEADERS], MAX_SHORT),
            "stack": without_secrets(letter.stack)[-MAX_STACK:], "shortened": letter.truncated,
        }  # fmt: skip

    # -- changing ------------------------------------------------------------------------------------------------------------------------

    def replay(self, body: Any, by: str) -> dict[str, Any]:
        """Send records back, each at most once; with `dry_run` only say what that would do."""
        chosen = self._chosen(body, "replay")
        with self._alone():
            letters = self._letters(body.to_all_tasks, body.new_time)
            plan = replay_of(letters, letters.read(), body.which, chosen)
            entries = list(plan.waiting)
            if not body.dry_run and entries:
                entries = letters.replay(plan.wanted, lambda done, of: None)
                self._read_at = float("-inf")
        return self._done("replay", entries, _replay_effect(entries, plan), _why_not(plan), by, body.dry_run)

    def discard(self, body: Any, by: str) -> dict[str, Any]:
        """Mark dead letters as not needed; with `dry_run` only say how many."""
        chosen = self._chosen(body, "discard")
        with self._alone():
            letters = DeadLetters(self._names, (), self._log, self._clock, limit_bytes=MAX_CHANGE_BYTES)
            entries = discard_of(letters.read(), body.which, chosen)
            if not body.dry_run and entries:
                entries = letters.discard({e.place for e in entries}, lambda done, of: None)
                self._read_at = float("-inf")
        n = len(entries)
        effect = f"{n} dead letter{'s are' if n != 1 else ' is'} marked as not needed: no replay sends {'them' if n != 1 else 'it'} back" if n else NOTHING
        return self._done("discard", entries, effect, [], by, body.dry_run)

    def _done(self, what: str, entries: Sequence[Entry], effect: str, why_not: list[str], by: str, dry_run: bool) -> dict[str, Any]:
        if entries and not dry_run:
            self._note(f"dead letters: {what}", by, effect)
        origins = list(dict.fromkeys(str(e.letter.origin) for e in entries))
        return {"effect": effect, "count": len(origins) if what == "replay" else len(entries), "origins": origins[:MAX_NAMED], "not_sent": why_not}

    # -- inside --------------------------------------------------------------------------------------------------------------------------

    @staticmethod
    def _chosen(body: Any, doing: str) -> Filter:
        chosen = Filter(body.task, body.topic, body.error)
        check_choice(body.which, body.all, chosen, doing)
        return chosen

    def _letters(self, to_all_tasks: bool, new_time: bool) -> DeadLetters:
        return opened(self._settings, self._log, self._clock, to_all_tasks, new_time, MAX_CHANGE_BYTES)

    @contextmanager
    def _alone(self) -> Any:
        if not self._lock.acquire(timeout=WAIT_S):
            raise ClusterUnreachable("another request is reading or sending the dead letters.", "Ask again in some seconds.")
        try:
            yield
        finally:
            self._lock.release()

    def _recent(self) -> tuple[Found, bool]:
        if self._clock.monotonic() - self._read_at >= FRESH_S:
            partitions = self._partitions()
            if partitions:
                with self._log.restore_consumer("dead-letters") as consumer:
                    self._found, self._is_all = recent(consumer, self._names.dead_letter_topic, partitions, self._clock)
            else:
                self._found, self._is_all = Found(()), True
            self._read_at = self._clock.monotonic()
        return self._found, self._is_all

    def _partitions(self) -> int:
        topic = self._names.dead_letter_topic
        with self._log.admin() as admin:
            facts = admin.topics([topic]).get(topic)
        return facts.partitions if facts else 0

    def _place(self, which: str) -> Origin | None:
        partition, _, offset = which.partition(".")
        if not (partition.isdecimal() and offset.isdecimal() and which.isascii() and len(which) < 30):
            return None
        return Origin(self._names.dead_letter_topic, int(partition), int(offset)) if int(partition) < self._partitions() else None

    def _letter(self, place: Origin) -> Any:
        partition = TopicPartition(place.topic, place.partition)
        with self._log.restore_consumer("dead-letters") as consumer:
            bounds = consumer.bounds(partition)
            if not bounds.start <= place.offset < bounds.end:
                return None
            for batch in read_ranges(consumer, {partition: (place.offset, place.offset + 1)}, self._clock):
                for message in batch:
                    return letter_of(message)
        return None

    def _words(self, entry: Entry) -> str:
        letter = entry.letter
        parts = (letter.task, str(letter.origin), letter.error, text_of(letter.key or b""), text_of(letter.value or b""))
        return " ".join(parts).casefold()

    @staticmethod
    def _row(entry: Entry) -> dict[str, Any]:
        letter = entry.letter
        return {
            "number": entry.number, "task": letter.task, "origin": str(letter.origin), "at_ms": letter.time_ms, "timestamp_ms": letter.timestamp_ms,
            "error": without_secrets(printable(letter.error))[:MAX_ERROR], "attempts": letter.attempts, "is_shortened": bool(letter.truncated),
            "replayed_ms": entry.replayed_ms, "discarded_ms": entry.discarded_ms,
            "begins": without_secrets(text_of(letter.value or b""))[:MAX_SHORT],
        }  # fmt: skip


NOTHING = "nothing: all of them were sent back or discarded before"


def _replay_effect(entries: Sequence[Entry], plan: Replay) -> str:
    origins = list(dict.fromkeys(e.letter.origin for e in entries))
    if not origins:
        return NOTHING
    topics = ", ".join(sorted({origin.topic for origin in origins}))
    times = f"; {sum(map(len, plan.new_time.values()))} of them with the current time" if plan.new_time else ""
    late = f". {plan.late}" if plan.late else ""
    return f"{len(origins)} record{'s are' if len(origins) != 1 else ' is'} sent back to {topics}, each to its partition of before, at most once{times}{late}"


def _why_not(plan: Replay) -> list[str]:
    """Why some that were chosen are not sent."""
    why = [f"{origin}: its dead letter is shortened; the whole record is there, as long as the topic keeps it" for origin in plan.shortened[:MAX_NAMED]]
    done = [f"{e.letter.origin} was {'sent back' if e.replayed_ms is not None else 'discarded'} before" for e in plan.done_before[:MAX_NAMED]]
    again = [f"{e.number}: its record, {e.letter.origin}, was sent back before; select it to send it once more" for e in plan.sent_before[:MAX_NAMED]]
    passed_by = [f"{len(errors)} dead letters are not sent back; why the first is not: {without_secrets(str(errors[0]))}" for errors in by_kind(plan.passed_by)]
    return [*why, *done, *again, *passed_by]


def _groups(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """By the class of the error: how many, how many wait, when first and last."""
    groups: dict[str, dict[str, Any]] = {}
    for entry in entries:
        kind = without_secrets(printable(entry.letter.error.partition(":")[0]))[:MAX_SHORT]
        at_ms = entry.letter.time_ms
        group = groups.setdefault(kind, {"error": kind, "count": 0, "waiting": 0, "first_ms": at_ms, "last_ms": at_ms})
        group["count"] += 1
        group["waiting"] += entry.is_waiting
        group["last_ms"] = max(group["last_ms"], at_ms)
    return sorted(groups.values(), key=lambda group: -int(group["last_ms"]))[:MAX_GROUPS]


