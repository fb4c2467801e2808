"""Local state in the way of a command that deletes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from tests.broker import admin, create_topic
from tests.integration.job import Job


@pytest.mark.kafka
def test_a_reset_that_cannot_delete_local_state_deletes_no_topic(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, 1)
    topic = f"__samza_checkpoint_{unique}_1"
    create_topic(kafka, topic)
    cluster = admin(kafka).list_topics(timeout=10).cluster_id
    folder = job.state / cluster / "localhost"
    folder.mkdir(parents=True, mode=0o700)
    (folder / f"{unique}-1").touch()
    refused = job.command("reset", str(job.file), "--execute")
    assert (ConfigurationError.exit_code, True) == (refused.returncode, f"{unique}-1 is a file" in refused.stderr), refused.stderr
    assert "deleting" not in refused.stderr
    assert topic in admin(kafka).list_topics(timeout=10).topics


@pytest.mark.kafka
def test_a_run_whose_local_state_is_a_link_starts_no_container(kafka: str, tmp_path: Path, unique: str) -> None:
    job = Job(kafka, tmp_path, unique, 1)
    folder = job.state / admin(kafka).list_topics(timeout=10).cluster_id / "localhost"
    folder.mkdir(parents=True, mode=0o700)
    (folder / f"{unique}-1").symlink_to(tmp_path)

    refused = job.command("run", str(job.file), "--local", "--until-end")

    assert (ConfigurationError.exit_code, True) == (refused.returncode, f"{unique}-1 is a symbolic link" in refused.stderr), refused.stderr
    assert "container 0" not in refused.stderr
