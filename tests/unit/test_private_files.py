"""Local state is private, and nothing that somebody else put in its way is followed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError, SamzapyError
from samzapy.config.errors import ConfigError
from samzapy.config.load import load_job
from samzapy.coordinator.token import delete_old_tokens, delete_token, read_token, token_path, write_token
from samzapy.dev.places import made, state_dir
from samzapy.private_files import check_entries, private_directory
from samzapy.store.directory import LocalStoreDirectory, store_path, tasks_there
from samzapy.store.rocks import RocksEngine
from tests.unit.cli.test_main import exit_code

LEVELS = ("cluster", "localhost", "job-1", "Partition 0", "store")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def stores(state: Path) -> LocalStoreDirectory:
    return LocalStoreDirectory(store_path(state, *LEVELS), RocksEngine, state)


def filled(state: Path) -> Path:
    """A state directory with one local store; its generation."""
    name, engine = stores(state).create()
    engine.close()
    return state.joinpath(*LEVELS, name)


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_every_level_is_made_private_from_the_start(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        generation = filled(tmp_path / "new" / "state")
        token = token_path(tmp_path / "new" / "state", "cluster", "job-1", "run")
        write_token(token, tmp_path / "new" / "state")
        cluster = made(tmp_path / "dev", "a Kafka")
    finally:
        os.umask(before)
    below = [path for path in (generation, *generation.parents) if path.is_relative_to(tmp_path / "new")]
    assert {0o700} == {mode(path) for path in (*below, token.parent, cluster)}
    assert 0o600 == mode(token)
    assert 7 + 1 == len(below)


def test_what_an_earlier_version_left_open_is_made_private(tmp_path: Path) -> None:
    state = tmp_path / "state"
    generation = filled(state)
    levels = [path for path in (generation, *generation.parents) if path.is_relative_to(state)]
    for path in levels:
        path.chmod(0o755)
    [claim] = stores(state).claims()
    assert claim.engine is not None
    claim.engine.close()
    assert {0o700} == {mode(path) for path in levels if path != state}


@pytest.mark.parametrize("other", ["nothing", "file", "directory"])
@pytest.mark.parametrize("shared", [0o755, 0o1777])
@pytest.mark.parametrize("make", [True, False])
def test_a_state_directory_that_was_there_keeps_its_mode(other: str, shared: int, make: bool, tmp_path: Path) -> None:
    """It may be a disk on which other services have theirs."""
    if other != "nothing":
        (tmp_path / other).mkdir() if other == "directory" else (tmp_path / other).touch()
    tmp_path.chmod(shared)
    private_directory(tmp_path / "cluster", tmp_path, make)
    assert shared == mode(tmp_path)
    assert (0o700 if make else None) == (mode(tmp_path / "cluster") if (tmp_path / "cluster").exists() else None)


def moved_behind_a_link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere" if path.name == "state" else path.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere" if path.name == "state" else path.parent / "elsewhere")


def replaced_by_a_pipe(path: Path) -> None:
    path.rename(path.parent / "elsewhere")
    os.mkfifo(path)


def replaced_by_a_file(path: Path) -> None:
    path.rename(path.parent / "elsewhere")
    path.touch()


@pytest.mark.parametrize("level", range(1, len(LEVELS) + 1))
@pytest.mark.parametrize(
    ("prepare", "words"),
    [(moved_behind_a_link, "is a symbolic link"), (replaced_by_a_pipe, "is a pipe"), (replaced_by_a_file, "is a file, not a directory")],
)
def test_what_is_no_directory_is_refused_on_every_level(tmp_path: Path, level: int, prepare: Callable[[Path], None], words: str) -> None:
    filled(tmp_path / "state")
    spoiled = (tmp_path / "state").joinpath(*LEVELS[:level])
    prepare(spoiled)
    for attempt in (stores(tmp_path / "state").claims, stores(tmp_path / "state").create):
        with pytest.raises(ConfigurationError) as refused:
            attempt()
        assert f"{spoiled} {words}" in refused.value.message
        assert "remove it" in refused.value.remedy


def test_nobody_is_told_to_remove_a_device() -> None:
    for path in (Path("/dev/null"), Path("/dev/null/state")):
        with pytest.raises(ConfigurationError, match="/dev/null is a device") as refused:
            private_directory(path, path)
        assert "emove" not in refused.value.remedy


def test_a_place_for_a_broker_that_is_none_is_told_in_plain_words() -> None:
    words = {"/dev/null": "it is no directory", "/dev/null/x": "it is no directory", "~nosuchuser/x": "home directory", "/tmp/" + "a" * 300: "too long"}
    for path, told in words.items():
        with pytest.raises(ConfigurationError, match=told):
            made(Path(path), "a broker")


def test_a_user_without_a_home_is_told_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A container image whose user id is in no file of users."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for variable in ("HOME", "XDG_STATE_HOME", "SAMZAPY_STATE"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigurationError, match=r"the home directory of user \d+ is not known") as refused:
        state_dir()
    assert refused.value.remedy == "Set HOME, or XDG_STATE_HOME."
    job = tmp_path / "job.yaml"
    job.write_text("job: a\ntask: tests.unit.config.conftest:Good\nkafka: {bootstrap.servers: 'b:1'}\ninputs: [{topic: a}]\n")
    with pytest.raises(
        ConfigError, match=r"state\.dir: '~/\.samzapy/state' begins with the home directory of a user who is not known here"
    ):
        load_job([job])
    assert 0 == len(load_job([job], [f"state.dir={tmp_path}"]).settings.stores)
    assert 1 == exit_code(["doctor"])
    assert "fail  state.dir: '~/.samzapy/state' begins with the home directory" in capsys.readouterr().out


@pytest.mark.parametrize("level", [4, 5, 6])
def test_a_linked_folder_is_no_task_of_this_host(tmp_path: Path, level: int) -> None:
    """The sweep of stores whose tasks moved away deletes what it finds."""
    generation = filled(tmp_path / "state")
    assert ["Partition 0"] == tasks_there((tmp_path / "state").joinpath(*LEVELS[:3]))
    path = (tmp_path / "state").joinpath(*LEVELS, generation.name)
    path = [path, *path.parents][6 - level]
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert [] == tasks_there((tmp_path / "state").joinpath(*LEVELS[:3]))


@pytest.mark.parametrize("name", ["CURRENT", "SET-ASIDE-NOT", "000009.sst"])
@pytest.mark.parametrize(("make", "words"), [(os.mkfifo, "is a pipe"), (lambda path: os.symlink("/dev/zero", path), "is a symbolic link")])
def test_a_pipe_or_a_link_in_a_store_is_refused_and_not_opened(tmp_path: Path, name: str, make: Callable[[Path], None], words: str) -> None:
    generation = filled(tmp_path / "state")
    (generation / name).unlink(missing_ok=True)
    make(generation / name)
    with pytest.raises(ConfigurationError) as refused:
        stores(tmp_path / "state").claims()
    assert f"{generation / name} {words}" in refused.value.message
    assert f"remove {generation}" in refused.value.remedy


def test_what_belongs_to_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generation = filled(tmp_path / "state")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    monkeypatch.setattr("samzapy.private_files._trusted", lambda: {0, me, me + 1})
    with pytest.raises(ConfigurationError, match="belongs to"):
        stores(tmp_path / "state").claims()
    with pytest.raises(ConfigurationError, match="belongs to"):
        check_entries(generation)


def test_a_base_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state"
    state.mkdir()
    monkeypatch.setattr("samzapy.private_files._trusted", lambda: {os.geteuid() + 1})
    with pytest.raises(ConfigurationError, match="belongs to"):
        private_directory(state / "cluster", state)


@pytest.mark.parametrize("state", ["", "state"])
def test_a_folder_where_everybody_may_rename_is_refused(state: str, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(ConfigurationError) as refused:
        private_directory(shared / state / "cluster", shared / state)
    assert f"{shared} can be written by every user" in refused.value.message
    assert f"chmod o-w {shared}" in refused.value.remedy
    assert [] == list(shared.iterdir())
    shared.chmod(0o1777)  # as /tmp
    private_directory(shared / state / "cluster", shared / state)


def test_a_link_of_ones_own_may_lead_to_the_state_directory(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "state").symlink_to("disk")
    private_directory(tmp_path / "state" / "cluster", tmp_path / "state")
    assert 0o700 == mode(tmp_path / "disk" / "cluster")


@pytest.mark.parametrize("target", ["nowhere", "state"])
def test_a_link_that_leads_nowhere_or_in_a_circle_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "state").symlink_to(target)
    with pytest.raises(ConfigurationError, match="symbolic link"):
        private_directory(tmp_path / "state" / "cluster", tmp_path / "state")


@pytest.mark.parametrize(
    ("make", "words"), [(os.mkfifo, "is a pipe"), (lambda path: os.symlink("/etc/hostname", path), "is a symbolic link")]
)
def test_a_token_that_is_no_file_is_not_read(tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    make(tmp_path / "t")
    with pytest.raises(SamzapyError, match=words):
        read_token(tmp_path / "t", is_ours=True)


def test_a_token_file_that_a_person_names_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("secret\n")
    (tmp_path / "link").symlink_to("file")
    assert "secret" == read_token(tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SamzapyError, match="is a pipe"):
        read_token(tmp_path / "pipe")


def test_the_token_of_a_run_that_has_lived_for_more_than_a_week_outlives_a_second_run_that_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    old, new, newest = (token_path(state, "cluster", "job-1", run) for run in ("old", "new", "newest"))
    token = write_token(old, state)
    os.utime(old, (time.time() - 8 * 86_400,) * 2)
    write_token(new, state)
    assert token == read_token(old)  # nothing says yet that the run of `new` gets the lease
    new.unlink()
    write_token(new, state)
    write_token(newest, state)
    os.utime(newest, (time.time() - 8 * 86_400,) * 2)
    delete_old_tokens(newest)
    assert [new, newest] == sorted(newest.parent.glob("*.token"))


def test_the_parents_of_a_new_token_are_looked_at(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (tmp_path / "foreign").mkdir()
    private_directory(state / "cluster", state)
    (state / "cluster" / "run").symlink_to(tmp_path / "foreign")
    with pytest.raises(ConfigurationError, match="is a symbolic link"):
        write_token(token_path(state, "cluster", "job-1", "run"), state)
    assert [] == list((tmp_path / "foreign").iterdir())


def test_a_token_that_cannot_be_deleted_is_told_and_no_error(tmp_path: Path) -> None:
    token = tmp_path / "folder" / "run.token"
    token.parent.mkdir()
    token.write_text("x")
    assert "" == delete_token(token)
    assert not token.exists()
    assert "" == delete_token(token), "somebody else has deleted it"
    token.mkdir()  # as a file that cannot be deleted: of root nothing else is refused
    assert delete_token(token).startswith(f"the token of this run, {token}, could not be deleted: ")
