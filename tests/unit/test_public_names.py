"""What `import samzapy` gives, and what it must not bring along."""

from __future__ import annotations

import inspect
import subprocess
import sys

import samzapy

HEAVY = ("pyspark", "py4j", "confluent_kafka", "rocksdict", "pydantic", "ruamel", "typer", "starlette", "uvicorn", "fastavro", "orjson")
LIMIT_S = 0.5


def test_the_names_are_those_that_the_contract_lists() -> None:
    listed = {"KeyValueStore", "OutgoingMessageEnvelope", "RequestScope", "StreamTask", "SystemStream", "TaskCoordinator"}
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
