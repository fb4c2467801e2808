"""What `import samzapy` gives, and what it must not bring along."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import samzapy

HEAVY = ("pyspark", "py4j", "confluent_kafka", "rocksdict", "pydantic", "ruamel", "typer", "starlette", "uvicorn", "fastavro", "orjson")
LIMIT_S = 0.5
ROOT = Path(__file__).parents[2]


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


def test_a_misspelt_name_is_an_error_to_a_type_checker(tmp_path: Path) -> None:
    snippet = tmp_path / "wrong.py"
    snippet.write_text("from samzapy import StreamTask, StreamTsk\nfrom samzapy.testing import Harness, Harnes\n")
    check = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--no-error-summary",
        "--cache-dir",
        str(tmp_path),
        str(snippet),
    ]
    told = subprocess.run(check, capture_output=True, text=True, timeout=120, cwd=ROOT).stdout
    found = re.findall(r'wrong.py:(\d): error: Module "([\w.]+)" has no attribute "(\w+)"', told)
    assert [("1", "samzapy", "StreamTsk"), ("2", "samzapy.testing", "Harnes")] == found, told


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
