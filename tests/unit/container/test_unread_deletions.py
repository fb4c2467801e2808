"""Deletions that compaction removed before a stopped job had read them: whoever runs the job is told, of what, and how the table is filled again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from samzapy import StreamTask
from samzapy.cli.common import as_called
from samzapy.model.checkpoint import CHECKPOINT_KEY, checkpoint_from_bytes
from samzapy.plan.forgetting import without_store
from samzapy.plan.unread_deletions import Unread
from samzapy.streams import App
from samzapy.testing import Harness

DAY_S, HOUR_S = 86_400.0, 3_600.0
COMPACTED = {"cleanup.policy": "compact"}
CHECKPOINTS = "__samza_checkpoint_test_1"


class Enrich(StreamTask):
    def init(self, context: Any) -> None:
        self.users = context.get_store("users")

    def process(self, envelope: Any, collector: Any, coordinator: Any) -> None:
        if envelope.stream == "users":
            self.users.put(envelope.key, envelope.message)
        else:
            collector.send("out", self.users.get(envelope.key), envelope.key)


def of_program(config: dict[str, str] = COMPACTED, **table: Any) -> Harness:
    app = App()
    users = app.table("users", key=str, value=str, **table)
    app.stream("in", key=str, value=str).lookup(users, how="left").map(lambda both: str(both[1]), value=str).to("out")
    return begun(Harness(app), config)


def of_task(config: dict[str, str] = COMPACTED, bootstrap: bool = True) -> Harness:
    kinds = {"key": "string", "value": "json"}
    inputs = [{"topic": "users", "bootstrap": bootstrap, **kinds}, {"topic": "in", **kinds}]
    return begun(Harness(Enrich, inputs=inputs, outputs=[{"topic": "out", **kinds}], stores={"users": kinds}), config)


def begun(h: Harness, config: dict[str, str]) -> Harness:
    """A job whose table has ada and bob, and which is stopped."""
    h.cluster.configure("users", config)
    for key in ("ada", "bob"):
        h.send("users", f"of {key}", key=key)
    h.run()
    h.stop()
    return h


def delete(h: Harness, after_s: float, *more: str) -> None:
    """While the job is stopped ada is deleted, and so much later compaction has removed the deletion."""
    h.send("users", None, key="ada")
    h.clock.advance(after_s)
    h.cluster.compact("users", drop_tombstones=True)
    for key in more:
        h.send("users", f"of {key}", key=key)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


def in_status(h: Harness) -> list[dict[str, str]]:
    return [told for task in h.container.status()["tasks"] for told in task["unread_deletions"]]


@pytest.mark.parametrize("more", [(), ("carl",)], ids=["the deletion was the last record", "others follow"])
@pytest.mark.parametrize(
    ("job", "who", "way_out"),
    [
        (of_program, "the table 'users'", "`samzapy state drop JOB.yaml users --execute`"),
        (of_task, "store 'users'", "`samzapy state drop JOB.yaml users --set stores.users.changelog=false --execute`"),
    ],
)
def test_a_job_that_was_stopped_for_longer_than_deletions_are_kept_says_what_may_be_wrong(
    job: Callable[[], Harness], who: str, way_out: str, more: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    with job() as h:
        delete(h, 3 * DAY_S, *more)
        h.run()
        assert "ada" in h.store("users"), "which is why it has to be said"
        (said,) = warnings(caplog)
        assert said.startswith("Partition 0 goes on in users[0] at 2, 3 days after the last commit; the topic keeps deletions for 24.0 h")
        assert f"So {who} may still have entries that were deleted meanwhile." in said
        (told,) = in_status(h)
        assert way_out in told["remedy"]
        assert as_called(f"{told['sentence']} {told['remedy']}") == said, "commands in the log name the job file, if there is one"
        assert "users" == told["topic"]
        caplog.clear()

        h.restart()
        h.run()
        assert [] == warnings(caplog), "it is said once: by now the task has committed again"


@pytest.mark.parametrize("job", [of_program, of_task])
def test_the_way_out_fills_the_table_again_without_what_was_deleted(job: Callable[[], Harness], caplog: pytest.LogCaptureFixture) -> None:
    with job() as h:
        delete(h, 3 * DAY_S, "carl")
        h.clock.advance(DAY_S)
        drop_store(h)
        h.run()
        assert {"bob": "of bob", "carl": "of carl"} == h.store("users")
        assert [] == warnings(caplog)


def drop_store(h: Harness, store: str = "users", **sections: Any) -> None:
    """What `samzapy state drop` does; then a start."""
    newest = [m.value() or b"" for m in h.records(CHECKPOINTS) if m.key() == CHECKPOINT_KEY][-1]
    h.log.plain_producer("drop").send(CHECKPOINTS, without_store(checkpoint_from_bytes(newest), store).to_bytes(), CHECKPOINT_KEY, 0)
    h.cluster.delete(f"test-1-{store}-changelog")
    h.restart(sets=["commit.interval=2s"], **sections)  # with which it makes the topics that are not there


@pytest.mark.parametrize(("stopped_s", "is_told"), [(3 * DAY_S, True), (60.0, False)])
def test_a_command_that_writes_checkpoints_does_not_hide_how_long_the_job_was_stopped(stopped_s: float, is_told: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Another store is dropped while the job is stopped."""
    kinds = {"key": "string", "value": "json"}
    inputs = [{"topic": "users", "bootstrap": True, **kinds}, {"topic": "in", **kinds}]
    with begun(Harness(Enrich, inputs=inputs, outputs=[{"topic": "out", **kinds}], stores={"users": kinds, "old": kinds}), COMPACTED) as h:
        h.send("users", None, key="ada")
        h.clock.advance(stopped_s)
        if is_told:
            h.cluster.compact("users", drop_tombstones=True)
        drop_store(h, "old", stores={"users": kinds})
        h.run()
        assert is_told == any(said.startswith("Partition 0 goes on in users[0] at 2 (how long after the last commit is not known); ") for said in warnings(caplog))
        assert is_told == bool(in_status(h))


