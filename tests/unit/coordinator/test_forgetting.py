"""`state drop` and `checkpoint forget` that write nothing, or are cut short: the job looks as it did before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError, LogError, TransactionAborted
from samzapy.coordinator.forgetting import Forgetting
from samzapy.coordinator.settings import CoordinatorSettings, Process
from samzapy.model.ownership import LEASE_KEY, LeaseRecord
from samzapy.ports import TransactionalProducer
from samzapy.testing.memory_log import MemoryLog
from tests.unit.container.bench import JOB
from tests.unit.coordinator.stopped_job import CHANGELOG, Story, write


def stopped(folder: Path, has_ended: bool = True) -> tuple[Story, LeaseRecord]:
    """A job whose last run failed, or was killed."""
    story = Story(folder, ("a", 1), stores={"s": {}})
    end: dict[str, Any] = {"ended": True, "outcome": "FAILED", "error": "boom"} if has_ended else {}
    lease = LeaseRecord(run_id="before", url="", host="h", pid=2, process_start="s", renewed_ms=1, **end)
    write(story, LEASE_KEY, lease.to_bytes())
    return story, lease


def forgetting(story: Story, log: MemoryLog | None = None) -> Forgetting:
    process = Process("h", 1, "s", lambda *_: True)
    return Forgetting(JOB, CoordinatorSettings(), log or story.bench.log, story.bench.clock, process, lambda url: False)


@pytest.mark.parametrize("has_ended", [True, False])
def test_where_there_is_nothing_to_forget_the_job_stays_as_it_is(has_ended: bool, tmp_path: Path) -> None:
    story, lease = stopped(tmp_path, has_ended)
    forgetting(story).input("never", execute=True)
    forgetting(story).store("never", (), execute=True)
    assert lease == story.ledger().lease


@pytest.mark.parametrize("has_ended", [True, False])
def test_a_drop_that_only_deletes_what_an_earlier_one_left_over_does_not_look_killed(has_ended: bool, tmp_path: Path) -> None:
    story, lease = stopped(tmp_path, has_ended)
    story.lose(JOB.checkpoint_topic)
    assert (CHANGELOG,) == forgetting(story).store("s", (), execute=True).left_over
    after = story.ledger().lease
    assert after is not None
    assert after.ended
    assert (after == lease) == has_ended
    assert story.bench.cluster.facts(CHANGELOG) is None


class Cut(MemoryLog):
    """The command is interrupted at a read of the checkpoints, after it has taken the job over."""

    def __init__(self, story: Story) -> None:
        super().__init__(story.bench.cluster)
        self._at = 2

    def restore_consumer(self, name: str) -> Any:
        self._at -= name == "forget"
        if name == "forget" and not self._at:
            raise KeyboardInterrupt
        return super().restore_consumer(name)


def test_one_that_is_interrupted_gives_the_lease_up(tmp_path: Path) -> None:
    story, lease = stopped(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        forgetting(story, Cut(story)).input("in", execute=True)
    assert lease == story.ledger().lease
    assert 1 == len(forgetting(story).input("in", execute=True).before)


class Aborting(MemoryLog):
    """The one transaction with a checkpoint in it is aborted."""

    def transactional_producer(self, transactional_id: str) -> TransactionalProducer:
        producer = super().transactional_producer(transactional_id)
        send, commit, topics = producer.send, producer.commit, list[str]()

        def sent(topic: str, *args: Any, **named: Any) -> None:
            topics.append(topic)
            send(topic, *args, **named)

        def committed() -> bool:
            if JOB.checkpoint_topic in topics:
                producer.abort()
                raise TransactionAborted("aborted.", "")
            return commit()

        producer.send, producer.commit = sent, committed  # type: ignore[method-assign]
        return producer


def test_one_whose_transaction_is_aborted_gives_the_lease_up(tmp_path: Path) -> None:
    story, lease = stopped(tmp_path)
    with pytest.raises(LogError, match="nothing was forgotten"):
        forgetting(story, Aborting(story.bench.cluster)).input("in", execute=True)
    assert lease == story.ledger().lease


@pytest.mark.parametrize("execute", [False, True])
def test_a_changelog_that_another_store_of_the_job_has_now_is_not_deleted(execute: bool, tmp_path: Path) -> None:
    story, lease = stopped(tmp_path)
    with pytest.raises(ConfigurationError, match=f"the changelog of store 's', {CHANGELOG}, is also that of another store") as refused:
        forgetting(story).store("s", [CHANGELOG], execute)
    assert "another `changelog:`" in refused.value.remedy
    assert story.bench.cluster.facts(CHANGELOG) is not None
    assert lease == story.ledger().lease
