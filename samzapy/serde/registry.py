"""Serdes by the names that the job file uses: string, integer, json, bytes, `avro:<schema file>`, `record:module:Class` for objects of a class,
and `module:Class` for a user's own serde."""

from __future__ import annotations

import difflib
import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from samzapy.api.errors import ConfigurationError, SerdeError
from samzapy.api.serde import Serde
from samzapy.config.registered import is_registered
from samzapy.serde.basic import BytesSerde, IntegerSerde, JsonSerde, StringSerde, shown
from samzapy.serde.record import PREFIX, record_serde

NAMES = ("string", "integer", "json", "bytes")
_BASIC: dict[str, Serde] = {"string": StringSerde(), "integer": IntegerSerde(), "json": JsonSerde(), "bytes": BytesSerde()}
_REFERENCE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_REMEDY = (
    f"Known are {', '.join(NAMES)}, avro:<schema file>, record:module:Class for objects of a class of yours, and module:Class for a class of "
    "yours with `encode` and `decode`."
)


class NamedSerde(Serde, Protocol):
    """What `serde_named` gives: a serde that knows its name.

    Attributes:
        key_order: 'bytes', or 'signed' where byte order is numeric order once the sign bit is turned over.
        has_prefixes: whether the bytes of a prefix are a prefix of the bytes, so that stores can look keys up by it.
    """

    name: str
    key_order: str
    has_prefixes: bool


class OwnSerde:
    """A user's serde: what it raises is told as a SerdeError, and what it encodes must be bytes."""

    def __init__(self, name: str, serde: Any) -> None:
        self.name = name
        self.key_order: str = getattr(serde, "key_order", "bytes")
        self.has_prefixes: bool = getattr(serde, "has_prefixes", self.key_order == "bytes")
        self._encode = serde.encode
        self._decode = serde.decode

    def encode(self, value: Any) -> bytes:
        try:
            data = self._encode(value)
        except SerdeError:
            raise
        except Exception as error:
            raise SerdeError(
                f"serde {self.name} cannot write {shown(value)}: {type(error).__name__}: {error}.", "Fix its `encode`."
            ) from error
        if type(data) is not bytes:
            raise SerdeError(f"serde {self.name}: `encode` gave {type(data).__name__}, not bytes.", "Let `encode` return bytes.")
        return b"%b" % data  # of its own size, as JSON's (basic.py)

    def decode(self, data: bytes) -> Any:
        try:
            return self._decode(data)
        except SerdeError:
            raise
        except Exception as error:
            raise SerdeError(
                f"serde {self.name} cannot read {shown(data)}: {type(error).__name__}: {error}.", "Fix its `decode`."
            ) from error


def is_users(name: str) -> bool:
    """Whether code of the user's decodes and encodes it."""
    return ":" in name and not name.startswith("avro:") and not is_registered(name)


def serde_named(name: str, folders: Sequence[Path]) -> NamedSerde:
    """The serde that the job file calls `name`; files and modules are looked for in `folders`, in this order.

    Raises:
        ConfigurationError: there is none of that name, or its file or class cannot be used.
    """
    if name in _BASIC:
        return _BASIC[name]  # type: ignore[return-value]
    if name.startswith("avro:"):
        from samzapy.serde.avro import avro_serde  # imports fastavro, which a process without Avro need not wait for

        return avro_serde(name, found_file(name, name.removeprefix("avro:"), folders))
    if name.startswith(PREFIX) and _REFERENCE.fullmatch(name.removeprefix(PREFIX)):
        return record_serde(name, folders)
    if _REFERENCE.fullmatch(name):
        return _own_serde(name, folders)
    near = difflib.get_close_matches(name.lower(), NAMES, 1)
    raise ConfigurationError(f"unknown serde {name!r}{f'; did you mean {near[0]!r}?' if near else '.'}", _REMEDY)


def found_file(name: str, file: str, folders: Sequence[Path]) -> Path:
    places = [folder / file for folder in folders] or [Path(file)]
    for place in places:
        if place.is_file():
            return place
    raise ConfigurationError(
        f"serde {name}: there is no file {' nor '.join(str(p) for p in places)}.", "Give the path from the job file's folder."
    )


def _own_serde(name: str, folders: Sequence[Path]) -> OwnSerde:
    module_name, _, path = name.partition(":")
    for folder in reversed(folders):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    try:
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
        serde = found()
    except Exception as error:  # what a user's module raises at import may be anything
        raise ConfigurationError(f"serde {name} cannot be made: {type(error).__name__}: {error}.", _REMEDY) from error
    if not callable(getattr(serde, "encode", None)) or not callable(getattr(serde, "decode", None)):
        raise ConfigurationError(f"serde {name}: {path} has no methods `encode` and `decode`.", _REMEDY)
    if getattr(serde, "key_order", "bytes") not in ("bytes", "signed"):
        raise ConfigurationError(f"serde {name}: its key_order is {serde.key_order!r}.", "Write 'bytes' or 'signed'.")
    return OwnSerde(name, serde)
