"""As much of Kafka's wire format as the proxy needs: frames, request headers, and the addresses in replies.

A frame is a size of four bytes and that many bytes. A request's begin with what it is (api, version), a correlation id that the reply
repeats, and the client's id; that much is the same in every version. Bodies stay unread, with one exception: where a reply names brokers
(Metadata, FindCoordinator, …), each known address is replaced by the proxy's, which keeps clients on the way through it. A host and port stand
side by side in all versions of these replies, the host with its length before it in two bytes, or in one plus one, so they are found
without knowing the version.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

MOST_BYTES = 128 << 20
Address = tuple[str, int]
_HEADER = struct.Struct(">hhih")


class Api(IntEnum):
    """The requests that samzapy's clients make."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_CONFIGS = 32
    DESCRIBE_CLUSTER = 60


_NAMES = {int(api): api.name for api in Api}
NAMES_BROKERS = frozenset({Api.METADATA, Api.FIND_COORDINATOR, Api.DESCRIBE_CLUSTER})


class BrokenFrame(ValueError):
    """Bytes that are not Kafka's."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request's header, and which request it is: the `number`-th of its api from its client, from 1 on."""

    api: int
    version: int
    correlation: int
    client: str
    number: int = 1

    def __str__(self) -> str:
        name = _NAMES.get(self.api, f"api {self.api}")
        return f"{name} {self.number} of {self.client or 'a nameless client'}"


def checked_size(prefix: bytes) -> int:
    """The size of the frame that these four bytes announce.

    Raises:
        BrokenFrame: a size that no frame has.
    """
    (size,) = struct.unpack(">i", prefix)
    if not 4 <= size <= MOST_BYTES:
        raise BrokenFrame(f"a frame of {size} bytes: this is not Kafka's protocol, or it is encrypted")
    return int(size)


def read_request(frame: bytes) -> Request:
    """The header of a request's frame.

    Raises:
        BrokenFrame: it is cut short.
    """
    if len(frame) < _HEADER.size:
        raise BrokenFrame(f"a request of {len(frame)} bytes has no header")
    api, version, correlation, length = _HEADER.unpack_from(frame)
    if len(frame) < _HEADER.size + length:
        raise BrokenFrame("a request's client id is cut short")
    client = frame[_HEADER.size : _HEADER.size + max(length, 0)].decode(errors="replace")
    return Request(api, version, correlation, client)


def read_correlation(frame: bytes) -> int:
    """Which request a reply's frame answers (there are four bytes, `checked_size` said so)."""
    (correlation,) = struct.unpack_from(">i", frame)
    return int(correlation)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def with_addresses(reply: bytes, instead: Mapping[Address, Address]) -> bytes:
    """A reply with every address that is a key replaced by its value."""
    for old, new in instead.items():
        for form in (_plain_form, _compact_form):
            reply = reply.replace(form(old), form(new))
    return reply


def _plain_form(address: Address) -> bytes:
    host = address[0].encode()
    return struct.pack(">h", len(host)) + host + struct.pack(">i", address[1])


def _compact_form(address: Address) -> bytes:
    host = address[0].encode()
    return bytes([len(host) + 1]) + host + struct.pack(">i", address[1])
