"""Generations: found, made, set aside, removed, and never while another process has them open."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.model.stamp import StoreIdentity, StoreStamp
from samzapy.ports import Claim
from samzapy.store.directory import LocalStoreDirectory, MemoryStoreDirectory, store_path
from samzapy.store.problems import MARKER, StoreCorrupt, StoreDiskFull, StoreLocked, StoreProblem, problem
from samzapy.store.rocks import RocksEngine

STAMP = StoreStamp(StoreIdentity("job", "1", "Partition 0", "counts", "string", "integer"), "topic-id", 7, 3, 0)

HOLDER = """
import sys
from pathlib import Path
from samzapy.store.rocks import RocksEngine
engine = RocksEngine(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
engine.close()
"""


@pytest.fixture
def directory(tmp_path: Path) -> LocalStoreDirectory:
    return LocalStoreDirectory(tmp_path / "Partition 0" / "counts", RocksEngine)


def written(directory: LocalStoreDirectory, position: int) -> str:
    name, engine = directory.create()
    engine.write([(b"a", b"%d" % position)], replace(STAMP, position=position))
    engine.close()
    return name


@pytest.fixture
def held_elsewhere(directory: LocalStoreDirectory) -> Iterator[str]:
    """A generation that another process has open."""
    name = written(directory, 1)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory.root / name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    yield name
    holder.stdin.close()
    holder.wait(timeout=30)
    holder.stdout.close()


def close(claims: list[Claim]) -> None:
    for claim in claims:
        if claim.engine is not None:
            claim.engine.close()


def test_nothing_is_there_at_first(directory: LocalStoreDirectory) -> None:
    assert directory.claims() == []
    directory.clean()
    assert not directory.root.exists()


def test_every_generation_tells_its_stamp(directory: LocalStoreDirectory) -> None:
    names = {written(directory, 5): 5, written(directory, 9): 9}
    claims = directory.claims()
    assert names == {c.generation: c.stamp.position for c in claims if c.stamp}
    assert [c.path for c in claims] == [str(directory.root / c.generation) for c in claims]
    assert all(c.engine is not None and c.engine.get(b"a") == b"%d" % names[c.generation] for c in claims)
    close(claims)


def test_a_generation_never_written_has_no_stamp(directory: LocalStoreDirectory) -> None:
    name, engine = directory.create()
    engine.close()
    (directory.root / "0123456789abcdef").mkdir()  # made, but its process died before it was opened
    claims = directory.claims()
    assert {name: None, "0123456789abcdef": None} == {c.generation: c.stamp for c in claims}
    assert all(c.engine is not None and not c.locked and not c.problem for c in claims)
    close(claims)


def test_what_is_no_generation_is_left_alone(directory: LocalStoreDirectory, tmp_path: Path) -> None:
    written(directory, 1)
    (directory.root / "notes").mkdir()
    (directory.root / "0123456789abcdef").write_text("a file")
    (directory.root / "fedcba9876543210").symlink_to(tmp_path)
    claims = directory.claims()
    assert len(claims) == 1
    close(claims)


def test_set_aside_is_not_claimed_again_and_then_removed(directory: LocalStoreDirectory) -> None:
    old, new = written(directory, 1), written(directory, 2)
    claims = {c.generation: c for c in directory.claims()}
    directory.set_aside(claims[old], "a newer one is there")
    close([claims[new]])
    assert (directory.root / old / MARKER).read_text() == "a newer one is there\n"
    again = directory.claims()
    assert [new] == [c.generation for c in again]
    directory.clean()
    assert [new] == [p.name for p in directory.root.iterdir()]
    assert again[0].engine is not None
    assert again[0].engine.get(b"a") == b"2"  # it was open meanwhile
    close(again)


def test_one_open_elsewhere_is_told_as_locked_and_left(directory: LocalStoreDirectory, held_elsewhere: str) -> None:
    (claim,) = directory.claims()
    assert (claim.generation, claim.engine, claim.stamp, claim.locked) == (held_elsewhere, None, None, True)
    assert "another process has it open" in claim.problem
    directory.set_aside(claim, "it is old")
    assert not (directory.root / held_elsewhere / MARKER).exists()


def test_the_cleaner_leaves_what_another_process_has_open(directory: LocalStoreDirectory, held_elsewhere: str) -> None:
    (directory.root / held_elsewhere / MARKER).write_text("found damaged while in use")
    directory.clean()
    assert (directory.root / held_elsewhere / "CURRENT").exists()
    assert directory.claims() == []


def test_a_killed_owner_leaves_no_lock(directory: LocalStoreDirectory) -> None:
    name = written(directory, 1)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory.root / name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    holder.kill()
    holder.communicate(timeout=30)
    (claim,) = directory.claims()
    assert (claim.locked, claim.stamp) == (False, replace(STAMP, position=1))
    close([claim])


def test_one_open_in_this_process_is_locked_too(directory: LocalStoreDirectory) -> None:
    _, engine = directory.create()
    (claim,) = directory.claims()
    assert claim.locked
    engine.close()


@pytest.mark.parametrize("damage", ["CURRENT", "MANIFEST"])
def test_a_damaged_one_is_told_set_aside_and_removed(directory: LocalStoreDirectory, damage: str) -> None:
    name = written(directory, 1)
    for path in (directory.root / name).glob(f"{damage}*"):
        path.write_bytes(b"nonsense")
    (claim,) = directory.claims()
    assert (claim.engine, claim.stamp, claim.locked) == (None, None, False)
    assert "damaged" in claim.problem
    directory.set_aside(claim, claim.problem)
    assert directory.claims() == []
    directory.clean()
    assert list(directory.root.iterdir()) == []


def test_a_full_disk_is_no_reason_to_give_a_store_up(tmp_path: Path) -> None:
    good = LocalStoreDirectory(tmp_path, RocksEngine)
    names = sorted([written(good, 1), written(good, 2)])

    def open_but_the_last(path: Path) -> RocksEngine:
        if path.name == names[-1]:
            raise problem(path, "opening", "IO error: No space left on device: While appending to file")
        return RocksEngine(path)

    with pytest.raises(StoreDiskFull, match="the disk is full"):
        LocalStoreDirectory(tmp_path, open_but_the_last).claims()
    claims = good.claims()
    assert [c.generation for c in claims if c.engine] == names  # the first was closed again
    close(claims)


def test_where_nothing_can_be_made_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigurationError, match="file is a file, not a directory"):
        LocalStoreDirectory(tmp_path / "file" / "counts", RocksEngine).create()
    with pytest.raises(StoreProblem, match="cannot be created: File name too long"):
        LocalStoreDirectory(tmp_path / ("x" * 300), RocksEngine).create()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("IO error: While lock file: /x/LOCK: Resource temporarily unavailable", StoreLocked),
        ("IO error: lock hold by current process, acquire time 1 acquiring thread 2: /x/LOCK: No locks available", StoreLocked),
        ("IO error: No space left on device: While appending to file: /x/000012.sst", StoreDiskFull),
        ("IO error: Disk quota exceeded: While appending to file: /x/000012.sst", StoreDiskFull),
        ("IO error: While appending to file: /x/000012.sst: File too large", StoreDiskFull),
        ("Corruption: block checksum mismatch", StoreCorrupt),
        ("IO error: No such file or directory: While open a file for random read: /x/000012.sst", StoreCorrupt),
        ("Invalid argument: rocksdict: does not match existing comparator", StoreCorrupt),
        ("IO error: While open a file for appending: /x/LOG: Permission denied", StoreProblem),
        ("IO error: Too many open files", StoreProblem),
    ],
)
def test_problems_are_told_apart(text: str, kind: type[StoreProblem]) -> None:
    found = problem(Path("/x"), "opening", text)
    assert type(found) is kind
    assert "/x" in found.message
    assert found.remedy


def test_the_memory_directory_is_empty_at_every_start() -> None:
    directory = MemoryStoreDirectory()
    name, engine = directory.create()
    engine.write([(b"a", b"1")], STAMP)
    directory.set_aside(Claim(name, "", engine, STAMP), "unused")
    directory.clean()
    assert directory.claims() == []
    assert directory.create()[1].stamp() is None


def test_the_path_is_made_of_cluster_host_job_task_and_store() -> None:
    path = store_path(Path("/state"), "5L6g3nShT-eMCtK--X86sw", "127.0.0.2", "page-views-1", "Partition 3", "counts")
    assert str(path) == "/state/5L6g3nShT-eMCtK--X86sw/127.0.0.2/page-views-1/Partition 3/counts"
    assert not str(store_path(Path("~/s"), "c", "localhost", "j-1", "t", "s")).startswith("~")
    assert store_path(Path("/s"), "c", "[::1]", "j-1", "t", "s").parts[3] == "[::1]"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", "../up", "a\x00b", "a\\b", "a\nb", " a", "a" * 251])
def test_a_name_that_could_be_a_path_is_refused(name: str) -> None:
    for place in range(5):
        names = ["c", "h", "j-1", "t", "s"]
        names[place] = name
        with pytest.raises(ConfigurationError, match="cannot be a directory's name"):
            store_path(Path("/state"), *names)
