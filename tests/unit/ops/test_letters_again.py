"""Dead letters of records that are read again, after a reset or a `checkpoint set`: a replay of them would count twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.cli.dlq import sent_before
from samzapy.config.document import settings_from_document
from samzapy.coordinator.forgetting import Forgetting
from samzapy.coordinator.settings import CoordinatorSettings, Process
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import Startpoint, startpoint_key
from samzapy.ops.letter_choice import Filter, opened, replay_of
from samzapy.ops.letters_again import MAX_NAMED, begin_of_reset, begin_of_steps, newest_letters, read_again, told, warnings
from samzapy.plan.checkpoint_orders import Step
from samzapy.ports import TopicSpec
from tests.unit.container.bench import JOB, Bench
from tests.unit.ops.test_dead_letters import Fragile, bench_of, forge, forged, quiet, records

_JOB: dict[str, Any] = {"job": JOB.name, "id": JOB.id, "task": "my:Task", "kafka": {"bootstrap.servers": "x:1"}, "on_error": {"then": "dead_letter"}}


def replayed(bench: Bench, *names: str, start: str = "earliest") -> list[str]:
    settings = settings_from_document({**_JOB, "inputs": [{"topic": "in", "start": start}]}, {})
    letters = opened(settings, bench.log, bench.clock)
    found = letters.read()
    sent = letters.replay([e.letter.origin for name in names for e in found.named(name)] or None, quiet)
    return sorted(str(e.letter.origin) for e in sent)


def order(bench: Bench, offset: int) -> None:
    """As of `checkpoint set`: partition 0 goes on there at the next start."""
    with bench.log.admin() as admin:
        admin.create([TopicSpec(JOB.coordinator_topic, 1)])
        topic_id = admin.topics(["in"])["in"].topic_id
    producer = bench.log.plain_producer("order")
    producer.send(JOB.coordinator_topic, Startpoint("s1", {"in[0]": offset}, {"in[0]": topic_id}).to_bytes(), startpoint_key("Partition 0"), 0)
    producer.flush()


def stopped(folder: Path, *others: str) -> Bench:
    """A job that has ended, with two dead letters of `in`."""
    bench = Bench(folder, Fragile, partitions=1, inputs={t: {} for t in ("in", *others)}, on_error="dead_letter")
    container = bench.start()
    bench.feed(("boom0", 0), ("boom1", 1), ("good", 2), topic="in")
    bench.drain(container)
    container.stop()
    container.close()
    with bench.log.admin() as admin:
        if JOB.coordinator_topic not in admin.topics([JOB.coordinator_topic]):
            admin.create([TopicSpec(JOB.coordinator_topic, 1)])
    return bench


def forgetting(bench: Bench) -> Forgetting:
    return Forgetting(JOB, CoordinatorSettings(), bench.log, bench.clock, Process("h", 1, "s", lambda *_: False), lambda url: False)


def test_of_a_job_that_goes_on_all_go_back(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=2)
    assert ["in[0]@0", "in[0]@1", "in[1]@0", "in[1]@1"] == replayed(bench)


def test_what_a_job_set_back_reads_again_stays_and_says_what_to_do(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=3)
    order(bench, 1)
    with pytest.raises(ConfigurationError, match="Partition 0 continues at 1 there, so it will read the record") as refused:
        replayed(bench, "in[0]@2")
    assert "samzapy dlq discard JOB.yaml" in refused.value.remedy
    assert ["in[0]@0", "in[1]@0", "in[1]@1", "in[1]@2"] == replayed(bench)
    assert 4 + 1 == len(records(bench)), "what was fed, and one of those that came before"


@pytest.mark.parametrize(("start", "sent"), [("earliest", 0), ("latest", 4)])
def test_after_a_reset_they_go_back_only_where_the_job_does_not_begin_at_the_start(start: str, sent: int, tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=2)
    with bench.log.admin() as admin:
        admin.delete([JOB.checkpoint_topic])
    assert sent == len(replayed(bench, start=start))


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_without_a_checkpoint_an_order_that_waits_says_what_is_read_again(start: str, tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=2)
    with bench.log.admin() as admin:
        admin.delete([JOB.checkpoint_topic])
    order(bench, 1)
    assert ["in[0]@0", *(["in[1]@0", "in[1]@1"] if start == "latest" else [])] == replayed(bench, start=start)


@pytest.mark.parametrize(("start", "sent"), [("earliest", 0), ("latest", 2)])
def test_what_an_input_that_was_forgotten_reads_again_stays(start: str, sent: int, tmp_path: Path) -> None:
    """The tasks have checkpoints, but none of this input: it is a new one when it is added again."""
    bench = stopped(tmp_path)
    forgotten = forgetting(bench).input("in", execute=True)
    assert 1 == len(forgotten.before)
    assert sent == len(replayed(bench, start=start))


def test_an_input_that_was_removed_goes_on_where_it_was(tmp_path: Path) -> None:
    """A task that does not read it now has a note of where it was, and goes on there when it is added again."""
    bench = stopped(tmp_path, "other")
    bench.input_settings = {"other": {}}
    bench.drain(container := bench.start())
    container.stop()
    container.close()
    assert ["in[0]@0", "in[0]@1"] == replayed(bench)


def test_those_that_are_read_again_are_told_with_the_command_that_takes_them_out(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=2)
    settings = settings_from_document({**_JOB, "inputs": [{"topic": "in"}]}, {})
    letters = newest_letters(settings, bench.log, bench.clock)
    waiting = letters.entries
    assert letters.is_all
    assert all(e.is_waiting for e in waiting)
    place = TopicPartition("in", 0)
    steps = [Step("Partition 0", place, 3, 1, chosen=True), Step("Partition 1", TopicPartition("in", 1), 3, 0, chosen=False)]
    (again,) = read_again(waiting, begin_of_steps(steps))
    assert "in[0]@1" == str(again.letter.origin)
    assert told([again], letters).endswith(f"samzapy dlq discard JOB.yaml {again.number} --execute")
    assert told(waiting, letters).endswith("samzapy dlq discard JOB.yaml --all --execute")
    assert [told([again], letters)] == warnings(letters, begin_of_steps(steps))
    assert [] == read_again(waiting, begin_of_steps([Step("Partition 0", place, 3, None, chosen=True)]))


def test_those_of_topics_that_are_not_read_now_are_not_discarded_with_the_others(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Fragile, partitions=1, inputs={"in": {}, "old": {}}, on_error="dead_letter")
    container = bench.start()
    bench.feed(("boom1", 1), topic="in")
    bench.feed(("boom2", 1), topic="old")
    bench.drain(container)
    settings = settings_from_document({**_JOB, "inputs": [{"topic": "in"}]}, {})
    letters = newest_letters(settings, bench.log, bench.clock)
    (mine,) = [e for e in letters.entries if e.letter.origin.topic == "in"]
    (warning,) = warnings(letters, begin_of_reset(settings, letters, bench.log))
    assert warning.startswith("a dead letter waits")
    assert warning.endswith(f": samzapy dlq discard JOB.yaml {mine.number} --execute")


def test_those_that_were_not_looked_at_are_not_discarded_with_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("samzapy.ops.letters.RECENT", 1)
    bench, _ = bench_of(tmp_path, letters=2, partitions=1)
    letters = newest_letters(settings_from_document({**_JOB, "inputs": [{"topic": "in"}]}, {}), bench.log, bench.clock)
    assert not letters.is_all
    (newest,) = letters.entries
    assert told([newest], letters).endswith(f": samzapy dlq discard JOB.yaml {newest.number} --execute")


def test_many_are_discarded_by_their_topics_only_if_all_of_these_are_read_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Fragile, partitions=1, inputs={"in": {}, "old": {}}, on_error="dead_letter")
    container = bench.start()
    bench.feed(*((f"boom{i}", i) for i in range(MAX_NAMED + 1)), topic="in")
    bench.feed(("boom", 1), topic="old")
    bench.drain(container)
    settings = settings_from_document({**_JOB, "inputs": [{"topic": "in"}]}, {})
    letters = newest_letters(settings, bench.log, bench.clock)
    mine = [e for e in letters.entries if e.letter.origin.topic == "in"]
    assert told(mine, letters).endswith(": samzapy dlq discard JOB.yaml --topic in --execute")
    first = " ".join(e.number for e in mine[:MAX_NAMED])
    unseen = replace(letters, is_all=False)
    assert told(mine, unseen).endswith(f": samzapy dlq discard JOB.yaml {first} --execute (and so on: {len(mine)} in all, and perhaps older ones)")


def test_a_record_that_was_sent_back_and_is_read_again_is_told_with_the_line_that_skips_its_copy(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=2)
    settings = settings_from_document({**_JOB, "inputs": [{"topic": "in"}]}, {})
    replayed(bench, "in[0]@0", "in[0]@1", "in[1]@1")
    place = TopicPartition("in", 0)

    def told_of(to: int | None, chosen: bool = True) -> list[str]:
        begin = begin_of_steps([Step("Partition 0", place, 5, to, chosen=chosen)])
        return warnings(newest_letters(settings, bench.log, bench.clock), begin)

    (told_both,) = told_of(0)
    assert told_both.startswith("2 records of in were sent back from the dead letters before (the first: in[0]@0). If the job reads in[0] from 0 on, ")
    assert "the record counts twice" in told_both
    assert 'if (dict(envelope.headers).get("samzapy-replay-of") or b"").startswith(b"test-1-dead-letter["): return' in told_both
    (told_one,) = told_of(1)
    assert told_one.startswith("a record of in was sent back from the dead letters before (the first: in[0]@1). If the job reads in[0] from 1 on, ")
    assert [] == told_of(2) == told_of(None) == told_of(0, chosen=False), "from there on only the copy is read"


@pytest.mark.parametrize(("start", "told_of"), [("earliest", 2), ("latest", 0)])
def test_a_reset_tells_of_what_waits_and_of_what_was_sent_back_as_far_as_it_is_read_again(start: str, told_of: int, tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=2)
    settings = settings_from_document({**_JOB, "inputs": [{"topic": "in", "start": start}]}, {})
    replayed(bench, "in[0]@0", "in[0]@1", start="latest")
    bench.cluster.delete_records(TopicPartition("in", 0), 1)
    letters = newest_letters(settings, bench.log, bench.clock)
    found = warnings(letters, begin_of_reset(settings, letters, bench.log))
    assert told_of == len(found)
    if found:
        assert found[0].startswith("2 dead letters wait")
        assert found[1].startswith("a record of in was sent back from the dead letters before (the first: in[0]@1). If the job reads in[0] from 1 on, ")
        bench.cluster.delete("in")
        assert [] == warnings(letters, begin_of_reset(settings, letters, bench.log))


def test_of_all_a_record_that_was_sent_back_before_stays_and_is_named_and_goes_only_if_it_is_named(tmp_path: Path) -> None:
    """It was read again, and failed again: the topic has its copy, which failed as well, and goes back alone."""
    bench, container = bench_of(tmp_path, letters=1, partitions=1)
    settings = settings_from_document({**_JOB, "inputs": [{"topic": "in"}]}, {})
    assert ["in[0]@0"] == replayed(bench)
    container.close()
    order(bench, 0)
    bench.drain(bench.start())
    letters = opened(settings, bench.log, bench.clock)
    found = letters.read()
    assert ["in[0]@0", "in[0]@0", "in[0]@2"] == sorted(str(e.letter.origin) for e in found.entries)
    (second,) = [e for e in found.entries if e.is_waiting and e.letter.origin.offset == 0]
    for chosen in (Filter(), Filter(error="boom"), Filter(topic="in")):
        plan = replay_of(letters, found, None, chosen)
        assert ([second], ["in[0]@2"]) == (plan.sent_before, [str(e.letter.origin) for e in plan.waiting])
    assert ([], []) == (replay_of(letters, found, None, Filter(error="other")).sent_before, letters.passed_by(found))
    told_why = sent_before(second)
    assert told_why.startswith(f"{second.number} is not sent back: its record, in[0]@0, was sent back before")
    assert told_why.endswith(f"samzapy dlq replay JOB.yaml {second.number} --execute")

    assert ["in[0]@2"] == replayed(bench)
    by_name = replay_of(letters, letters.read(), [second.number], Filter())
    assert ([second.place], []) == ([e.place for e in by_name.waiting], by_name.sent_before)
    assert ["in[0]@0"] == replayed(bench, second.number)


def test_another_record_at_the_same_offset_of_a_topic_that_was_created_again_goes_back(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=1, partitions=1)
    replayed(bench)
    forge(bench, forged(b"in"))
    assert ["in[0]@0"] == replayed(bench)
