"""Page views find their users: the bootstrap stream first, tombstones delete, and a crash changes nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from jobs.page_views import direct_join, page_views, users
from samzapy.testing import Harness

JOB = Path(__file__).parents[2] / "config" / "page-views.yaml"
OUT = "page-views-enriched"
TASKS = 2
ADA = {"name": "Ada", "country": "NO", "level": 3}


def test_all_users_are_read_before_the_first_view() -> None:
    with Harness(JOB) as h:
        h.send("page-views", value={"page": "/"}, key="u1", partition=0)
        for number in range(50):
            h.send("users", value={**ADA, "level": number}, key=f"u{number}", partition=0)
        h.run()
        assert [("u1", {"page": "/", "user_id": "u1", "known_user": True, "user": {**ADA, "level": 1}})] == h.output(OUT)


def test_an_unknown_user_is_marked() -> None:
    with Harness(JOB) as h:
        h.send("page-views", value={"page": "/"}, key="nobody", partition=0)
        h.send("page-views", value={"page": "/help"}, key=None, partition=0)
        h.run()
        unknown = {"known_user": False, "user": None}
        assert [
            ("nobody", {"page": "/", "user_id": "nobody", **unknown}),
            (None, {"page": "/help", "user_id": None, **unknown}),
        ] == sorted(h.output(OUT), key=lambda record: record[1]["page"])
        assert 2 == h.metric("unknown_users", task=0)


@pytest.mark.parametrize("what", ["nothing", "crash", "crash without state", "restart"])
def test_a_deleted_user_stays_deleted(what: str) -> None:
    with Harness(JOB) as h:
        h.send("users", value=ADA, key="u1", partition=0)
        h.send("users", value=ADA, key="u2", partition=0)
        h.run()
        h.send("users", value=None, key="u1", partition=0)
        h.run()
        happen(h, what)
        h.send("page-views", value={"page": "/"}, key="u1", partition=0)
        h.send("page-views", value={"page": "/"}, key="u2", partition=0)
        h.run()
        assert {("u1", False), ("u2", True)} == {(key, value["known_user"]) for key, value in h.output(OUT)}
        assert {"u2": ADA} == h.store("users", task=0)


def test_malformed_records_are_counted_and_passed_by() -> None:
    with Harness(JOB) as h:
        h.send("users", value="Ada", key="u1", partition=0)
        h.send("users", value=ADA, key=None, partition=0)
        h.send("page-views", value=["/"], key="u1", partition=0)
        h.send("page-views", value=None, key="u1", partition=0)
        h.run()
        assert [] == h.output(OUT)
        assert {} == h.store("users", task=0)
        assert 4 == h.metric("malformed", task=0)


@pytest.mark.parametrize("between", ["nothing", "crash", "crash without state", "restart"])
def test_the_join_agrees_with_a_direct_one(between: str) -> None:
    expected = Counter((key, freeze(value)) for key, value in direct_join(users(60, seed=2), page_views(300, 60, seed=2)))
    with Harness(JOB, tasks=TASKS) as h:
        for key, profile in users(60, seed=2):
            h.send_raw("users", profile, key, partition=place(key))
        views = list(page_views(300, 60, seed=2))
        for number, (view_key, view) in enumerate(views):
            if number == len(views) // 2:
                h.run()
                happen(h, between)
            h.send_raw("page-views", view, view_key, partition=place(view_key))
        h.run()
        assert expected == Counter((key, freeze(value)) for key, value in h.output(OUT))
        assert any(not value["known_user"] for _, value in h.output(OUT))


def happen(h: Harness, what: str) -> None:
    if what == "restart":
        h.restart()
    elif what.startswith("crash"):
        h.crash(keep_state=what == "crash")


def place(key: bytes) -> int:
    return sum(key) % TASKS


def freeze(value: dict[str, Any]) -> str:
    return repr(sorted(value.items(), key=lambda item: item[0]))
