"""What a serde writes takes the memory of its bytes: stores and caches keep it, and count it by its length."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from samzapy.serde.record import RecordSerde
from samzapy.serde.registry import serde_named

MANY, PER_VALUE = 2000, 120  # bytes beside the value's own: Python's, and what an allocator rounds up
OWN = "import orjson\n\nclass Own:\n    encode, decode = staticmethod(orjson.dumps), staticmethod(orjson.loads)\n"
SCHEMA = '{"type": "record", "name": "Total", "fields": [{"name": "user", "type": "string"}, {"name": "n", "type": "long"}]}'


class Struct(msgspec.Struct):
    user: str
    n: int


class Model(BaseModel):
    user: str
    n: int


def serde(name: str, folder: Path) -> tuple[Any, Any]:
    """The serde, and a value's class."""
    if name in ("Struct", "Model"):
        cls = {"Struct": Struct, "Model": Model}[name]
        return RecordSerde(name, cls), cls
    (folder / "own_serde_of_memory.py").write_text(OWN)
    (folder / "total.avsc").write_text(SCHEMA)
    return serde_named(name, [folder]), {"string": lambda user, n: user, "integer": lambda user, n: n, "bytes": lambda user, n: user.encode()}.get(name, dict)


@pytest.mark.parametrize("name", ["string", "integer", "bytes", "json", "avro:total.avsc", "own_serde_of_memory:Own", "Struct", "Model"])
def test_what_is_written_takes_the_memory_of_its_bytes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    made, value = serde(name, tmp_path)
    values = [value(user=f"user {n}", n=10**9 + n) for n in range(MANY)]
    kept: list[bytes] = [b""] * MANY
    tracemalloc.start()
    try:
        for n, one in enumerate(values):
            kept[n] = made.encode(one)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (taken - sum(map(len, kept))) / MANY <= PER_VALUE
