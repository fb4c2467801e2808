"""What a command that waits says of what it waits for: each reason once."""

from __future__ import annotations

from typing import Any

import pytest

import samzapy.cli.change
from samzapy.cli.change import Running, new_waits


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


def test_who_waits_asks_with_the_token_so_that_reasons_are_told_in_full(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def answer(method: str, url: str, token: str | None = None, content: Any = None, timeout_s: float = 0.0) -> dict[str, Any]:
        asked.append((method, url, token))
        return status("SZ200: boom" if len(asked) == 1 else "")

    asked: list[tuple[str, str, str | None]] = []
    monkeypatch.setattr(samzapy.cli.change, "http_json", answer)
    monkeypatch.setattr(samzapy.cli.change, "LOOK_S", 0.0)
    job: Any = None
    running = Running(job, {"coordinator": "http://127.0.0.1:1"}, "secret")
    assert status("") == running.follow("waiting", 1.0, float("inf"), lambda found: len(asked) == 2)
    assert 2 * [("GET", "http://127.0.0.1:1/api/v1/status", "secret")] == asked
    assert "container 0: SZ200: boom" in capsys.readouterr().err
