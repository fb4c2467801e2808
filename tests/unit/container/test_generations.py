"""Opening local stores: what the decision says is carried out, and nothing else."""

from __future__ import annotations

import pytest

from samzapy.container.generations import Opened, look_at_store, open_empty, open_store
from samzapy.model.checkpoint import Checkpoint, StoreMark
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.plan.local_store import ChangelogFacts, Keep
from samzapy.plan.start_refusals import Refuse
from tests.simulation.disk import DiskDirectory, Generation

Disk = dict[str, Generation]

IDENTITY = StoreIdentity("job", "1", "Partition 0", "s", "string", "integer")
CHECKPOINT = Checkpoint(
    job="job",
    id="1",
    task="Partition 0",
    container=0,
    incarnation="i",
    epoch=1,
    sequence=7,
    inputs={},
    stores={"s": StoreMark("log", "topic-id", 0, 100)},
)
LOG = ChangelogFacts("log", 0, "topic-id", start=0, barrier=120, delete_retention_ms=1000)
NOW_MS = 50
OURS, OTHERS = "this process", "another process"


@pytest.fixture
def disk() -> Disk:
    return {}


def directory(disk: Disk, holder: str = OURS) -> DiskDirectory:
    return DiskDirectory(disk, lambda: f"g{len(disk)}", holder)


def stored(disk: Disk, position: int, holder: str | None = None) -> str:
    """A generation that stands at a position; it stays open for `holder`."""
    name, engine = directory(disk, holder or OURS).create()
    engine.write([], StoreStamp(IDENTITY, "topic-id", position, 7, NOW_MS))
    engine.flush()
    if holder is None:
        engine.close()
    return name


def names(disk: Disk) -> set[str]:
    claims = directory(disk).claims()
    for claim in claims:
        if claim.engine is not None:
            claim.engine.close()
    return {claim.generation for claim in claims}


def test_the_furthest_is_kept_and_the_others_go(disk: Disk) -> None:
    _, kept, _ = stored(disk, 100), stored(disk, 110), stored(disk, 105)
    opened = open_store(directory(disk), IDENTITY, CHECKPOINT, LOG, now_ms=NOW_MS)
    assert isinstance(opened, Opened)
    assert (True, 110) == (opened.is_kept, opened.position)
    opened.engine.close()
    assert {kept} == names(disk)


def test_where_none_is_good_a_new_one_is_made_and_read_from_the_start(disk: Disk) -> None:
    old = stored(disk, 121)
    opened = open_store(directory(disk), IDENTITY, CHECKPOINT, LOG, now_ms=NOW_MS)
    assert isinstance(opened, Opened)
    assert (False, 0, None) == (opened.is_kept, opened.position, opened.engine.stamp())
    assert "ahead of the changelog" in opened.reason
    opened.engine.close()
    assert old not in names(disk)


def test_a_refusal_leaves_all_as_it_is_and_open_for_nobody(disk: Disk) -> None:
    both = {stored(disk, 100), stored(disk, 110)}
    replaced = ChangelogFacts("log", 0, "another", 0, 120, 1000)
    assert isinstance(open_store(directory(disk), IDENTITY, CHECKPOINT, replaced, now_ms=NOW_MS), Refuse)
    assert both == names(disk)
    assert not any(claim.locked for claim in directory(disk, OTHERS).claims())


def test_one_that_another_process_has_open_is_waited_for_or_left_alone(disk: Disk) -> None:
    theirs, free = stored(disk, 110, OTHERS), stored(disk, 100)
    assert open_store(directory(disk), IDENTITY, CHECKPOINT, LOG, now_ms=NOW_MS) is None
    assert {theirs, free} == names(disk)
    opened = open_store(directory(disk), IDENTITY, CHECKPOINT, LOG, now_ms=NOW_MS, despite_locked=True)
    assert isinstance(opened, Opened)
    assert (True, 100) == (opened.is_kept, opened.position)
    opened.engine.close()
    assert {theirs, free} == names(disk)


def test_looking_changes_nothing(disk: Disk) -> None:
    both = {stored(disk, 100), stored(disk, 121)}
    found = look_at_store(directory(disk), IDENTITY, CHECKPOINT, LOG, now_ms=NOW_MS)
    assert found is not None
    assert isinstance(found[0], Keep)
    for claim in found[1]:
        if claim.engine is not None:
            claim.engine.close()
    assert both == names(disk)


def test_a_store_without_a_changelog_begins_empty_whatever_lies_there(disk: Disk) -> None:
    old = stored(disk, 100)
    engine = open_empty(directory(disk), "it starts empty")
    assert engine.stamp() is None
    engine.close()
    assert old not in names(disk)
