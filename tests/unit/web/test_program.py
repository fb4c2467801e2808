"""A program of streams on the page: its operators as they are drawn, and what they counted in all tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from samzapy.web.about import about_of
from samzapy.web.frames import View, make_frame
from samzapy.web.graph import graph_of
from samzapy.wiring.job_file import load_program
from tests.page.scenes import Streams
from tests.page.staged import live

ROOT = Path(__file__).parents[3]


def test_the_operators_of_a_job_file_are_drawn_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"job": "pages", "app": "jobs.wikipedia_pages:app", "kafka": {"bootstrap.servers": "h:1"}}))
    about = about_of(load_program([file], environ={}))

    kinds = [(o["kind"], o["name"], o["keeps"]) for o in about["operators"]]
    assert [("stream", "wikipedia-raw", False), ("filter_map", "parse", False), ("filter", "of a page", False), ("aggregate", "pages", True)] == kinds[:4]
    known = {o["id"] for o in about["operators"]}
    assert all(set(o["inputs"]) <= known for o in about["operators"])
    assert all(o["where"].startswith("wikipedia_pages.py:") for o in about["operators"])


def test_counts_are_summed_over_tasks_and_every_operator_of_the_graph_has_some() -> None:
    scene = Streams()
    scene.step(2.0)
    facts = live(scene)
    counts = make_frame(facts, View())["operators"]
    status = facts.status()
    operators = graph_of(facts.about(), status)["operators"]

    assert {o["id"] for o in operators} == set(counts)
    assert sum(task["operators"]["lands"]["in"] for task in status["tasks"]) == counts["lands"][0]
    assert -1 == next(c for name, c in counts.items() if name.endswith("-to"))[1], "what is sent to a topic is given on to nobody"
    after = {o["id"]: o["inputs"] for o in operators}
    (reader,) = [o for o in operators if o["kind"] == "read"]
    assert [("key_by", "by-land")] == [(o["kind"], o["name"]) for o in operators if o["id"] in after[reader["id"]]]
    scene.close()
