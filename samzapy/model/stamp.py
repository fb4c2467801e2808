"""What a local store claims to be: written in the same batch as the data it describes, so it is never ahead of them nor behind."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from samzapy.model.bounded_json import read_object, to_bytes

VERSION = 1
MAX_BYTES = 65536


@dataclass(frozen=True, slots=True)
class StoreStamp:
    """Which position of which changelog a local store stands for.

    Attributes:
        topic_id: the changelog topic's id ("" without a changelog).
        position: next offset of the changelog that this store has not applied.
        sequence: the sequence of the newest checkpoint that it contains.
        as_of_ms: when (milliseconds since 1970) it last stood at the log's end; bounds how long tombstones may have been missed.
        key_serde, value_serde: how its entries are written.
    """

    job: str
    id: str
    task: str
    store: str
    topic_id: str
    position: int
    sequence: int
    as_of_ms: int
    key_serde: str
    value_serde: str

    def to_bytes(self) -> bytes:
        return to_bytes({"v": VERSION, **asdict(self)})


def stamp_from_bytes(data: bytes) -> StoreStamp:
    """The stamp that `data` holds.

    Raises:
        ValueError: not a stamp of a known version, or fields of wrong types.
    """
    raw = read_object(data, MAX_BYTES)
    if raw.pop("v", None) != VERSION:
        raise ValueError("a store stamp of an unknown version")
    expected = {f.name: int if f.name in ("position", "sequence", "as_of_ms") else str for f in fields(StoreStamp)}
    if set(raw) != set(expected) or not all(type(raw[k]) is t for k, t in expected.items()):
        raise ValueError("a store stamp with fields of wrong names or types")
    return StoreStamp(**raw)
