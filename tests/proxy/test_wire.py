"""Headers and addresses, byte by byte."""

from __future__ import annotations

import struct

import pytest

from tests.proxy.wire import MOST_BYTES, Api, BrokenFrame, Request, checked_size, framed, read_correlation, read_request, with_addresses


def request(api: int, client: str | None, body: bytes = b"") -> bytes:
    name = struct.pack(">h", -1) if client is None else struct.pack(">h", len(client)) + client.encode()
    return struct.pack(">hhi", api, 3, 77) + name + body


def plain(host: str, port: int) -> bytes:
    return struct.pack(">h", len(host)) + host.encode() + struct.pack(">i", port)


def compact(host: str, port: int) -> bytes:
    return bytes([len(host) + 1]) + host.encode() + struct.pack(">i", port)


def test_a_request_says_what_it_is_and_whose() -> None:
    assert Request(26, 3, 77, "job-1-container-0") == read_request(request(26, "job-1-container-0", b"the rest"))
    assert Request(18, 3, 77, "") == read_request(request(18, None))


def test_a_request_is_printed_by_name_and_number() -> None:
    assert "END_TXN 4 of c" == str(Request(Api.END_TXN, 1, 7, "c", 4))
    assert "api 999 1 of a nameless client" == str(Request(999, 1, 7, ""))


@pytest.mark.parametrize("frame", [b"", b"\0" * 9, request(26, "client")[:-1]])
def test_a_header_that_is_cut_short_is_refused(frame: bytes) -> None:
    with pytest.raises(BrokenFrame):
        read_request(frame)


@pytest.mark.parametrize("size", [-1, 0, 3, MOST_BYTES + 1, int.from_bytes(b"GET ", "big")])
def test_a_size_that_no_frame_has_is_refused(size: int) -> None:
    with pytest.raises(BrokenFrame, match=str(size)):
        checked_size(struct.pack(">i", size))


def test_a_frame_is_its_size_and_its_bytes() -> None:
    assert b"\0\0\0\x06\0\0\0\x4dab" == framed(b"\0\0\0\x4dab")
    assert 6 == checked_size(framed(b"\0\0\0\x4dab")[:4])
    assert 77 == read_correlation(b"\0\0\0\x4dab")


@pytest.mark.parametrize("form", [plain, compact])
def test_addresses_are_replaced_in_either_form(form) -> None:  # type: ignore[no-untyped-def]
    instead = {("127.0.0.1", 9092): ("127.0.0.1", 40001), ("kafka-2.example", 9092): ("127.0.0.1", 40002)}
    reply = b"\0\0\0\x01" + form("127.0.0.1", 9092) + b"-" + form("kafka-2.example", 9092) + b"-" + form("127.0.0.1", 9093)

    replaced = b"\0\0\0\x01" + form("127.0.0.1", 40001) + b"-" + form("127.0.0.1", 40002) + b"-" + form("127.0.0.1", 9093)

    assert replaced == with_addresses(reply, instead)
