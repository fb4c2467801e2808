"""The run's token is the first thing that a run writes on its host."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError, SamzapyError
from samzapy.cli import running


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