@pytest.mark.parametrize(
    ("job", "stopped_s"),
    [
        (of_program, 11 * HOUR_S),  # half of what deletions are kept
        (lambda: of_program({**COMPACTED, "delete.retention.ms": "604800000"}), 3 * DAY_S),
        (lambda: of_program({"cleanup.policy": "delete"}), 3 * DAY_S),
        (lambda: of_program(broadcast=True), 3 * DAY_S),  # it is read from the start at each start
        (lambda: of_task(bootstrap=False), 3 * DAY_S),  # a stream, as far as samzapy knows
    ],
)
def test_where_no_deletion_can_be_missing_or_nothing_is_known_of_a_table_nothing_is_said(
    job: Callable[[], Harness], stopped_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    with job() as h:
        h.send("users", None, key="ada")
        h.clock.advance(stopped_s)
        h.run()
        assert [] == warnings(caplog)
        assert [] == in_status(h)


@pytest.mark.parametrize("job", [of_program, of_task])
def test_a_task_that_had_read_all_misses_nothing_however_long_it_was_stopped(job: Callable[[], Harness], caplog: pytest.LogCaptureFixture) -> None:
    with job() as h:
        h.clock.advance(30 * DAY_S)
        h.send("in", "x", key="ada")
        h.run()
        assert [] == warnings(caplog)


def test_a_job_that_had_nothing_to_do_for_days_and_is_started_again_has_missed_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with of_program() as h:
        h.run()
        h.advance(3 * DAY_S)  # it runs, and commits nothing
        h.run()
        h.crash()
        h.send("users", None, key="ada")
        h.clock.advance(60.0)
        h.send("users", "of carl", key="carl")
        h.run()
        assert {"bob": "of bob", "carl": "of carl"} == h.store("users")
        assert [] == warnings(caplog)


@pytest.mark.parametrize(
    ("unread", "may"),
    [
        (Unread(position=5, end=6, stopped_ms=50, kept_ms=100), True),
        (Unread(position=5, end=6, stopped_ms=49, kept_ms=100), False),
        (Unread(position=5, end=5, stopped_ms=50, kept_ms=100), False),
        (Unread(position=5, end=6, stopped_ms=-20, kept_ms=100), False),  # clocks differ
        (Unread(position=5, end=6, stopped_ms=0, kept_ms=0), True),
        (Unread(position=5, end=6, stopped_ms=None, kept_ms=100), True),
        (Unread(position=5, end=6, stopped_ms=50, kept_ms=None), False),
    ],
)
def test_when_deletions_may_be_missing(unread: Unread, may: bool) -> None:
    assert may == unread.may_lack_deletions


def test_of_many_partitions_one_line_tells(caplog: pytest.LogCaptureFixture) -> None:
    app = App()
    users = app.table("users", key=str, value=str)
    app.stream("in", key=str, value=str).lookup(users, how="left").map(lambda both: str(both[1]), value=str).to("out")
    with Harness(app, tasks=8) as h:
        h.cluster.configure("users", COMPACTED)
        for partition in range(8):
            h.send("users", "x", key=f"k{partition}", partition=partition)
        h.run()
        h.stop()
        for partition in range(8):
            h.send("users", None, key=f"k{partition}", partition=partition)
        h.clock.advance(3 * DAY_S)
        h.cluster.compact("users", drop_tombstones=True)
        h.run()
    (said,) = warnings(caplog)
    assert " The same holds for users[1], users[2], users[3], users[4], users[5] and 2 more. To fill" in said


def test_status_still_says_it_when_the_container_has_started_over(caplog: pytest.LogCaptureFixture) -> None:
    with of_program() as h:
        delete(h, 3 * DAY_S)
        for _ in range(2):  # before the first commit, and after it
            assert ["users[0]"] == [told["partition"] for told in in_status(h)]
            h.container.drop_all()
            h.container.start()
            assert ["users[0]"] == [told["partition"] for told in in_status(h)]
            h.run()
        assert 1 == len(warnings(caplog))
