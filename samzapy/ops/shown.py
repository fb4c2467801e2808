"""Keys and values of records as people read them: by their serdes, bounded, and as text that does nothing to a terminal or a page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from samzapy.api.serde import Serde
from samzapy.config.schema import Settings
from samzapy.config.secrets import without_secrets
from samzapy.printable import printable
from samzapy.serde.record import RecordSerde
from samzapy.wiring.job_topics import JobTopics
from samzapy.wiring.serdes import Serdes

BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Undecoded:
    """Bytes that are none of their serde, so that they cannot be taken for something that it read."""

    data: bytes
    why: str


def text_of(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr))


def read(serde: Serde | None, data: bytes | None) -> Any:
    """What a serde reads, to be shown: an object of a class (`record:`) as its JSON says it; without a serde the bytes. Raises as its `decode`."""
    if serde is None or data is None:
        return data
    value = serde.decode(data)
    return serde.plain(value) if isinstance(serde, RecordSerde) else value


def decoded(serdes: Serdes, serde: str, topic: str, part: str, data: bytes | None) -> Any:
    """What the serde of that name reads of a topic's keys or values (`part`); what it cannot read is `Undecoded`."""
    try:
        return read(serdes.of(serde, topic, part), data)
    except Exception as error:  # noqa: BLE001  whatever a serde raises
        return Undecoded(data or b"", f"{type(error).__name__}: {error}")


def serdes_by_topic(settings: Settings) -> dict[str, tuple[str, str]]:
    """The serdes of keys and values of each topic that the job reads or writes."""
    names = JobTopics.of(settings)
    found = {names.changelogs[name]: (store.key, store.value) for name, store in settings.stores.items() if name in names.changelogs}
    internal = settings.stages.internal.values() if settings.stages is not None else ()
    read = {one.topic: (one.key, one.value) for one in (*internal, *settings.inputs)}
    return found | {o.topic: (o.key, o.value) for o in settings.outputs} | read


def shown_headers(headers: Iterable[tuple[str, bytes | None]], limit: int) -> list[list[str | None]]:
    """For a document: names and values of headers, at most `limit` characters of each."""
    return [[without_secrets(printable(name))[:limit], None if data is None else without_secrets(text_of(data))[:limit]] for name, data in headers]


def field(value: Any, data: bytes | None, limit: int, find: str = "") -> dict[str, Any]:
    """For a document: the text of what a serde read, at most `limit` characters of it, how many bytes it is, and why it could not be read. `find`: also
    `is_found`, whether the whole text has this one; it is in the form that `str.casefold` gives."""
    if data is None:
        return {"text": None, "bytes": 0, "is_cut": False, "problem": ""} | ({"is_found": False} if find else {})
    why = value.why if isinstance(value, Undecoded) else ""
    text = without_secrets(text_of((value.data if find else value.data[: 4 * limit]) if isinstance(value, Undecoded) else value))
    told = {"text": text[:limit], "bytes": len(data), "is_cut": len(text) > limit, "problem": without_secrets(printable(why))[:300]}
    return told | ({"is_found": find in text.casefold()} if find else {})
