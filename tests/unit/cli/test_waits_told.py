"""What a command that waits says of what it waits for: each reason once."""

from __future__ import annotations

from typing import Any

from samzapy.cli.change import new_waits


def status(reason: str, *moves: tuple[str, str]) -> dict[str, Any]:
    return {"moves": [{"task": task, "why": why} for task, why in moves], "containers": [{"id": 0, "reason": reason}, {"id": 1, "reason": ""}]}


def test_a_reason_is_told_again_only_if_its_words_are_others() -> None:
    told: dict[str, str] = {}
    seen = [
        list(new_waits(status(reason, ("Partition 2", "warm: 70 records to copy")), told))
        for reason in ("processed again, 10 at a time, for 299 s more", "processed again, 5 at a time, for 298 s more", "restoring counts, 12 s left", "")
    ]
    assert [
        ["Partition 2: warm", "container 0: processed again, 10 at a time, for 299 s more"], [], ["container 0: restoring counts, 12 s left"], [],
    ] == seen  # fmt: skip
