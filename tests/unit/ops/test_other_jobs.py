"""Job test of id 1 and job test-1 of id 1: an internal topic, a changelog of theirs can have one name. The second is refused before it does anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError, NotAuthorized, StateRefused
from samzapy.cli.reset import _checkpoints, foreign_topics
from samzapy.config.document import settings_from_document
from samzapy.config.schema import Settings
from samzapy.model.checkpoint import CHECKPOINT_KEY
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import Ledger
from samzapy.ops.prepare_topics import checked_topics, create_topics, prepare_topics, what_run_refuses
from samzapy.plan.forgetting import topic_subject, without_input
from samzapy.ports import TopicSpec
from samzapy.readers import read_checkpoint
from samzapy.streams import App
from samzapy.streams.expand import sections
from samzapy.testing import Harness
from samzapy.testing.memory_log import MemoryConsumer, MemoryLog

FIRST, SECOND, SHARED = Job("test", "1"), Job("test-1", "1"), "test-1-1-b"
KINDS = ["key_by", "repartition", "broadcast"]


def program(name: str, kind: str = "key_by", out: str = "out") -> App:
    app = App()
    stream = app.stream("in", key=str, value=str)
    if kind == "key_by":
        stream.key_by(lambda value: value, name, key=str).to(out)
    elif kind == "repartition":
        stream.repartition(name).to(out)
    else:
        stream.broadcast(name).to(out)
    return app


def settings(job: str, app: App, number: str = "1") -> Settings:
    said = sections(app.graph, {}, {}, f"{job}-{number}").to_json()
    return settings_from_document({"job": job, "id": number, "app": "program:app", "kafka": {"bootstrap.servers": "memory:9092"}, **said}, {})


def task(job: str, **more: Any) -> Settings:
    return settings_from_document(
        {"job": job, "task": "tasks:Any", "kafka": {"bootstrap.servers": "memory:9092"}, "inputs": [{"topic": "in"}], **more}, {}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_an_internal_topic_of_another_job_is_refused_before_anything_is_made(kind: str) -> None:
    with Harness(program("1-b", kind), tasks=2) as h, h.log.admin() as admin:
        assert SHARED in admin.names()
        h.run()
        before = sorted(admin.names())
        second = settings("test-1", program("b", kind))
        for attempt in (prepare_topics, create_topics, checked_topics):
            with pytest.raises(ConfigurationError) as refused:
                attempt(second, h.log, h.clock)
            assert (
                f"{SHARED} would be an internal topic of job test-1 (id 1), and is an internal topic of job test (id 1): each would take the other's "
                "records for its own, and remove them." == refused.value.message
            )
            assert refused.value.remedy.startswith(
                "Give it another name in `key_by`, `repartition` or `broadcast`, or give this job another name or id; if job test (id 1) no longer "
                "exists, delete __samza_checkpoint_test_1 with"
            )
        assert isinstance(what_run_refuses(second, h.log, Ledger(), h.clock), ConfigurationError)
        assert before == sorted(admin.names())
        h.stop()
        prepare_topics(settings("test", program("1-b", kind)), h.log, h.clock)
        prepare_topics(settings("test-1", program("c", kind)), h.log, h.clock)
        prepare_topics(settings("test-1", program("b", kind), "2"), h.log, h.clock)


def test_two_jobs_that_share_an_internal_topic_already_are_both_refused() -> None:
    with Harness(program("1-b")) as h:
        h.run()
        h.stop()
        checkpoint = read_checkpoint(h.log.restore_consumer("test"), TopicPartition(FIRST.checkpoint_topic, 0), h.clock)
        assert checkpoint is not None
        said = {**checkpoint.fingerprint, topic_subject("b"): checkpoint.fingerprint[topic_subject("1-b")]}
        with h.log.admin() as admin:
            admin.create([TopicSpec(SECOND.checkpoint_topic, 1, {"cleanup.policy": "compact"})])
        writer = h.log.plain_producer("of the time before")
        writer.send(SECOND.checkpoint_topic, replace(checkpoint, job=SECOND.name, fingerprint=said).to_bytes(), CHECKPOINT_KEY, 0)
        for job, name, other in (("test", "1-b", "test-1"), ("test-1", "b", "test")):
            with pytest.raises(ConfigurationError, match=f"is an internal topic of job {other} .id 1.: each would"):
                prepare_topics(settings(job, program(name)), h.log, h.clock)
        given_up = without_input(replace(checkpoint, sequence=checkpoint.sequence + 1), SHARED)
        writer.send(FIRST.checkpoint_topic, given_up.to_bytes(), CHECKPOINT_KEY, 0)
        prepare_topics(settings("test-1", program("b")), h.log, h.clock)


def test_it_is_free_once_its_owner_is_gone() -> None:
    with Harness(program("1-b")) as h, h.log.admin() as admin:
        h.run()
        h.stop()
        with pytest.raises(ConfigurationError, match=f"{SHARED} would be an internal topic"):
            prepare_topics(settings("test-1", program("b")), h.log, h.clock)
        admin.delete([FIRST.checkpoint_topic])
        prepare_topics(settings("test-1", program("b")), h.log, h.clock)


def test_a_name_alone_makes_nobody_an_owner() -> None:
    """Job test has run, and has no internal topic of that name: whoever has one, has run before or begins now."""
    with Harness(program("c")) as h:
        h.run()
        h.stop()
        second = settings("test-1", program("b"))
        for _ in range(2):  # the second time the topic is there
            prepare_topics(second, h.log, h.clock)
        prepare_topics(task("other", outputs=[{"topic": SHARED}]), h.log, h.clock)


def test_a_job_of_which_nothing_may_be_known_here_stops_nobody() -> None:
    class Secret(MemoryLog):
        def restore_consumer(self, name: str) -> MemoryConsumer:
            raise NotAuthorized("not allowed to read", "Allow it.")

    with Harness(program("1-b")) as h:
        h.run()
        h.stop()
        prepare_topics(settings("test-1", program("b")), Secret(h.cluster), h.clock)


def test_another_jobs_checkpoints_are_read_once_for_all_topics() -> None:
    read: list[str] = []

    class Counting(MemoryLog):
        def restore_consumer(self, name: str) -> MemoryConsumer:
            read.append(name)
            return super().restore_consumer(name)

    app = App()
    stream = app.stream("in", key=str, value=str)
    stream.repartition("b").to("out")
    stream.repartition("c").to("out")
    with Harness(program("d")) as h:
        h.run()
        h.stop()
        prepare_topics(settings("test-1", app), Counting(h.cluster), h.clock)
    assert 1 == read.count("other-job")


@pytest.mark.parametrize("first", [program("1-b"), program("c")])
def test_an_output_is_not_another_jobs_internal_topic(first: App) -> None:
    with Harness(first) as h, h.log.admin() as admin:
        topic = next(name for name in admin.names() if name.endswith(("-1-b", "-c")))
        h.run()
        with pytest.raises(ConfigurationError, match=f"output {topic} is an internal topic of job test-1, to which that job alone writes") as refused:
            prepare_topics(task("other", outputs=[{"topic": topic}]), h.log, h.clock)
        assert refused.value.remedy.startswith("Write to another topic; if job test (id 1) no longer exists")
        prepare_topics(task("other", inputs=[{"topic": topic}]), h.log, h.clock)  # it may be read, and the reader does not own it
        with pytest.raises(ConfigurationError, match=f"{topic} would be a changelog of job other .id 1., and is an internal topic of job test .id 1.: each would"):
            prepare_topics(task("other", stores={"s": {"changelog": topic}}), h.log, h.clock)


def test_a_changelog_that_two_jobs_would_have_by_their_names_has_its_owners_barrier() -> None:
    app = App()
    app.stream("in", key=str, value=str).count("1-b")
    with Harness(app) as h, h.log.admin() as admin:
        h.send("in", "v", key="k")
        h.run()
        assert f"{SHARED}-changelog" in admin.names()
        refused = what_run_refuses(task("test-1", stores={"b": {}}), h.log, Ledger(), h.clock)
        assert isinstance(refused, StateRefused)
        assert f"{SHARED}-changelog[0] belongs to store '1-b' of test-1, Partition 0: not the changelog of store 'b' of test-1-1" in refused.message


def test_a_reset_leaves_the_internal_topic_of_another_job_in_place() -> None:
    with Harness(program("1-b")) as h, h.log.admin() as admin:

        def foreign(said: Settings) -> dict[str, str]:
            return foreign_topics(said, h.log, admin, _checkpoints(said, h.log, admin))

        h.run()
        assert {SHARED: "it is an internal topic of job test (id 1)"} == foreign(settings("test-1", program("b")))
        assert {} == foreign(settings("test", program("1-b")))
        admin.create([TopicSpec(SECOND.checkpoint_topic, 1, {"cleanup.policy": "compact"})])
        assert {} == foreign(settings("test", program("1-b"))), "a job that never ran owns nothing"
