"""The restore decision, rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from samzapy.model.checkpoint import Checkpoint, StoreMark
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.plan.local_store import ChangelogFacts, Keep, Rebuild, decide, deletions_stay_s
from samzapy.plan.start_refusals import Refuse
from samzapy.ports import Claim

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS
IDENTITY = StoreIdentity("job", "1", "Partition 0", "s", "string", "integer")
LOG = ChangelogFacts("log", 0, "topic-id", start=0, barrier=120, delete_retention_ms=DAY_MS)
MARK = StoreMark("log", "topic-id", changelog_start=0, position=100)
CHECKPOINT = Checkpoint(job="job", id="1", task="Partition 0", container=0, incarnation="i", epoch=1, sequence=7, inputs={}, stores={"s": MARK})
STAMP = StoreStamp(IDENTITY, "topic-id", 100, 7, NOW_MS - 10 * DAY_MS)


def decided(
    stamp: StoreStamp | None = STAMP, log: ChangelogFacts = LOG, checkpoint: Checkpoint | None = CHECKPOINT, **found: object
) -> object:
    return decide([Claim("g1", "", None, stamp, **found)], IDENTITY, checkpoint, log, NOW_MS)  # type: ignore[arg-type]


def _changed(changes: dict[str, object]) -> StoreStamp:
    whose = {name: changes[name] for name in changes if hasattr(IDENTITY, name)}
    other = {name: changes[name] for name in changes if name not in whose}
    return replace(STAMP, identity=replace(IDENTITY, **whose), **other)  # type: ignore[arg-type]


def test_a_store_that_has_all_the_checkpoint_names_is_kept_whatever_its_age() -> None:
    assert decided() == Keep("g1", 100, "has all that the checkpoint names")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"job": "other"}, "another job"),
        ({"task": "Partition 1"}, "another job, task"),
        ({"value_serde": "json"}, "serdes"),
        ({"topic_id": "older"}, "replaced"),
        ({"position": 121}, "ahead of the changelog"),
        ({"sequence": 8}, "ahead of the checkpoint"),
        ({"position": 99}, "too old"),
        ({"position": 99, "as_of_ms": NOW_MS - DAY_MS // 2}, "too old"),
        ({"position": 99, "as_of_ms": NOW_MS + 1}, "too old"),
    ],
)
def test_a_store_that_breaks_a_rule_is_rebuilt_and_the_rule_is_told(changes: dict[str, object], words: str) -> None:
    decision = decided(_changed(changes))
    assert isinstance(decision, Rebuild)
    assert words in decision.reason
    assert decision.position == LOG.start


def test_a_store_behind_the_checkpoint_is_kept_if_it_stood_at_the_end_not_long_ago() -> None:
    assert decided(replace(STAMP, position=99, as_of_ms=NOW_MS - DAY_MS // 2 + 1)) == Keep("g1", 99, "recent enough to catch up")


def test_the_changelog_must_still_have_what_would_be_read_next() -> None:
    old = replace(STAMP, position=40, as_of_ms=NOW_MS)
    assert isinstance(decided(old, replace(LOG, start=40)), Refuse)  # truncated since the checkpoint, and the store does not have it all
    decision = decided(old, replace(LOG, start=41), replace(CHECKPOINT, stores={"s": replace(MARK, changelog_start=41)}))
    assert isinstance(decision, Rebuild)
    assert "no longer has" in decision.reason


def test_a_truncated_changelog_is_refused_unless_the_local_store_is_complete() -> None:
    truncated = replace(LOG, start=50)
    refused = decided(None, truncated, problem="damaged")
    assert isinstance(refused, Refuse)
    assert "starts at 50, the checkpoint says 0" in refused.reason
    kept = decided(STAMP, truncated)
    assert isinstance(kept, Keep)
    assert "truncated" in kept.warning


@pytest.mark.parametrize("start", [100, 101, 120])
def test_a_complete_store_needs_nothing_of_what_was_truncated_even_up_to_the_end(start: int) -> None:
    kept = decided(STAMP, replace(LOG, start=start))
    assert isinstance(kept, Keep)
    assert (start, "has all that the checkpoint names") == (kept.position, kept.reason)
    assert "truncated" in kept.warning


def test_a_changelog_that_lost_its_end_is_refused_even_over_a_store_that_looks_good() -> None:
    for stamp in (STAMP, replace(STAMP, position=90, as_of_ms=NOW_MS), None):
        refused = decided(stamp, replace(LOG, barrier=99))
        assert isinstance(refused, Refuse)
        assert "ends at 99, the checkpoint says 100" in refused.reason


def test_a_replaced_changelog_is_refused() -> None:
    refused = decided(STAMP, replace(LOG, topic_id="new"))
    assert isinstance(refused, Refuse)
    assert "samzapy reset" in refused.remedy


@pytest.mark.parametrize(
    ("found", "words"),
    [({"locked": True}, "another process"), ({"problem": "damaged"}, "damaged"), ({}, "nothing was ever committed")],
)
def test_a_directory_that_cannot_be_used_says_why(found: dict[str, object], words: str) -> None:
    decision = decided(None, **found)
    assert isinstance(decision, Rebuild)
    assert words in decision.reason


def test_of_several_good_ones_the_furthest_is_kept() -> None:
    found = [Claim(f"g{p}", "", None, replace(STAMP, position=p)) for p in (100, 110, 105)]
    decision = decide(found, IDENTITY, CHECKPOINT, LOG, NOW_MS)
    assert isinstance(decision, Keep)
    assert decision.generation == "g110"


def test_a_store_is_not_kept_past_deletions_that_it_may_have_missed() -> None:
    assert "too old" in rebuilt(STAMP).reason
    assert isinstance(ordered(replace(STAMP, as_of_ms=NOW_MS - DAY_MS // 3)), Keep)


def rebuilt(stamp: StoreStamp) -> Rebuild:
    decision = ordered(stamp)
    assert isinstance(decision, Rebuild)
    return decision


def ordered(stamp: StoreStamp) -> object:
    """What becomes of it at the start that carries out a `checkpoint set --reset-state`."""
    return decide([Claim("g1", "", None, stamp)], IDENTITY, CHECKPOINT, LOG, NOW_MS, has_deletions_after=True)


@pytest.mark.parametrize(
    ("stamp", "deletions_after", "expected"),
    [
        (None, False, DAY_MS / 1000),
        (replace(STAMP, position=99, as_of_ms=NOW_MS - DAY_MS // 4), False, 0.75 * DAY_MS / 1000),
        (STAMP, False, float("inf")),
        (replace(STAMP, as_of_ms=NOW_MS - DAY_MS // 4), True, 0.75 * DAY_MS / 1000),
    ],
    ids=["all is read", "the rest is read", "nothing is left to read", "but deletions are"],
)
def test_how_long_a_restore_may_take(stamp: StoreStamp | None, deletions_after: bool, expected: float) -> None:
    assert expected == deletions_stay_s(stamp, MARK, LOG, NOW_MS, deletions_after)


def test_without_a_checkpoint_nothing_local_is_trusted() -> None:
    assert decided(replace(STAMP, sequence=0), checkpoint=None) == Rebuild(0, "first start")
    assert decided(replace(STAMP, topic_id="older"), checkpoint=None) == Rebuild(0, "first start")


@pytest.mark.parametrize(("log", "words"), [(LOG, "local store g1 holds committed state"), (replace(LOG, start=1), "starts at offset 1")])
def test_without_a_checkpoint_traces_of_commits_are_refused_unless_it_was_decided_where_to_go_on(log: ChangelogFacts, words: str) -> None:
    refused = decided(checkpoint=None, log=log)
    assert isinstance(refused, Refuse)
    assert words in refused.reason
    assert "samzapy reset JOB.yaml" in refused.remedy
    assert decide([Claim("g1", "", None, STAMP)], IDENTITY, None, log, NOW_MS, is_ordered=True) == Rebuild(log.start, "first start")
