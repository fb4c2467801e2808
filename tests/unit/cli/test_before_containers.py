"""What a run does before it starts containers; its token is the first thing that it writes on its host."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from samzapy.api.errors import ClusterUnreachable, ConfigurationError, SamzapyError, TopicMissing
from samzapy.cli import running
from samzapy.cli.job import Job
from samzapy.config.document import settings_from_document
from samzapy.coordinator.token import write_token
from samzapy.ports import TopicSpec
from samzapy.testing.manual_clock import ManualClock
from samzapy.testing.memory_log import MemoryAdmin, MemoryCluster, MemoryLog
from samzapy.wiring.coordinator import input_topics


@pytest.mark.parametrize(
    ("number", "code", "exit_code"),
    [(errno.ENOSPC, "SZ403", 1), (errno.EDQUOT, "SZ403", 1), (errno.EACCES, ConfigurationError.code, 2), (errno.ENOTDIR, ConfigurationError.code, 2)],
)
def test_a_full_disk_is_no_mistake_in_the_job_file(number: int, code: str, exit_code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A service is started again after exit code 1, not after 2."""

    def fails(path: Path, base: Path) -> str:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(running, "write_token", fails)
    with pytest.raises(SamzapyError, match=os.strerror(number)) as refused:
        running._new_token(tmp_path / "token", tmp_path, None)
    assert (code, exit_code) == (refused.value.code, refused.value.exit_code)


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_in_the_place_of_the_jobs_local_stores_is_told_before_a_container_starts(kind: str, tmp_path: Path) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    own = state / "cluster" / "localhost" / "visits-1"
    own.parent.mkdir(parents=True, mode=0o700)
    elsewhere.mkdir()
    if kind == "link":
        own.symlink_to(elsewhere)
    else:
        own.touch()
    token = state / "cluster" / "run" / "visits-1" / "run.token"

    with pytest.raises(ConfigurationError, match=f"visits-1 is a {'symbolic link' if kind == 'link' else 'file'}") as refused:
        running._new_token(token, state, own)

    assert "remove it; its stores are restored from Kafka" in refused.value.remedy
    assert not token.exists()


def test_a_run_whose_spark_does_not_start_leaves_no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever starts the job again would leave one each time."""
    settings = settings_from_document(
        {"job": "j", "task": "x:Y", "kafka": {"bootstrap.servers": "h:1"}, "inputs": [{"topic": "in"}], "state": {"dir": str(tmp_path / "state")},
         "spark": {"master": "spark://127.0.0.1:9"}}, {}
    )  # fmt: skip
    written: list[Path] = []

    def write(path: Path, state: Path) -> str:
        written.append(path)
        return write_token(path, state)

    def none(_: object) -> NoReturn:
        raise ClusterUnreachable("no Spark master answers.", "")

    for name in ("refuse_to_make_again", "refuse_before_topics", "prepare_schemas", "warn_of_missing", "open_files_limit"):
        monkeypatch.setattr(running, name, lambda *_: None)
    monkeypatch.setattr(running, "checked_topics", lambda *_: {})
    monkeypatch.setattr(running, "write_token", write)
    monkeypatch.setattr(running, "spark_launcher", none)
    job: Any = SimpleNamespace(settings=settings, log=None, clock=None, loaded=SimpleNamespace(folders=[]), cluster_id=lambda: "c", names="j-1")
    with pytest.raises(ClusterUnreachable):
        running.Run(job, "run", running.How(local=False), print).run()
    assert [False] == [path.exists() for path in written]


def test_a_cluster_with_a_name_that_leads_elsewhere_is_refused() -> None:
    class Admin(MemoryAdmin):
        def cluster_id(self) -> str:
            return "../other"

    cluster = MemoryCluster(ManualClock())
    job: Any = SimpleNamespace(log=SimpleNamespace(admin=lambda: Admin(cluster)))
    with pytest.raises(ConfigurationError, match=r"the cluster's id '\.\./other' cannot be"):
        Job.cluster_id(job)


def test_a_topic_that_the_broker_does_not_show_is_named() -> None:
    settings = settings_from_document({"job": "j", "task": "x:Y", "kafka": {"bootstrap.servers": "h:1"}, "inputs": [{"topic": "in"}]}, {})
    clock = ManualClock()
    log = MemoryLog(MemoryCluster(clock))
    log.admin().create([TopicSpec("in", 2)])
    with pytest.raises(TopicMissing, match="Kafka does not show topic __samza"):
        input_topics(settings, 2, dict, log, clock)
