"""Which dead letters are meant, and what a replay or a discard of them would do: the same for `samzapy dlq` and for the page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from samzapy.api.errors import ConfigurationError, SamzapyError, TopicMissing
from samzapy.config.schema import Settings
from samzapy.model.dead_letter import Origin
from samzapy.ops.dead_letters import DeadLetters
from samzapy.ops.letters import Entry, Found
from samzapy.ops.letters_again import standing_now
from samzapy.ops.newer_records import newer_in
from samzapy.ops.prepare_topics import tasks_of
from samzapy.ops.unknown_records import unknown_topics
from samzapy.ports import Clock, Log
from samzapy.wiring.job_topics import JobTopics


@dataclass(frozen=True, slots=True)
class Filter:
    """Which dead letters are meant; None: whichever."""

    task: str | None = None
    topic: str | None = None
    error: str | None = None
    since_ms: int | None = None

    @property
    def is_any(self) -> bool:
        """Whether it chooses at all."""
        return any(part is not None for part in (self.task, self.topic, self.error, self.since_ms))

    def takes(self, entry: Entry) -> bool:
        letter = entry.letter
        return (
            self.task in (None, letter.task)
            and self.topic in (None, letter.origin.topic)
            and (self.error is None or self.error in letter.error)
            and (self.since_ms is None or letter.time_ms >= self.since_ms)
        )


def check_choice(which: Sequence[str] | None, everything: bool, chosen: Filter, doing: str) -> None:
    """That dead letters are chosen in one way.

    Raises:
        ConfigurationError: in none, or in several.
    """
    if bool(which) + everything + chosen.is_any != 1:
        raise ConfigurationError(
            f"give either --all, or the records to {doing}, or options that select them.", "`samzapy dlq list JOB.yaml` shows their numbers."
        )


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay of some dead letters would do.

    Attributes:
        wanted: their records; None: of all that can be sent back.
        waiting: those that it would send back.
        named: those that were chosen.
        shortened: records of which the dead letter is shortened, so that it is not sent back.
        sent_before: those of them that stay, because their record was sent back before, as another dead letter; only if they were not named.
        passed_by: why others that were chosen, but not by name, would not be sent; one each.
        new_time: which get the current time, by why.
        late: what windows may do with those that keep their time; "" if the program has no event time for them.
    """

    wanted: list[Origin] | None
    waiting: Sequence[Entry]
    named: Sequence[Entry]
    shortened: Sequence[Origin]
    sent_before: Sequence[Entry]
    passed_by: Sequence[SamzapyError]
    new_time: Mapping[str, Sequence[Origin]]
    late: str

    @property
    def done_before(self) -> list[Entry]:
        """Those that were chosen by name and dealt with before."""
        return [] if self.wanted is None else [entry for entry in self.named if not entry.is_waiting]


def replay_of(letters: DeadLetters, found: Found, which: Sequence[str] | None, chosen: Filter) -> Replay:
    """What would be sent back. Raises as `DeadLetters.waiting`."""
    wanted = None if not which else [e.letter.origin for text in which for e in found.named(text)]
    if wanted is None and chosen.is_any:  # of those that can be sent, the chosen ones
        wanted = [e.letter.origin for e in letters.waiting(found, None) if chosen.takes(e)]
    named = found.entries if wanted is None else found.of(wanted)
    shortened = list(dict.fromkeys(e.letter.origin for e in found.shortened(wanted if which else None) if chosen.takes(e)))
    sent_before = [] if which else [e for e in found.sent_before() if chosen.takes(e)]
    passed_by = [] if which else letters.passed_by(found, chosen.takes)
    waiting = letters.waiting(found, wanted)
    return Replay(wanted, waiting, named, shortened, sent_before, passed_by, letters.with_new_time(waiting), _late(letters.timed, waiting))


def _late(timed: Collection[str], waiting: Sequence[Entry]) -> str:
    origins = {e.letter.origin for e in waiting if e.letter.origin.topic in timed}
    if not origins:
        return ""
    count = f"{len(origins)} of the records {'goes' if len(origins) == 1 else 'go'}"
    return (
        f"{count} to a topic with event time. A window that no longer takes such a record drops it as too late: `samzapy status JOB.yaml` then counts the record "
        "in the column TOO LATE, and the program can take it from the window's `.late`"
    )


def discard_of(found: Found, which: Sequence[str] | None, chosen: Filter) -> list[Entry]:
    """What would be discarded.

    Raises:
        ConfigurationError: there is no such dead letter.
    """
    entries = [e for text in which for e in found.named(text)] if which else [e for e in found.entries if chosen.takes(e)]
    return [e for e in entries if e.is_waiting]


def by_kind(errors: Sequence[SamzapyError]) -> list[list[SamzapyError]]:
    """Errors of a kind together."""
    kinds: dict[type[SamzapyError], list[SamzapyError]] = {}
    for error in errors:
        kinds.setdefault(type(error), []).append(error)
    return list(kinds.values())


def opened(
    settings: Settings, log: Log, clock: Clock, to_all_tasks: bool = False, may_have_new_time: bool = False, limit_bytes: int = 0, over_newer: bool = False
) -> DeadLetters:
    """A job's dead letters, to be sent back. Arguments as of `DeadLetters`; `to_all_tasks`: also what some tasks would process again; `over_newer`: also
    what would replace a newer record of its key."""
    names = JobTopics.of(settings)
    readers = {} if to_all_tasks else readers_of(settings, log)
    letters = DeadLetters(names.job, names.read, log, clock, readers, may_have_new_time, limit_bytes)
    letters.timed = frozenset() if settings.stages is None else frozenset(topic for topics in settings.stages.timed for topic in topics)
    letters.not_read = unknown_topics(settings, log, clock)
    if not over_newer:
        letters.newer = newer_in({i.topic for i in settings.inputs if i.bootstrap}, log, clock)
    letters.standing = lambda: standing_now(settings, log, clock)
    return letters


def readers_of(settings: Settings, log: Log) -> dict[str, int]:
    """By broadcast input, how many tasks read each of its records."""
    names = JobTopics.of(settings)
    if not names.broadcast:
        return {}
    with log.admin() as admin:
        facts = admin.topics(names.decide_tasks)
    missing = [topic for topic in names.inputs if topic not in facts]
    if missing:
        raise TopicMissing(f"input topic {', '.join(missing)} does not exist, so the number of tasks is not known.", "Create it.")
    return dict.fromkeys(names.broadcast, len(tasks_of(settings, facts)))
