"""Topics of a running job that are deleted, made again, or grow."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from samzapy.api.errors import ConfigurationError, StateMismatch, StateRefused
from samzapy.config.document import settings_from_document
from samzapy.coordinator.topic_watch import TopicWatch
from samzapy.model.job_model import TaskModel
from samzapy.ops.prepare_topics import grown_tasks, prepare_topics
from samzapy.plan.grown_topics import too_many_partitions
from samzapy.plan.internal_topics import INTERNAL
from samzapy.ports import TopicSpec
from samzapy.streams import App
from samzapy.testing.harness import Harness
from samzapy.testing.harness_job import HarnessJob
from samzapy.testing.memory_log import MemoryCluster, MemoryLog
from samzapy.testing.memory_registry import MemoryRegistry
from tests.unit.container.bench import HandClock

TOPICS = {"in": 2, "changelog": 2}


@pytest.fixture
def log() -> MemoryLog:
    made = MemoryLog(MemoryCluster(HandClock()))
    made.admin().create([TopicSpec(t, n) for t, n in TOPICS.items()])
    return made


@pytest.fixture
def watch(log: MemoryLog) -> TopicWatch:
    facts = log.admin().topics(TOPICS)
    return TopicWatch(log, HandClock(), {t: f.topic_id for t, f in facts.items()}, {"in": 2})


def test_a_topic_that_two_looks_do_not_find_ends_the_job_by_its_name(log: MemoryLog, watch: TopicWatch) -> None:
    watch.check()
    log.admin().delete(["changelog"])
    watch.check()  # one look may have met a broker that does not know of it
    with pytest.raises(StateRefused, match=r"^changelog: deleted while the job ran"):
        watch.check()


def test_one_that_is_seen_again_unchanged_ends_nothing(log: MemoryLog, watch: TopicWatch) -> None:
    topics = log._cluster._topics
    for _ in range(3):
        hidden = topics.pop("changelog")
        watch.check()
        topics["changelog"] = hidden
        watch.check()


def test_one_that_was_made_again_ends_the_job_at_once(log: MemoryLog, watch: TopicWatch) -> None:
    log.admin().delete(["in"])
    log.admin().create([TopicSpec("in", 2)])
    with pytest.raises(StateRefused, match=r"^in: deleted and created again while the job ran"):
        watch.check()


def test_growth_that_a_job_with_state_cannot_take_says_from_when_and_where_on_it_may_be_wrong(log: MemoryLog, watch: TopicWatch) -> None:
    plain = log.plain_producer("feed")
    for partition in (0, 1, 1):
        plain.send("in", b"v", b"k", partition)
    watch.check()
    watch.grown(dict)

    def look() -> Mapping[str, TaskModel]:
        raise StateMismatch("in: 4 partitions now, 2 when this job's state was created.", "Give the job a new id.")

    said = r"2 when .* At 2023-11-14T22:13:20Z it had not grown yet\. Later records \(in\[0\] from offset 1, in\[1\] from offset 2\) that the job committed before"
    with pytest.raises(StateMismatch, match=said):
        watch.grown(look)


def test_growth_by_which_nothing_is_lost_is_told_as_it_is(watch: TopicWatch) -> None:
    def look() -> Mapping[str, TaskModel]:
        raise too_many_partitions({"in": 2, "between": 4}, {"between"}, (), 2)

    watch.check()
    watch.grown(dict)
    with pytest.raises(StateMismatch) as caught:
        watch.grown(look)
    assert caught.value.message.endswith("Nothing is lost: state and waiting records are as they were last committed.")


def test_growth_of_only_some_of_a_stateful_jobs_inputs_is_told_in_the_same_way(log: MemoryLog, watch: TopicWatch) -> None:
    log.admin().create([TopicSpec("other", 2)])
    log.admin().create([TopicSpec("out", 1)])
    base = {"job": "j", "task": "tests.recovery.chain_task:ChainTask", "kafka": {"bootstrap.servers": "memory:9092"}}
    store = {"s": {"key": "string", "value": "string"}}
    inputs = [{"topic": "in"}, {"topic": "other"}]
    settings = settings_from_document({**base, "inputs": inputs, "outputs": [{"topic": "out"}], "stores": store}, {})
    prepare_topics(settings, log, HandClock())
    watch.check()
    assert 2 == len(watch.grown(lambda: grown_tasks(settings, log, 3)))
    for topic in ("in", "other"):  # first the one alone, then both
        log.admin().grow(topic, 4)
        with pytest.raises(StateMismatch, match=r"At .* it had not grown yet\. Later records \(in\[0\] from offset 0") as caught:
            watch.grown(lambda: grown_tasks(settings, log, 3))
        assert "samzapy reset JOB.yaml" in caught.value.remedy
    with pytest.raises(ConfigurationError):
        prepare_topics(settings, log, HandClock())


def test_settings_under_which_a_running_jobs_own_topics_lose_records_are_told_until_they_are_right_again(log: MemoryLog) -> None:
    specs = [TopicSpec("state", 2, {"cleanup.policy": "compact"}), TopicSpec("letters", 2, {"cleanup.policy": "delete"})]
    log.admin().create(specs)
    ids = {t: f.topic_id for t, f in log.admin().topics(["state", "letters", "in"]).items()}
    watch = TopicWatch(log, HandClock(), ids, {"in": 2}, specs)
    assert watch.check() == ""
    log._cluster.configure("state", {"cleanup.policy": "delete"})
    log._cluster.configure("letters", {"cleanup.policy": "compact"})
    delete = "state has cleanup.policy=delete, under which Kafka would delete state; with Kafka's own tools, set cleanup.policy=compact for state"
    compact = "letters has cleanup.policy=compact, under which dead letters would be lost; with Kafka's own tools, set cleanup.policy=delete for letters"
    assert f"{delete}; {compact}" == watch.check()
    log._cluster.configure("letters", {"cleanup.policy": "delete"})
    log._cluster.configure("state", {"cleanup.policy": "compact"})
    assert watch.check() == ""


def test_an_internal_topic_that_gives_its_records_other_times_ends_the_job_by_topic_setting_and_remedy(log: MemoryLog) -> None:
    between, changelog = TopicSpec("between", 2, INTERNAL), TopicSpec("state", 2, {"cleanup.policy": "compact"})
    log.admin().create([between, changelog])
    ids = {t: f.topic_id for t, f in log.admin().topics(["state", "between", "in"]).items()}
    watch = TopicWatch(log, HandClock(), ids, {"in": 2}, [between, changelog])
    for harmless in ({"between": {**INTERNAL, "segment.bytes": "9"}}, {"state": {**changelog.config, "message.timestamp.type": "LogAppendTime"}}):
        for topic, config in harmless.items():
            log._cluster.configure(topic, config)
        assert watch.check() == ""
    log._cluster.configure("between", {**INTERNAL, "message.timestamp.type": "LogAppendTime"})
    with pytest.raises(StateRefused, match=r"internal topic between has message.timestamp.type=LogAppendTime now: .* nothing more\.") as caught:
        watch.check()
    assert "set message.timestamp.type=CreateTime for between" in caught.value.remedy
    log._cluster.configure("between", INTERNAL)
    assert watch.check() == ""


def test_growth_that_a_broadcast_stream_cannot_follow_by_itself_names_the_way_out_and_loses_no_state() -> None:
    app = App()
    app.stream("in", key=str, value=int).broadcast("rules").count("counts").to("out")
    with Harness(app, tasks=2) as h:
        settings = HarnessJob.of(app, (), {}, MemoryRegistry()).settings
        watch = TopicWatch(h.log, HandClock(), {"in": h.log.admin().topics(["in"])["in"].topic_id}, {"in": 2})
        h.log.admin().grow("in", 4)
        with pytest.raises(ConfigurationError, match=r"a topic of `broadcast` needs a partition for each: test-1-rules has 2\.") as caught:
            watch.grown(lambda: grown_tasks(settings, h.log, 3))
        assert not isinstance(caught.value, StateMismatch)
        assert "With Kafka's own tools, give test-1-rules 4 partitions, then start the job again" in caught.value.remedy
        h.stop()
        h.log.admin().grow("test-1-rules", 4)
        assert 4 == len(prepare_topics(settings, h.log, h.clock))


def test_where_a_key_has_state_as_well_the_growth_is_not_cured_by_more_partitions() -> None:
    app = App()
    stream = app.stream("in", key=str, value=int)
    stream.broadcast("rules").to("out")
    stream.count("counts")
    with Harness(app, tasks=2) as h:
        settings = HarnessJob.of(app, (), {}, MemoryRegistry()).settings
        watch = TopicWatch(h.log, HandClock(), {"in": h.log.admin().topics(["in"])["in"].topic_id}, {"in": 2})
        h.log.admin().grow("in", 4)
        with pytest.raises(StateMismatch) as caught:
            watch.grown(lambda: grown_tasks(settings, h.log, 3))
        assert "samzapy reset JOB.yaml" in caught.value.remedy
