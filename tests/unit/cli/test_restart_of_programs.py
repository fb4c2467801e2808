"""`samzapy restart` of a program: one that reads or keeps something else than the one that runs is refused before any container is restarted."""

from __future__ import annotations

from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.cli.change import refuse_other_program
from samzapy.config.document import settings_from_document
from samzapy.streams import App
from samzapy.streams.expand import sections

KAFKA = {"bootstrap.servers": "x:1"}


def status(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {"tasks": list(tasks)}


def running(stores: list[str], *partitions: str, state: str = "RUNNING") -> dict[str, Any]:
    return {"state": state, "stores": {name: {} for name in stores}, "partitions": [f"kafka.{partition}" for partition in partitions]}


def check(found: dict[str, Any]) -> None:
    app = App()
    app.stream("a.b", key=str, value=int).count("n")
    refuse_other_program(settings_from_document({"job": "j", "app": "m:app", "kafka": KAFKA, **sections(app.graph, {}, {}).to_json()}, {}), found)


def test_the_same_program_may_be_restarted() -> None:
    check(status(running(["n"], "a.b.0"), running(["n"], "a.b.1")))
    check(status(running([], state="WAITING")))


@pytest.mark.parametrize(
    ("stores", "partition", "said"),
    [(["n", "old"], "a.b.0", "the program has the stores n, the running one has n, old"), (["n"], "c.0", "has the inputs a.b, the running one has c")],
)
def test_another_one_is_refused(stores: list[str], partition: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        check(status(running(stores, partition)))


def test_of_a_task_nothing_is_asked() -> None:
    settings = settings_from_document({"job": "j", "task": "m:T", "kafka": KAFKA, "inputs": [{"topic": "t"}]}, {})
    refuse_other_program(settings, status(running(["x"], "y.0")))
