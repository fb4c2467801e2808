"""The profile of a run loop: what took the time is as wide as it took."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from samzapy.container import profile, sampling
from samzapy.container.profile import LoopProfile, flame_graph, folded


def long_work(turns: int) -> int:
    return sum(i * i for i in range(turns))


def short_work(turns: int) -> int:
    return sum(i * i for i in range(turns))


def spent(text: str, name: str) -> int:
    return sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if name in line)


def test_what_took_longer_is_wider_and_both_files_say_so(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with LoopProfile(tmp_path / "new", "container-0"):
        for _ in range(40):
            long_work(100_000)
            short_work(10_000)
    text = (tmp_path / "new/container-0.folded").read_text()
    assert spent(text, "long_work") > 3 * spent(text, "short_work")
    assert "test_profile:test_what_took_longer_is_wider_and_both_files_say_so;" in text
    assert ";line " in text
    assert before == signal.getsignal(signal.SIGALRM)
    assert (0.0, 0.0) == signal.getitimer(signal.ITIMER_REAL)
    picture = ElementTree.fromstring((tmp_path / "new/container-0.svg").read_text())
    assert any("long_work" in (title.text or "") for title in picture.iter("{http://www.w3.org/2000/svg}title"))
    assert ["container-0.folded", "container-0.svg"] == sorted(p.name for p in (tmp_path / "new").iterdir())


def test_a_call_that_blocks_counts_for_as_long_as_it_blocks(tmp_path: Path) -> None:
    """Its samples come only when it returns: they count for the time since the sample before."""
    with LoopProfile(tmp_path, "loop"):
        threading.Event().wait(0.3)
        long_work(1000)
    text = (tmp_path / "loop.folded").read_text()
    assert spent(text, "threading:") >= 200_000


def test_the_picture_of_known_stacks() -> None:
    stacks = {("a", "b"): 3_000_000, ("a", "<c>"): 1_000_000}
    assert "a;<c> 1000000\na;b 3000000\n" == folded(stacks)
    boxes = {t.text for t in ElementTree.fromstring(flame_graph(stacks, "x")).iter("{http://www.w3.org/2000/svg}title")}
    assert {"a: 4.000 s, 100.0 %", "b: 3.000 s, 75.0 %", "<c>: 1.000 s, 25.0 %"} == boxes


def test_nothing_sampled_is_a_picture_too() -> None:
    assert "0.0 s" in flame_graph({}, "x")


def test_the_number_of_stacks_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST_STACKS", 1)
    with LoopProfile(tmp_path, "loop"):
        for _ in range(20):
            long_work(50_000)
            short_work(50_000)
    assert len((tmp_path / "loop.folded").read_text().splitlines()) <= 2


def test_no_sample_is_taken_while_the_files_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing takes longer than the time between two samples: each sample would begin, and write, inside the one before."""
    monkeypatch.setattr(profile, "WRITE_S", 0.0)
    with LoopProfile(tmp_path, "loop") as loop:
        loop._samples.microseconds.update({(f"frame {i}", f"line {n}"): 50_000 for i in range(100) for n in range(30)})
        for _ in range(20):
            long_work(50_000)
    nested = [line for line in (tmp_path / "loop.folded").read_text().splitlines() if "Sampler._sample" in line]
    assert not nested


def test_a_thread_that_is_not_the_main_one_is_refused(tmp_path: Path) -> None:
    said: list[str] = []

    def enter() -> None:
        try:
            LoopProfile(tmp_path, "loop").__enter__()
        except RuntimeError as error:
            said.append(str(error))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert said


def test_it_ends_once(tmp_path: Path) -> None:
    with LoopProfile(tmp_path, "loop") as loop:
        long_work(100_000)
        loop.end()
        written = (tmp_path / "loop.svg").stat().st_mtime_ns
        assert (0.0, 0.0) == signal.getitimer(signal.ITIMER_REAL)
    assert written == (tmp_path / "loop.svg").stat().st_mtime_ns
