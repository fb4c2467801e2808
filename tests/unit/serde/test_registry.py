"""Serdes by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError, SerdeError
from samzapy.serde.registry import serde_named

MODULE = """
class Upper:
    def encode(self, value):
        return value.upper().encode()
    def decode(self, data):
        return data.decode().lower()

class Signed(Upper):
    key_order = "signed"

class Lazy(Upper):
    def encode(self, value):
        return value

class Needy:
    def __init__(self, what): ...

class Empty: ...

class Odd(Upper):
    key_order = "sideways"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "own_serdes_for_test.py").write_text(MODULE)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("own_serdes_for_test", None)


@pytest.mark.parametrize(
    ("name", "order", "prefixes"),
    [("string", "bytes", True), ("integer", "signed", False), ("json", "bytes", False), ("bytes", "bytes", True)],
)
def test_the_basic_ones_know_name_and_order(name: str, order: str, prefixes: bool) -> None:
    serde = serde_named(name, [])
    assert (serde.name, serde.key_order, serde.has_prefixes) == (name, order, prefixes)


def test_a_schema_file_is_found_in_the_first_folder_that_has_it(tmp_path: Path) -> None:
    for folder, kind in (("a", None), ("b", '"long"'), ("c", '"string"')):
        (tmp_path / folder).mkdir()
        if kind:
            (tmp_path / folder / "key.avsc").write_text(kind)
    serde = serde_named("avro:key.avsc", [tmp_path / n for n in "abc"])
    assert (serde.name, serde.encode(1)) == ("avro:key.avsc", b"\x02")
    with pytest.raises(ConfigurationError, match="there is no file"):
        serde_named("avro:other.avsc", [tmp_path / "a"])


def test_a_class_of_the_users(folder: Path) -> None:
    serde = serde_named("own_serdes_for_test:Upper", [folder])
    assert (serde.name, serde.key_order, serde.has_prefixes) == ("own_serdes_for_test:Upper", "bytes", True)
    assert serde.encode("a") == b"A"
    assert serde.decode(b"A") == "a"
    assert serde_named("own_serdes_for_test:Signed", [folder]).key_order == "signed"


def test_what_a_users_serde_raises_is_a_serde_error(folder: Path) -> None:
    serde = serde_named("own_serdes_for_test:Upper", [folder])
    with pytest.raises(SerdeError, match="AttributeError"):
        serde.encode(7)
    with pytest.raises(SerdeError, match="UnicodeDecodeError"):
        serde.decode(b"\xff")
    with pytest.raises(SerdeError, match="not bytes"):
        serde_named("own_serdes_for_test:Lazy", [folder]).encode("text")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("strnig", "did you mean 'string'"),
        ("Integer", "did you mean 'integer'"),
        ("", "unknown serde"),
        ("pickle", "unknown serde"),
        ("avro:", "there is no file"),
        ("own_serdes_for_test:Needy", "cannot be made"),
        ("own_serdes_for_test:Absent", "cannot be made"),
        ("own_serdes_for_test:Empty", "no methods"),
        ("own_serdes_for_test:Odd", "sideways"),
        ("no_such_module_at_all:X", "cannot be made"),
        ("../x:Y", "unknown serde"),
    ],
)
def test_what_cannot_be_used_is_named(folder: Path, name: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        serde_named(name, [folder])
