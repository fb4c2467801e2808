"""Where a dead letter says that its record came from: anyone who may write to the dead-letter topic can have invented it."""

from __future__ import annotations

from collections.abc import Collection

from samzapy.api.errors import ConfigurationError, SamzapyError, TopicMissing
from samzapy.model.dead_letter import WINDOW
from samzapy.model.marks import MARKS_KEY
from samzapy.ops.letters import Entry
from samzapy.ports import TopicFacts


def refused_by_place(entry: Entry, inputs: Collection[str], facts: TopicFacts | None, not_read: Collection[str]) -> SamzapyError | None:
    """Why it cannot be sent there. `inputs`: what the job reads; `facts`: of that topic; `not_read`: as of `DeadLetters`."""
    origin = entry.letter.origin
    if origin.topic not in inputs:
        is_pane = WINDOW in dict(entry.letter.headers)
        what = f"the dead letter of {origin}: no task of this job reads {origin.topic}, and a replay sends records only to topics that this job reads."
        pane = f"the dead letter {entry.number} is a window's result, not a record: the window has gone on without it, and it cannot be sent back."
        look = f"Look at it: `samzapy dlq show JOB.yaml {entry.number}`"
        discard = f"discard it: `samzapy dlq discard JOB.yaml {entry.number} --execute`."
        return ConfigurationError(*((pane, f"{look}; {discard}") if is_pane else (what, f"{look}. Leave this dead letter out of the replay.")))
    if facts is None or facts.partitions <= origin.partition:
        return TopicMissing(f"the dead letter of {origin}: that partition no longer exists.", "Leave this dead letter out of the replay.")
    if origin.topic in not_read:
        return ConfigurationError(
            f"the dead letter of {origin}: no checkpoint of this job knows internal topic {origin.topic}, so the next run begins by removing all records there.",
            "Start the job first, then send it back.",
        )
    if entry.letter.key == MARKS_KEY:
        return ConfigurationError(
            f"the dead letter of {origin} has a key that only samzapy writes: it is not a record of this job.",
            f"Look at it: `samzapy dlq show JOB.yaml {entry.number}`; discard it: `samzapy dlq discard JOB.yaml {entry.number} --execute`.",
        )
    return None
