"""What a command would delete and may not: it is refused before it has changed anything."""

from __future__ import annotations

from collections.abc import Collection

from samzapy.cli.common import say
from samzapy.model.acls import DELETE
from samzapy.ops.acls import not_allowed
from samzapy.ports import Log


def refuse_undeletable(topics: Collection[str], what: str, log: Log, execute: bool) -> None:
    """Without `execute` it is only said. `what`: the command, at the beginning of a sentence.

    Raises:
        NotAuthorized: this user may not delete one of these topics. LogError: Kafka could not be asked.
    """
    refusal = not_allowed(DELETE, topics, what, log) if topics else None
    if refusal is None:
        return
    if execute:
        raise refusal
    say(f"--execute would be refused: {refusal.message} {refusal.remedy}")
