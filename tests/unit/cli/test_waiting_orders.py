"""`samzapy reset --coordinator` while a `checkpoint set` waits for the next start, and what is said if such an order is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError, StateRefused
from samzapy.cli.job import Job
from samzapy.cli.reset import refuse_to_lose_orders
from samzapy.config.load import load_job
from samzapy.model.ownership import startpoint_key
from tests.unit.container.bench import JOB
from tests.unit.coordinator.stopped_job import EARLIEST, LATEST, Story, write
from tests.unit.ops.test_committed_state import CHECKPOINTS, cut_off, verified

FILE = f"""
job: {JOB.name}
id: "{JOB.id}"
task: tests.recovery.chain_task:ChainTask
kafka: {{bootstrap.servers: "memory:9092"}}
inputs: [{{topic: in}}]
"""
ORDER = f"{JOB.coordinator_topic} holds a `checkpoint set` that no start has carried out yet (in[0] at 0)"


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path, ("a", 1), ("b", 2), ("a", 3))


@pytest.fixture
def command(tmp_path: Path, story: Story) -> Callable[..., None]:
    (tmp_path / "job.yaml").write_text(FILE)
    job = Job.of(load_job([tmp_path / "job.yaml"], []), story.bench.log)
    return lambda drop=False, execute=True: refuse_to_lose_orders(job, drop, execute)


def lose_the_order(story: Story) -> None:
    """As `reset --coordinator`, or whoever deletes that topic."""
    epoch = story.ledger().epoch
    story.lose(JOB.coordinator_topic)
    story.bench.epoch = epoch
    story.bench.name(0, "", [])


def test_it_is_refused_and_a_look_says_so(story: Story, command: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    story.set(EARLIEST, reset=True)
    with pytest.raises(ConfigurationError) as refused:
        command()
    assert ORDER in refused.value.message
    assert "add --drop-orders" in refused.value.remedy
    command(execute=False)
    told = capsys.readouterr().err
    assert ORDER in told
    assert "--execute also needs --drop-orders" in told
    command(drop=True)
    assert "it is lost with the topic. Before the next run, give the same `checkpoint set` again" in capsys.readouterr().err


def test_an_order_that_was_carried_out_stands_in_nobodys_way(
    story: Story, command: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    story.set(EARLIEST, reset=True)
    story.run()
    capsys.readouterr()
    command()
    assert capsys.readouterr().err == ""


def test_without_a_checkpoint_that_can_be_read_it_counts_as_waiting(story: Story, command: Callable[..., None]) -> None:
    story.set(EARLIEST, reset=True)
    story.run()
    story.lose(JOB.checkpoint_topic)
    with pytest.raises(ConfigurationError, match="no start has carried out yet"):
        command()


def test_one_that_cannot_be_read_is_told_and_the_way_out_of_it_stays_open(
    story: Story, command: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    write(story, startpoint_key("Partition 0"), b"junk")
    command()
    assert "startpoint/Partition 0: this order of `checkpoint set` cannot be read; it is lost with the topic" in capsys.readouterr().err


def test_once_it_is_lost_the_cause_is_named_and_the_remedy_brings_the_state_back(story: Story, tmp_path: Path) -> None:
    story.set(EARLIEST, reset=True)
    lose_the_order(story)
    assert "holds nothing but deletions" in verified(story).detail
    for folder in ("same", "another"):
        story.bench.state = tmp_path / folder
        with pytest.raises(StateRefused) as refused:
            story.start()
        assert "holds nothing but deletions" in refused.value.message
        assert "A `checkpoint set --reset-state` deleted these keys, and its order was lost" in refused.value.message
        assert "checkpoint set JOB.yaml --to-earliest --reset-state --execute" in refused.value.remedy
    story.set(EARLIEST, reset=True)
    story.run()
    assert {"a": 4, "b": 2} == story.bench.changelog()


def test_to_keep_what_the_deletions_left_is_told_with_its_price(story: Story) -> None:
    story.set(EARLIEST, reset=True)
    assert [(2, 0)] == [(deleted, others) for _, _, deleted, others in story.set(LATEST).taken_over]
    story.run()
    assert () == story.set(LATEST).taken_over


def test_lost_checkpoints_are_still_called_that(story: Story, tmp_path: Path) -> None:
    story.bench.feed(("c", 1))
    story.run()
    cut_off(story, CHECKPOINTS, 2)
    story.bench.state = tmp_path / "another"
    with pytest.raises(StateRefused, match="later checkpoints were lost"):
        story.start()
    assert [(0, 1)] == [(deleted, others) for _, _, deleted, others in story.set(LATEST).taken_over]
