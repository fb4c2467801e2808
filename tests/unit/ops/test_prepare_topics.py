"""Topics of a job and of others, on the in-memory log: what earlier runs wrote and is gone is not made again; other jobs' own topics are not written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from samzapy import StreamTask
from samzapy.api.errors import ConfigurationError, OffsetOutOfRange, SamzapyError, StateMismatch, StateRefused, TopicMissing
from samzapy.config.document import settings_from_document
from samzapy.model.names import Job
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import FIRST_RUN_KEY, FirstRun, Ledger, Startpoint
from samzapy.ops.inspection import job_in_kafka, other_program, readable_checkpoints
from samzapy.ops.lost_positions import lost_positions
from samzapy.ops.prepare_topics import create_topics, prepare_topics, what_run_refuses
from samzapy.ops.topic_rows import LOST, OK, topic_rows
from samzapy.plan.forgetting import without_store
from samzapy.ports import TopicSpec
from samzapy.readers import read_ledger
from samzapy.streams import App
from samzapy.streams.expand import sections
from samzapy.testing import Harness
from samzapy.wiring.serdes import Serdes
from tests.unit.container.bench import JOB
from tests.unit.coordinator.stopped_job import CHANGELOG, Story, write
from tests.unit.ops.test_committed_state import document_of, settings_of


@pytest.mark.parametrize("topic", [CHANGELOG, JOB.checkpoint_topic])
def test_a_topic_that_the_jobs_records_name_is_not_created_again(tmp_path: Path, topic: str) -> None:
    story = Story(tmp_path, ("a", 1))
    facts = story.bench.cluster.facts(JOB.checkpoint_topic)
    assert facts is not None
    write(story, FIRST_RUN_KEY, FirstRun(facts.topic_id, 1).to_bytes())
    story.bench.cluster.delete(topic)
    with pytest.raises(StateRefused, match=f"topic {topic} .* samzapy does not create it again"):
        create_topics(settings_of(story), story.bench.log, story.bench.clock)
    assert story.bench.cluster.facts(topic) is None
    ledger = read_ledger(story.bench.log.restore_consumer("ledger"), JOB.coordinator_topic, story.bench.clock)
    refused = what_run_refuses(settings_of(story), story.bench.log, ledger, story.bench.clock)
    assert isinstance(refused, StateRefused), "plan, doctor and validate --connect say it, too"
    assert f"topic {topic} " in refused.message
    [(kind, state)] = [(kind, row[-1]) for kind, row in topic_rows(settings_of(story), story.bench.log, story.bench.clock) if row[0] == topic]
    assert (LOST, True) == (kind, state.startswith("was deleted, and no run makes it again; "))


def test_the_command_that_makes_the_topic_of_a_table_makes_it_compacted() -> None:
    app = App()
    app.stream("in", key=str, value=str).lookup(app.table("users", key=str, value=str)).map(str, value=str).to("out")
    with Harness(app) as h:
        settings, cluster = h._job.settings, h.cluster
        h.stop()
        for topic in ("in", "users"):
            cluster.delete(topic)
        with pytest.raises(TopicMissing, match="no input topic in, no input topic users") as refused:
            prepare_topics(settings, h.log, h.clock)
    assert "`samzapy send in --partitions 4 --kafka" in refused.value.remedy
    assert "`samzapy send users --partitions 4 --key --compact --kafka" in refused.value.remedy


def test_a_table_that_each_start_reads_again_is_told_if_kafka_deletes_its_records_by_age(caplog: pytest.LogCaptureFixture) -> None:
    app = App()
    users, rules = app.table("users", key=str, value=str, broadcast=True), app.table("rules", key=str, value=str)
    app.stream("in", key=str, value=str).lookup(users).map(str, value=str).lookup(rules).map(str, value=str).to("out")
    with Harness(app) as h:
        settings, cluster = h._job.settings, h.cluster
        h.stop()
        for topic in ("users", "rules"):
            cluster.delete(topic)
        kept = {"cleanup.policy": "delete", "retention.ms": "604800000"}
        with h.log.admin() as admin:
            admin.create([TopicSpec("users", 1, kept), TopicSpec("rules", 1, kept)])
        caplog.clear()
        prepare_topics(settings, h.log, h.clock)
        told = "Kafka deletes records of users 7 days after their time (retention.ms=604800000), and each start of the job reads the topic again"
        assert [told] == [line[: len(told)] for line in caplog.messages], "of the other table a changelog has all entries"
        rows = {row[0]: row[-1] for _, row in topic_rows(settings, h.log, h.clock)}
        assert (True, "ok") == (rows["users"].startswith(told), rows["rules"])
        cluster.delete("users")
        with h.log.admin() as admin:
            admin.create([TopicSpec("users", 1, {"cleanup.policy": "compact", "retention.ms": "604800000"})])
        caplog.clear()
        prepare_topics(settings, h.log, h.clock)
        assert [] == caplog.messages


def test_an_output_that_the_program_reads_as_a_table_is_created_compacted() -> None:
    app = App()
    totals = app.table("totals", key=str, value=int, broadcast=True)
    lines = app.stream("in", key=str, value=str)
    lines.lookup(totals).map(str, value=str).to("out", partitions=2)
    lines.map(len, value=int).to("totals", partitions=3)
    with Harness(app) as h:
        settings, cluster = h._job.settings, h.cluster
        h.stop()
        for topic in ("totals", "out"):
            cluster.delete(topic)
        with pytest.raises(TopicMissing) as refused:
            prepare_topics(settings, h.log, h.clock)
        assert "`samzapy send totals --partitions 3 --key --compact --kafka" in refused.value.remedy
        create_topics(settings, h.log, h.clock)
        with h.log.admin() as admin:
            made = admin.topics(["totals", "out"])
    assert ("compact", 3) == (made["totals"].config["cleanup.policy"], made["totals"].partitions)
    assert "compact" not in made["out"].config.get("cleanup.policy", "delete")


def test_topics_that_are_refused_are_refused_before_any_is_created(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    outputs = [{"topic": "new", "partitions": 1}]
    with pytest.raises(TopicMissing, match="no input topic missing"):
        create_topics(settings_from_document({**document_of(story), "inputs": [{"topic": "missing"}], "outputs": outputs}, {}), story.bench.log, story.bench.clock)
    with pytest.raises(TopicMissing, match="no output topic new") as refused:
        prepare_topics(settings_from_document({**document_of(story), "outputs": [{"topic": "new"}]}, {}), story.bench.log, story.bench.clock)
    assert "Or give the output `partitions: N`" in refused.value.remedy
    story.bench.cluster.create(TopicSpec("wider", 3))
    unequal = [{"topic": "in"}, {"topic": "wider"}]
    with pytest.raises(ConfigurationError, match="unequal partition counts"):
        create_topics(settings_from_document({**document_of(story), "inputs": unequal, "outputs": outputs}, {}), story.bench.log, story.bench.clock)
    read_too = {"topic": "early", "partitions": 3}
    document = {**document_of(story), "inputs": [{"topic": "in"}, {"topic": "early"}], "outputs": [read_too]}
    with pytest.raises(ConfigurationError, match="unequal partition counts"):
        create_topics(settings_from_document(document, {}), story.bench.log, story.bench.clock)
    story.bench.cluster.create(TopicSpec(OTHER.checkpoint_topic, 1))
    others = [*outputs, {"topic": OTHER.changelog_topic("by-user"), "partitions": 1}]
    with pytest.raises(ConfigurationError, match="is a changelog of job orders-eu-7"):
        create_topics(settings_from_document({**document_of(story), "outputs": others}, {}), story.bench.log, story.bench.clock)
    assert [None] * 3 == [story.bench.cluster.facts(topic) for topic in ("new", "early", OTHER.changelog_topic("by-user"))]


OTHER = Job("orders-eu", "7")


@pytest.mark.parametrize(
    ("topic", "is_other"),
    [
        (OTHER.changelog_topic("by-user"), True),
        (OTHER.dead_letter_topic, True),
        ("orders-us-7-totals-changelog", False),
        ("orders-eu-7-changelog", False),
        ("orders-changelog", False),
    ],
)
def test_outputs_are_not_another_jobs_changelogs_nor_its_dead_letters(tmp_path: Path, topic: str, is_other: bool) -> None:
    story = Story(tmp_path, ("a", 1))
    with story.bench.log.admin() as admin:
        admin.create([TopicSpec(topic, 1), TopicSpec(OTHER.checkpoint_topic, 1, {"cleanup.policy": "compact"})])
        reads, writes = document_of(story), document_of(story)
        reads["inputs"] = [*reads["inputs"], {"topic": topic, "key": "string", "value": "bytes"}]
        writes["outputs"] = [{"topic": topic}]
        assert 1 == len(prepare_topics(settings_from_document(reads, {}), story.bench.log, story.bench.clock)), "it may be read"
        if is_other:
            with pytest.raises(ConfigurationError, match=f"output {topic} is a .* of job orders-eu-7"):
                prepare_topics(settings_from_document(writes, {}), story.bench.log, story.bench.clock)
            admin.delete([OTHER.checkpoint_topic])
        prepare_topics(settings_from_document(writes, {}), story.bench.log, story.bench.clock)


def test_a_commit_timeout_above_the_brokers_limit_is_refused_before_a_run_begins(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    story.bench.cluster.longest_transaction_ms = 45_000
    refused = what_run_refuses(settings_of(story), story.bench.log, Ledger(), story.bench.clock)
    assert isinstance(refused, ConfigurationError)
    assert "commit.timeout is 1m, longer than the brokers allow a transaction to take: their transaction.max.timeout.ms is 45000 (45s)." == refused.message
    with pytest.raises(ConfigurationError, match=r"commit\.timeout is 1m"):
        prepare_topics(settings_of(story), story.bench.log, story.bench.clock)
    story.bench.cluster.longest_transaction_ms = 60_000
    assert what_run_refuses(settings_of(story), story.bench.log, Ledger(), story.bench.clock) is None


def test_another_jobs_changelog_is_told_before_a_run_is_launched(tmp_path: Path) -> None:
    story = Story(tmp_path, ("a", 1))
    assert what_run_refuses(settings_of(story), story.bench.log, Ledger(), story.bench.clock) is None
    other = settings_from_document({**document_of(story), "id": "other", "stores": {"s": {"changelog": CHANGELOG}}}, {})
    refused = what_run_refuses(other, story.bench.log, Ledger(), story.bench.clock)
    assert isinstance(refused, StateRefused)
    assert "belongs to store 's' of test-1, Partition 0: not the changelog of store 's' of test-other" in refused.message
    assert "Give store 's' its own changelog topic." == refused.remedy


def refusal_of(app: App, h: Harness, tasks: int, ledger: Ledger | None = None) -> StateMismatch | None:
    """Why the job that the harness has run would refuse to go on with this program, in so many tasks."""
    said = sections(app.graph, {}, {})
    document = {"job": "test", "app": "program:app", "kafka": {"bootstrap.servers": "x:1"}, **said.to_json()}
    settings = settings_from_document(document, {})
    facts = job_in_kafka(settings, h.log)
    assert tasks == len(facts.tasks)
    return other_program(settings, Serdes(settings, []), said.operators, facts, readable_checkpoints(settings, facts, h.log, h.clock), ledger)


def test_a_program_that_cannot_go_on_with_its_state_is_told_before_a_run_is_launched() -> None:
    def program(name: str) -> App:
        app = App()
        app.stream("in", key=str, value=str).key_by(lambda v: v, name, key=str).count("counts").to("out")
        return app

    with Harness(program("by-value"), tasks=2) as h:
        assert refusal_of(program("by-v"), h, 2) is None
        h.send("in", "a", key="k")
        h.run()
        assert refusal_of(program("by-value"), h, 2) is None
        refused = refusal_of(program("by-v"), h, 2)
    assert refused is not None
    assert "the internal topic 'by-value' (test-1-by-value)" in refused.message
    assert "samzapy checkpoint forget JOB.yaml test-1-by-value" in refused.remedy


def test_an_input_that_is_left_alone_is_no_other_input_for_tasks_that_never_had_a_partition_of_it() -> None:
    """Tasks 2 and 3 have only read the input that leaves. They stay, without partitions, and so do their offsets."""

    def program(*topics: str) -> App:
        app = App()
        first, *others = [app.stream(topic, key=str, value=str) for topic in topics]
        for other in others:
            first = first.merge(other)
        first.key_by(lambda v: v, "by-value", key=str).count("counts").to("out")
        return app

    with Harness(program("b"), tasks=4) as h, h.log.admin() as admin:
        admin.create([TopicSpec("a", 2, {}), TopicSpec("c", 4, {})])
        h.restart(program("a", "b"))
        for n in range(8):
            h.send("b", str(n), key=str(n))
        h.send("a", "0", key="k")
        h.run()
        assert refusal_of(program("a"), h, 4, Ledger()) is None
        assert refusal_of(program("c", "a"), h, 4, Ledger()) is None
        refused = refusal_of(program("c"), h, 4, Ledger())
        assert refused is not None
        assert "the job test-1 has read a, b so far, and now reads only c" in refused.message
        h.restart(program("a"))
        h.send("a", "1", key="k")
        h.end()
        assert h.store("counts")["1"] == 2
        h.restart(program("a", "b"))
        h.send("b", "1", key="k")
        h.run()
        assert h.store("counts")["1"] == 3


class Keeping(StreamTask):
    def process(self, envelope, collector, coordinator):
        pass


def test_a_class_of_keys_that_has_changed_is_told_before_a_run_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    def the_key_is(*fields: Any) -> None:
        monkeypatch.setattr(sys.modules[__name__], "Key", msgspec.defstruct("Key", fields, frozen=True, module=__name__), raising=False)

    stores = {"counts": {"key": f"record:{__name__}:Key", "value": "integer"}}
    document = {
        "job": "test", "task": f"{__name__}:Keeping", "kafka": {"bootstrap.servers": "x:1"}, "inputs": [{"topic": "in", "value": "json"}], "stores": stores,
    }  # fmt: skip
    settings = settings_from_document(document, {})
    the_key_is(("a", str), ("b", str))
    with Harness(Keeping, inputs=[{"topic": "in", "value": "json"}], stores=stores) as h:
        h.send("in", 5)
        h.run()
        facts = job_in_kafka(settings, h.log)
        checkpoints = readable_checkpoints(settings, facts, h.log, h.clock)
        assert other_program(settings, Serdes(settings, []), {}, facts, checkpoints) is None
        the_key_is(("b", str), ("a", str))
        refused = other_program(settings, Serdes(settings, []), {}, facts, checkpoints)
    assert refused is not None
    assert "store 'counts' key fields were 'a str, b str'" in refused.message


@pytest.mark.parametrize("policy", ["fail", "earliest"])
def test_records_that_were_removed_unread_are_told_before_a_run_is_launched(policy: str) -> None:
    inputs = [{"topic": "in", "value": "integer", "on_out_of_range": policy}]
    document = {"job": "test", "task": f"{__name__}:Keeping", "kafka": {"bootstrap.servers": "x:1"}, "inputs": inputs}
    settings, place = settings_from_document(document, {}), TopicPartition("in", 0)
    with Harness(Keeping, inputs=inputs) as h:

        def refused(ledger: Ledger = Ledger()) -> SamzapyError | None:  # noqa: B008  a value
            facts = job_in_kafka(settings, h.log)
            return lost_positions(settings, facts, readable_checkpoints(settings, facts, h.log, h.clock), ledger, h.log, h.clock, {}).get("in")

        assert refused() is None, "there is no checkpoint yet"
        h.send("in", 1)
        h.run()
        assert refused() is None
        h.stop()
        h.send("in", 2)
        h.send("in", 3)
        h.log._cluster.delete_records(place, 1)
        assert refused() is None, "no record that was not read"
        h.log._cluster.delete_records(place, 2)
        found = refused()
        if policy == "fail":
            assert found is not None
            assert "input in[0]: the checkpoint's next offset 1 is before the topic's start 2: records were removed unread" in found.message
            assert "samzapy checkpoint set JOB.yaml" in found.remedy
            topic_id = job_in_kafka(settings, h.log).topics["in"].topic_id
            ordered = Ledger(startpoints={"Partition 0": Startpoint("o", {"in[0]": 2}, {"in[0]": topic_id})})
            assert refused(ordered) is None
            with pytest.raises(OffsetOutOfRange, match="is before the topic's start 2"):
                h.run()
        else:
            assert found is None


def test_a_table_that_was_dropped_is_no_reason_to_refuse_and_one_that_has_entries_names_the_way() -> None:
    app = App()
    users = app.table("users", key=str, value=str, store="people")
    app.stream("in", key=str, value=str).lookup(users).map(str, value=str).to("out")
    with Harness(app) as h:
        h.send("users", "a", key="a")
        h.send("in", "x", key="a")
        h.run()
        h.stop()
        h.send("users", "b", key="b")
        h.log._cluster.delete_records(TopicPartition("users", 0), 2)
        settings = h._job.settings
        facts = job_in_kafka(settings, h.log)
        checkpoints = readable_checkpoints(settings, facts, h.log, h.clock)
        found = lost_positions(settings, facts, checkpoints, Ledger(), h.log, h.clock, {"users": "people"})["users"]
        assert "samzapy state drop JOB.yaml people --execute" in found.remedy
        dropped = [without_store(checkpoint, "people") for checkpoint in checkpoints]
        assert lost_positions(settings, facts, dropped, Ledger(), h.log, h.clock, {"users": "people"}) == {}


def make_again(h: Harness, topic: str) -> str:
    """A topic of that name with the same settings and no records; its new id."""
    facts = h.cluster.facts(topic)
    assert facts is not None
    h.cluster.delete(topic)
    with h.log.admin() as admin:
        admin.create([TopicSpec(topic, facts.partitions, facts.config)])
        return admin.topics([topic])[topic].topic_id


@pytest.mark.parametrize("policy", ["fail", "latest"])
def test_an_input_that_was_made_again_while_the_job_was_stopped_is_told_before_a_run_is_launched(policy: str) -> None:
    inputs = [{"topic": "in", "key": "string", "value": "integer", "on_out_of_range": policy}]
    with Harness(Keeping, tasks=2, inputs=inputs) as h:
        for key in range(10):
            h.send("in", 1, key=str(key))
        h.run()
        h.stop()
        settings = h._job.settings
        assert rows_of(h, settings)["in"] == (OK, "ok")
        topic_id = make_again(h, "in")
        kind, told = rows_of(h, settings)["in"]
        if policy == "latest":
            assert (kind, told) == (OK, "ok"), "the next run goes on"
            h.restart(Keeping, inputs=inputs)
            return
        assert kind == LOST
        assert "the topic was deleted and created again after the checkpoint; set `on_out_of_range: earliest` or `latest` for in" in told
        assert "`samzapy checkpoint set JOB.yaml --topic in --to-earliest --keep-state`" in told, "for all partitions: all of them are others"
        with pytest.raises(OffsetOutOfRange) as refused:
            h.restart(Keeping, inputs=inputs)
        assert told.startswith(refused.value.message.rstrip(".")), "the same as a run says"
        facts = job_in_kafka(settings, h.log)
        checkpoints = readable_checkpoints(settings, facts, h.log, h.clock)
        orders = {f"Partition {p}": Startpoint("o", {f"in[{p}]": 0}, {f"in[{p}]": topic_id}) for p in range(2)}
        assert lost_positions(settings, facts, checkpoints, Ledger(startpoints=orders), h.log, h.clock, {}) == {}, "an order says where to go on"


@pytest.mark.parametrize("which", ["changelog", "internal", "checkpoint"])
def test_a_topic_of_the_jobs_own_that_was_made_again_while_it_was_stopped_is_told_before_a_run_is_launched(which: str) -> None:
    app = App()
    app.stream("in", key=str, value=str).key_by(lambda word: word, "by-word", key=str).count("words").to("out")
    with Harness(app) as h:
        h.send("in", "a", key="k")
        h.run()
        settings, job = h._job.settings, Job(h._job.settings.job, h._job.settings.id)
        h.stop()
        if which == "checkpoint":
            there = h.cluster.facts(job.checkpoint_topic)
            assert there is not None
            h.log.plain_producer("c").send(job.coordinator_topic, FirstRun(there.topic_id, 0).to_bytes(), FIRST_RUN_KEY, 0)
        rows = rows_of(h, settings)
        assert {OK} == {kind for kind, _ in rows.values()}
        [topic] = [t for t in rows if t not in ("in", "out") and {"changelog": "changelog", "internal": "by-word", "checkpoint": "checkpoint"}[which] in t]
        make_again(h, topic)
        kind, told = rows_of(h, settings)[topic]
        assert kind == LOST
        assert "was deleted and created again after the" in told
        assert "`samzapy reset JOB.yaml`" in told
        assert "egin with empty state" in told
        if which != "checkpoint":  # which is the coordinator's to see
            with pytest.raises(StateRefused) as refused:
                h.restart(app)
            assert told.startswith(refused.value.message.rstrip("."))


def rows_of(h: Harness, settings: Any) -> dict[str, tuple[str, str]]:
    return {row[0]: (kind, row[-1]) for kind, row in topic_rows(settings, h.log, h.clock)}
