"""A local store's description of itself: written in the same batch as the data it describes, so both always agree."""

from __future__ import annotations

from dataclasses import dataclass

from samzapy.model.bounded_json import read_object, to_bytes

VERSION = 1
MAX_BYTES = 65536
_TEXTS = ("job", "id", "task", "store", "topic_id", "key_serde", "value_serde")
_NUMBERS = ("position", "sequence", "as_of_ms")


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """The store's identity (job name and id, task, store) and the format of its entries (names of the serdes)."""

    job: str
    id: str
    task: str
    store: str
    key_serde: str
    value_serde: str


@dataclass(frozen=True, slots=True)
class StoreStamp:
    """The changelog and the position in it that a local store corresponds to.

    Attributes:
        identity: whose store it is.
        topic_id: the changelog topic's id ("" without a changelog).
        position: next offset of the changelog that this store has not applied.
        sequence: the sequence of the newest checkpoint that it contains.
        as_of_ms: when (milliseconds since 1970) it last stood at the log's end; bounds how long tombstones may have been missed.
    """

    identity: StoreIdentity
    topic_id: str
    position: int
    sequence: int
    as_of_ms: int

    def to_bytes(self) -> bytes:
        """One flat JSON object: the names in it are kept, because stores on disk have them."""
        of = self.identity
        fields: dict[str, str | int] = {
            "v": VERSION, "job": of.job, "id": of.id, "task": of.task, "store": of.store, "topic_id": self.topic_id, "position": self.position,
            "sequence": self.sequence, "as_of_ms": self.as_of_ms, "key_serde": of.key_serde, "value_serde": of.value_serde,
        }  # fmt: skip
        return to_bytes(fields)


def stamp_from_bytes(data: bytes) -> StoreStamp:
    """The stamp that `data` holds.

    Raises:
        ValueError: not a stamp of a known version, or fields of wrong types.
    """
    raw = read_object(data, MAX_BYTES)
    if raw.pop("v", None) != VERSION:
        raise ValueError("a store stamp of an unknown version")
    if set(raw) != {*_TEXTS, *_NUMBERS} or not all(type(raw[k]) is str for k in _TEXTS) or not all(type(raw[k]) is int for k in _NUMBERS):
        raise ValueError("a store stamp with fields of wrong names or types")
    identity = StoreIdentity(raw["job"], raw["id"], raw["task"], raw["store"], raw["key_serde"], raw["value_serde"])
    return StoreStamp(identity, raw["topic_id"], raw["position"], raw["sequence"], raw["as_of_ms"])
