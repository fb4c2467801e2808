"""What `import samzapy` gives, and what it must not bring along."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import samzapy

HEAVY = ("pyspark", "py4j", "confluent_kafka", "rocksdict", "pydantic", "ruamel", "typer", "starlette", "uvicorn", "fastavro", "orjson")
LIMIT_S = 0.5
ROOT = Path(__file__).parents[2]
MISSPELT = "from samzapy import StreamTask, StreamTsk\nfrom samzapy.testing import Harness, Harnes\n"
TYPED = """
from typing import Any
from samzapy import IncomingMessageEnvelope, KeyValueStore, MessageCollector, StreamTask, TaskContext, TaskCoordinator

def half(n: int | None) -> int | None:
    return None if n is None else n // 2 or None

class Typed(StreamTask[str, int]):
    def init(self, context: TaskContext) -> None:
        self.counts: KeyValueStore[str, int] = context.get_store("counts")

    def process(self, envelope: IncomingMessageEnvelope[str, int], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        reveal_type(envelope.key)  #: str
        reveal_type(envelope.message)  #: int
        reveal_type(self.counts.get("a"))  #: int | None
        reveal_type(self.counts.get("a", 0))  #: int
        reveal_type(self.counts.get("a", "none"))  #: int | str
        reveal_type(self.counts["a"])  #: int
        reveal_type(self.counts.update_with("a", lambda n: n + 1, 0))  #: int
        reveal_type(self.counts.update_with("a", half))  #: int | None
        reveal_type(dict(self.counts.all()))  #: dict[str, int]
        reveal_type(self.counts.get_all(["a"]))  #: dict[str, int | None]
        self.counts["a"] = 1
        self.counts["a"] = "1"  # wrong
        self.counts.put(1, 1)  # wrong
        self.counts.get("a") + 1  # wrong
        del self.counts["a"]
        print("a" in self.counts)

class Bare(StreamTask):
    def init(self, context: TaskContext) -> None:
        self.counts = context.get_store("counts")

    def process(self, envelope: IncomingMessageEnvelope, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        reveal_type(envelope.message)  #: Any
        reveal_type(self.counts)  #: samzapy.api.store.KeyValueStore[Any, Any]
        reveal_type(self.counts.get(envelope.key, 0) + 1)  #: Any
        reveal_type(self.counts["a"])  #: Any
        reveal_type(self.counts.update_with("a", lambda n: n + 1, 0))  #: Any

class Keys(StreamTask[str]):
    def process(self, envelope: IncomingMessageEnvelope[str], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        reveal_type(envelope.key)  #: str
        reveal_type(envelope.message)  #: Any
"""


def test_the_public_names() -> None:
    listed = {"KeyValueStore", "OutgoingMessageEnvelope", "RequestScope", "StreamTask", "SystemStream", "TaskCoordinator"}
    listed |= {"MessageCollector", "RecordTooLarge", "StoreClosed", "UnknownOutput"}
    assert listed <= set(samzapy.__all__)


def test_the_names_are_sorted_and_there_once() -> None:
    assert sorted(set(samzapy.__all__)) == list(samzapy.__all__)


def test_every_name_is_there_and_documented() -> None:
    inherited = {object.__doc__, Exception.__doc__, dict.__doc__, tuple.__doc__}
    undocumented = [name for name in samzapy.__all__ if inspect.getdoc(getattr(samzapy, name)) in {None, "", *inherited}]
    assert [] == undocumented


def test_every_public_method_is_documented() -> None:
    undocumented = [
        f"{name}.{method}"
        for name in samzapy.__all__
        for method, value in vars(getattr(samzapy, name)).items()
        if inspect.isfunction(value) and not method.startswith("_") and not inspect.getdoc(value)
    ]
    assert set() == set(undocumented) - {"StreamTask.process"}, "only of process the class itself tells"


@pytest.fixture(scope="module")
def type_checked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `mypy --strict` says about the snippets here and about the examples, in one run."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "wrong.py").write_text(MISSPELT)
    (folder / "typed.py").write_text(TYPED)
    for page in ROOT.glob("docs/how-to/*.md"):
        for name, text in re.findall(r"^`(\w+\.py)`[^\n]*:\n\n```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            if "IncomingMessageEnvelope[" in text:
                (folder / f"page_{name}").write_text(text)
    files = map(str, [folder / "wrong.py", folder / "typed.py", *folder.glob("page_*.py"), *ROOT.glob("jobs/*.py")])
    check = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", "--cache-dir", str(folder)]
    said = subprocess.run([*check, *files], capture_output=True, text=True, timeout=120, cwd=ROOT).stdout
    return said.replace("builtins.", "")  # some versions of mypy write it


def test_a_misspelt_name_is_an_error_to_a_type_checker(type_checked: str) -> None:
    misspelt = re.findall(r'wrong.py:(\d): error: Module "([\w.]+)" has no attribute "(\w+)"', type_checked)
    assert [("1", "samzapy", "StreamTsk"), ("2", "samzapy.testing", "Harnes")] == misspelt, type_checked


def test_a_type_checker_sees_the_types_of_keys_and_values(type_checked: str) -> None:
    expected = [line.split("#: ")[1] for line in TYPED.splitlines() if "#: " in line]
    assert expected == re.findall(r'typed.py:\d+: note: Revealed type is "(.*)"', type_checked), type_checked
    wrong = [str(n) for n, line in enumerate(TYPED.splitlines(), 1) if "# wrong" in line]
    assert wrong == re.findall(r"typed.py:(\d+): error", type_checked), type_checked


def test_the_examples_are_typed(type_checked: str) -> None:
    assert [] == [line for line in type_checked.splitlines() if line.startswith("jobs")]


def test_the_typed_jobs_of_the_pages_are_typed(type_checked: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert 2 <= len(list(tmp_path_factory.getbasetemp().glob("types*/page_*.py")))
    assert [] == [line for line in type_checked.splitlines() if "page_" in line]


def test_importing_brings_no_client_library_along() -> None:
    code = "import sys, samzapy; print('\\n'.join(sys.modules))"
    loaded = set(_python("-c", code).split())
    assert "samzapy" in loaded
    assert set() == loaded & set(HEAVY)


def test_importing_takes_less_than_half_a_second() -> None:
    code = "import time; t = time.process_time(); import samzapy; print(time.process_time() - t)"
    best = min(float(_python("-c", code)) for _ in range(3))
    assert best < LIMIT_S


def _python(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout
