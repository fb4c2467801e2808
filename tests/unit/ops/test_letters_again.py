"""Dead letters of records that are read again, after a reset or a `checkpoint set`: a replay of them would count twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.config.document import settings_from_document
from samzapy.model.offsets import TopicPartition
from samzapy.model.ownership import Startpoint, startpoint_key
from samzapy.ops.letter_choice import opened
from samzapy.ops.letters_again import read_again, told, waiting_letters
from samzapy.plan.checkpoint_orders import Step
from samzapy.ports import TopicSpec
from tests.unit.container.bench import JOB, Bench
from tests.unit.ops.test_dead_letters import bench_of, quiet, records

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


def test_those_that_are_read_again_are_told_with_the_command_that_takes_them_out(tmp_path: Path) -> None:
    bench, _ = bench_of(tmp_path, letters=2)
    settings = settings_from_document({**_JOB, "inputs": [{"topic": "in"}]}, {})
    waiting = waiting_letters(settings, bench.log, bench.clock)
    place = TopicPartition("in", 0)
    (again,) = read_again(waiting, [Step("Partition 0", place, 3, 1, chosen=True), Step("Partition 1", TopicPartition("in", 1), 3, 0, chosen=False)])
    assert "in[0]@1" == str(again.letter.origin)
    assert told([again], waiting).endswith(f"samzapy dlq discard JOB.yaml {again.number} --execute")
    assert told(waiting, waiting).endswith("samzapy dlq discard JOB.yaml --all --execute")
    assert [] == read_again(waiting, [Step("Partition 0", place, 3, None, chosen=True)])
