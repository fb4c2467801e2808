"""Ten small jobs, written as somebody would who has read README and docs: each works, is typed, and is short."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "ten"
LONGEST = 40  # lines of a task with its job file
TWO_FILES = {"row": ("row.yaml", "row2.yaml")}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)


def test_there_are_ten_and_each_is_short() -> None:
    names = [path.stem.removeprefix("ten_") for path in FOLDER.glob("ten_*.py")]
    assert len(names) == 10
    for name in names:
        files = [FOLDER / f"ten_{name}.py", *(FOLDER / file for file in TWO_FILES.get(name, (f"{name}.yaml",)))]
        lines = sum(bool(line.strip()) for file in files for line in file.read_text().splitlines())
        assert lines <= LONGEST, name


def test_each_is_typed(tmp_path: Path) -> None:
    check = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", "--cache-dir", str(tmp_path)]
    done = subprocess.run([*check, *map(str, sorted(FOLDER.glob("*.py")))], capture_output=True, text=True, timeout=200, cwd=FOLDER)
    assert (0, "") == (done.returncode, done.stdout)


def test_enrich(harness):
    h = harness("enrich.yaml")
    h.send("users", {"name": "Ada", "country": "UK"}, key="ada")
    for user in ("ada", "bob"):
        h.send("orders", {"item": "pen"}, key=user)
    h.run()
    assert sorted((key, value["country"]) for key, value in h.output("orders-of-countries")) == [("ada", "UK"), ("bob", "?")]


def test_dedup(harness):
    h = harness("dedup.yaml")
    for wait in ("6d", "2d", "0s"):
        h.send("payments", b"5", key="p1")
        h.run()
        h.crash(keep_state=False)
        h.advance(wait)
    assert len(h.output("payments-once")) == 2


def test_running(harness):
    h = harness("running.yaml")
    for cents in (500, -200):
        h.send("bookings", cents, key="a")
        h.run()
        h.crash()
    assert h.output("balances") == [("a", 500), ("a", 300)]


def test_topk(harness):
    h = harness("topk.yaml")
    for page in "aaabbcddddd":
        h.send("views", page, key="u")
    h.run()
    h.advance("10s")
    h.run()
    assert h.output("top-pages")[-1] == ("top", ["d", "a", "b"])


def test_absent(harness):
    h = harness("absent.yaml")
    for sensor, at in (("a", 0), ("b", 30), ("b", 70)):
        h.send("sensors", at, key=sensor)
    h.run()
    for _ in range(2):
        h.advance("5s")
        h.run()
    assert h.output("silent") == [("a", 0)]


def test_fan(harness):
    h = harness("fan.yaml")
    h.send("orders", "pen", key="ada")
    h.send("orders", "ink", key="zoe")
    h.run()
    assert (h.output("orders-north"), h.output("orders-south")) == ([("ada", "pen")], [("zoe", "ink")])
    assert len(h.output("books")) == 2
    assert dict(h.records("orders-south")[0].headers()) == {"origin": b"orders@1"}


def test_evolve(harness):
    h = harness("evolve.yaml")
    h.send_raw("orders", b'{"euros": 1.5}', b"ada")
    h.send_raw("orders", b'{"cents": 200, "shop": "Rome"}', b"bob")
    h.run()
    assert [(key, order.cents, order.shop) for key, order in h.output("orders-2")] == [("ada", 150, "web"), ("bob", 200, "Rome")]


def test_letters(harness):
    h = harness("letters.yaml")
    for text in ("1,000", "many"):
        h.send("texts", text, key="k")
    h.run()
    (letter,) = h.dead_letters()
    assert (letter.value, letter.attempts, h.output("numbers")) == ("many", 2, [("k", 1000)])


def test_row(harness):
    first = harness("row.yaml")
    second = first.then("row2.yaml")
    first.send("lines", "to be or not to be", key="h")
    first.run()
    second.run()
    assert dict(second.output("counts")) == {"to": 2, "be": 2, "or": 1, "not": 1}


def test_backfill(harness):
    h = harness("backfill.yaml")
    for day, cents in (("mon", 1), ("tue", 2), ("mon", 3)):
        h.send("sales", cents, key=day)
    h.end()
    assert sorted(h.output("days")) == [("mon", 4), ("tue", 2)]
