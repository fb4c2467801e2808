"""A command that deletes topics asks first whether it may."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from samzapy.api.errors import NotAuthorized
from samzapy.cli.undeletable import refuse_undeletable
from samzapy.config.load import load_job
from samzapy.model.acls import Access
from samzapy.ops.letters_again import Newest, newest_letters
from samzapy.testing.memory_log import MemoryAdmin, MemoryCluster, MemoryLog
from tests.unit.container.bench import HandClock

FILE = """
job: job
task: tests.recovery.chain_task:ChainTask
kafka: {bootstrap.servers: "memory:9092"}
inputs: [{topic: in}]
"""


class Guarded(MemoryLog):
    """`kept` may not be deleted; nothing of the dead-letter topic is shown."""

    def admin(self) -> MemoryAdmin:
        class Admin(MemoryAdmin):
            def missing_access(self, wanted: Iterable[Access]) -> list[Access]:
                return [a for a in wanted if a.name == "kept"]

            def topics(self, names: Iterable[str]) -> dict:  # type: ignore[type-arg]
                if any("dead-letter" in name for name in names):
                    raise NotAuthorized("topic: not authorized", "ask")
                return super().topics(names)

        return Admin(self._cluster)


@pytest.fixture
def log() -> Guarded:
    return Guarded(MemoryCluster(HandClock()))


def test_what_may_not_be_deleted_is_refused_by_name(log: Guarded, capsys: pytest.CaptureFixture[str]) -> None:
    refuse_undeletable(["other"], "this reset", log, execute=True)
    refuse_undeletable(["kept", "other"], "this reset", log, execute=False)
    assert "--execute would be refused: this reset needs more than the job itself: Delete on topic kept is missing." in capsys.readouterr().err
    with pytest.raises(NotAuthorized, match="Delete on topic kept is missing"):
        refuse_undeletable(["kept", "other"], "this reset", log, execute=True)


def test_a_job_without_dead_letters_needs_no_access_to_their_topic(log: Guarded, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(FILE)
    settings = load_job([tmp_path / "job.yaml"], []).settings
    assert newest_letters(settings, log, HandClock()) == Newest()

    (tmp_path / "job.yaml").write_text(FILE + "on_error: {then: dead_letter}\n")
    with pytest.raises(NotAuthorized):
        newest_letters(load_job([tmp_path / "job.yaml"], []).settings, log, HandClock())
