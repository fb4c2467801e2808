"""What is in a dead-letter topic, as `samzapy dlq` names and chooses it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from samzapy.api.errors import ConfigurationError, shortened
from samzapy.model.dead_letter import DeadLetter, Origin


@dataclass(frozen=True, slots=True)
class Entry:
    """A dead letter and its position in the topic. `replayed_ms`, `discarded_ms`: when it was sent back, or discarded; None if it was not."""

    place: Origin
    letter: DeadLetter
    replayed_ms: int | None = None
    discarded_ms: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it was neither sent back nor discarded."""
        return self.replayed_ms is None and self.discarded_ms is None

    @property
    def number(self) -> str:
        """PARTITION.OFFSET in the dead-letter topic: it never names another dead letter."""
        return f"{self.place.partition}.{self.place.offset}"


@dataclass(frozen=True, slots=True)
class Found:
    """What is in a dead-letter topic: entries in the order of their times, and how many records there are that are no dead letters."""

    entries: Sequence[Entry]
    strangers: int = 0

    def named(self, text: str) -> list[Entry]:
        """The dead letter of this number, or those of the record that is named as TOPIC[PARTITION]@OFFSET.

        Raises:
            ConfigurationError: there is none.
        """
        found = [e for e in self.entries if text in (e.number, str(e.letter.origin))]
        if not found:
            raise ConfigurationError(
                f"there is no dead letter {shortened(text)}.",
                "`samzapy dlq list JOB.yaml` lists them; their numbers are PARTITION.OFFSET of the dead-letter topic.",
            )
        return found

    def shortened(self, origins: Iterable[Origin] | None) -> list[Entry]:
        """Those of these records, or (None) of all, that hold less than the record, so that they are not sent back. Raises as `of`."""
        return [e for e in (self.entries if origins is None else self.of(origins)) if e.letter.truncated]

    def of(self, origins: Iterable[Origin]) -> list[Entry]:
        """The entries of these records.

        Raises:
            ConfigurationError: there is none of one of them.
        """
        wanted = list(origins)
        missing = [str(o) for o in wanted if not any(e.letter.origin == o for e in self.entries)]
        if missing:
            raise ConfigurationError(f"there is no dead letter of {', '.join(missing)}.", "`samzapy dlq list JOB.yaml` lists them.")
        return [e for e in self.entries if e.letter.origin in wanted]
