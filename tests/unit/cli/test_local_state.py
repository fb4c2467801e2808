"""Local state that this user may not delete: noticed before anything is changed. What stands in the way of a run's own process, too."""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError, LauncherError
from samzapy.cli.this_process import ADDRESS_SPACE_BYTES, refuse_too_little_address_space
from samzapy.local.launcher import ProcessLauncher
from samzapy.store.problems import StoreProblem
from samzapy.wiring.local_state import refuse_unremovable, remove_local_state

NOBODY = 65534


@pytest.fixture
def base() -> Iterator[Path]:
    """A state directory with a store. Root may delete everything, so for the length of the test it is somebody else."""
    base = Path(tempfile.mkdtemp())
    (base / "c/localhost/job-1/Partition 0/counts").mkdir(parents=True, mode=0o700)
    (base / "c/localhost/job-1/Partition 0/counts/file").touch()
    is_root = os.geteuid() == 0
    if is_root:
        for path in (base, *base.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield base
    finally:
        if is_root:
            os.seteuid(0)
        for path in base.rglob("*"):
            if path.is_dir():
                path.chmod(0o700)
        shutil.rmtree(base)


def test_a_store_that_may_not_be_deleted_is_named_with_the_user_and_nothing_is_changed(base: Path) -> None:
    folder, store = base / "c/localhost/job-1", base / "c/localhost/job-1/Partition 0/counts"
    refuse_unremovable(folder, base)
    for path in (store, store.parent, folder, folder.parent):
        path.chmod(0o500)
        with pytest.raises(ConfigurationError) as refused:
            refuse_unremovable(folder, base)
        assert f"user {os.geteuid()} may not delete what is in {path} (it belongs to user {os.geteuid()})" in refused.value.message
        assert "nothing was changed" in refused.value.message
        path.chmod(0o700)
    remove_local_state(folder, base)
    assert not folder.exists()


def test_a_file_system_that_is_mounted_read_only_is_named_as_that(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = base / "c/localhost/job-1"
    folder.chmod(0o500)
    mounted = os.statvfs(base)
    read_only = os.statvfs_result((*mounted[:8], mounted.f_flag | os.ST_RDONLY, mounted.f_namemax))
    monkeypatch.setattr(os, "statvfs", lambda path: read_only)
    with pytest.raises(ConfigurationError, match="cannot be deleted: its file system is mounted read-only; nothing was changed") as refused:
        refuse_unremovable(folder, base)
    assert "chown" not in refused.value.remedy


def test_a_folder_that_cannot_even_be_looked_into_is_told_in_the_same_way(base: Path) -> None:
    folder = base / "c/localhost/job-1"
    folder.parent.chmod(0)
    with pytest.raises(ConfigurationError, match="may not delete what is in"):
        refuse_unremovable(folder, base)


def test_what_fails_all_the_same_is_told_with_what_was_done(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(folder: Path) -> None:
        raise OSError(1, "Operation not permitted", str(folder / "file"))  # as of a file that is immutable

    monkeypatch.setattr(shutil, "rmtree", refused)
    with pytest.raises(StoreProblem, match=r"file could not be deleted: Operation not permitted .*All else was done"):
        remove_local_state(base / "c/localhost/job-1", base)
    monkeypatch.undo()


def test_too_little_address_space_is_said_before_a_client_waits_for_ever() -> None:
    with pytest.raises(ConfigurationError) as refused:
        refuse_too_little_address_space(700_000 << 10)
    assert "683 MiB of address space (`ulimit -v`)" in refused.value.message
    assert f"ulimit -v {ADDRESS_SPACE_BYTES >> 10}" in refused.value.remedy
    refuse_too_little_address_space(ADDRESS_SPACE_BYTES)
    refuse_too_little_address_space(resource.RLIM_INFINITY)


def test_a_container_whose_python_cannot_be_executed_is_told_with_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.touch(0o600)
    monkeypatch.setattr(sys, "executable", str(python))
    launcher = ProcessLauncher()
    with pytest.raises(LauncherError) as refused:
        launcher.launch(0, {}, None)
    launcher.close()
    assert f"container 0 was not started: {python}: Permission denied." in refused.value.message
    assert "see that this user may execute it" in refused.value.remedy
