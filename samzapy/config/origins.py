"""Each key of the resolved configuration with its value and where that comes from: a line of a file, a `--set`, or the default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samzapy.config.schema import Settings
from samzapy.config.secrets import HIDDEN, is_unreferred, without_secrets
from samzapy.config.tree import Node, dotted, leaves

MAX_SHOWN = 500
DEFAULT = "default"
FREE = ("kafka", "params")  # sections whose keys are the user's: there are no defaults to tell


@dataclass(frozen=True, slots=True)
class Origin:
    """One key. `value`: as text that may be shown; references stay as they are written."""

    key: str
    value: str
    place: str

    def to_json(self) -> dict[str, str]:
        return {"key": self.key, "value": self.value, "from": self.place}


def origins(root: Node, settings: Settings) -> tuple[Origin, ...]:
    """All keys, those that were written first."""
    written = []
    for path, leaf in leaves(root):
        place = "" if leaf.place is None else f"{Path(leaf.place.source.name).name}:{leaf.place.line}"
        written.append(Origin(dotted(path), _shown(path, leaf.value), place))
    known = {origin.key for origin in written}
    defaults = [
        Origin(dotted(path), _shown(path, value), DEFAULT)
        for path, value in _values(settings.model_dump(mode="json", by_alias=True), ())
        if path[0] not in FREE and not any(key == dotted(path) or key.startswith(f"{dotted(path)}.") for key in known)
    ]
    return (*written, *defaults)


def _values(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _values(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _values(item, (*path, i))
    else:
        yield path, value


def _shown(path: tuple[str | int, ...], value: object) -> str:
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    if is_unreferred(path, value):
        return HIDDEN
    return without_secrets(text)[:MAX_SHOWN]
