"""A table of a topic has this topic's entries and no others: neither those of the topic that it was made of before, nor of one that was deleted."""

from __future__ import annotations

from typing import Any

import pytest

from samzapy.api.errors import OffsetOutOfRange, StateMismatch, StateRefused
from samzapy.model.checkpoint import CHECKPOINT_KEY, checkpoint_from_bytes
from samzapy.model.offsets import TopicPartition
from samzapy.plan.forgetting import without_store
from samzapy.ports import TopicSpec
from samzapy.streams import App
from samzapy.testing import Harness

CHANGELOG, CHECKPOINTS = "test-1-users-changelog", "__samza_checkpoint_test_1"
REMEDY = r"another name in the program \(`store=…`\).* `samzapy state drop JOB.yaml users`"


def program(broadcast: bool = False, store: str = "users") -> App:
    app = App()
    users = app.table("users", key=str, value=str, broadcast=broadcast, store=store)
    app.stream("in", key=str, value=str).lookup(users).map(lambda both: str(both[1]), value=str).to("out")
    return app


def streams(topic: str, **more: str) -> dict[str, Any]:
    return {"users": {"topic": topic, **more}}


def begun(broadcast: bool = False) -> Harness:
    """A job whose table has a and b."""
    h = Harness(program(broadcast), streams=streams("v1"))
    for key in ("a", "b"):
        h.send("v1", f"old {key}", key=key)
    h.run()
    return h


def make_again(h: Harness, topic: str) -> None:
    """The topic is another one, and has only a."""
    h.stop()
    h.cluster.delete(topic)
    h.cluster.create(TopicSpec(topic, 1))
    h.send(topic, "new a", key="a")


def drop(h: Harness) -> None:
    """What `samzapy state drop` does."""
    newest = [m.value() or b"" for m in h.records(CHECKPOINTS) if m.key() == CHECKPOINT_KEY][-1]
    h.log.plain_producer("drop").send(CHECKPOINTS, without_store(checkpoint_from_bytes(newest), "users").to_bytes(), CHECKPOINT_KEY, 0)
    h.cluster.delete(CHANGELOG)


def looked_up(h: Harness) -> list[str]:
    for key in ("a", "b"):
        h.send("in", "x", key=key)
    h.run()
    return [value for _, value in h.output("out")][-2:]


def test_a_table_whose_topic_is_another_in_the_job_file_is_refused_with_a_way_out() -> None:
    with begun() as h:
        with pytest.raises(StateMismatch, match=rf"table 'users' has entries of the topic 'v1'; .* 'v2' under `streams:`.*{REMEDY}"):
            h.restart(program(), streams=streams("v2"))
        drop(h)
        h.restart(program(store="people"), streams=streams("v2"))
        h.send("v2", "new a", key="a")
        h.run()
        assert ["new a", "None"] == looked_up(h)


@pytest.mark.parametrize("policy", ["fail", "earliest"])
def test_a_table_whose_topic_was_made_again_is_refused_with_a_way_out(policy: str) -> None:
    with begun() as h:
        make_again(h, "v1")
        with pytest.raises(StateRefused, match=rf"v1\[0\]: the topic was deleted .* table 'users' has entries of the old topic.*{REMEDY}"):
            h.restart(program(), streams=streams("v1", on_out_of_range=policy))
        drop(h)
        h.restart(program(store="people"), streams=streams("v1", on_out_of_range=policy))
        assert ["new a", "None"] == looked_up(h)


def test_a_table_whose_topic_lost_records_unread_is_filled_again_once_it_was_dropped() -> None:
    """A tester's case: the drop that the message names was not enough."""
    with begun() as h:
        h.stop()
        h.send("v1", "newer a", key="a")
        h.cluster.delete_records(TopicPartition("v1", 0), 3)
        h.send("v1", "newest b", key="b")
        way = "table 'users' may have entries that .*`samzapy state drop JOB.yaml users --execute`"
        with pytest.raises(OffsetOutOfRange, match=rf"v1\[0\]: .*records were removed unread.*{way}"):
            h.restart(program(), streams=streams("v1"))
        drop(h)
        h.restart(program(), streams=streams("v1"))
        assert ["None", "newest b"] == looked_up(h), "what the topic has now, and nothing else"


def test_a_table_that_is_filled_at_each_start_goes_on_as_the_policy_says() -> None:
    with begun(broadcast=True) as h:
        h.restart(program(broadcast=True), streams=streams("v2"))
        h.restart(program(broadcast=True), streams=streams("v1", on_out_of_range="earliest"))
        make_again(h, "v1")
        h.restart(program(broadcast=True), streams=streams("v1", on_out_of_range="earliest"))
        assert ["new a", "None"] == looked_up(h)
