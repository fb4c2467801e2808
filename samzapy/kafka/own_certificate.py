"""When the certificate of this client expires: from the file, or the text, that the settings name.

librdkafka reads it when a client is made, and does not look at its dates; a broker that does not accept it only ends the connection.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from samzapy.plan.certificate_hint import certificate_finding
from samzapy.plan.finding import Finding

FILE, TEXT, STORE = "ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location"
RENEWED = "Since then a new one was put in its place, and clients that are made from now on read that. If the job has ended, run it again."
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_UTC_TIME, _LONG_TIME, _VERSION = 0x17, 0x18, 0xA0


@dataclass(frozen=True, slots=True)
class Certificate:
    """`named`: for people, where it is."""

    named: str
    expires: datetime

    @property
    def has_expired(self) -> bool:
        return self.left_s <= 0

    @property
    def left_s(self) -> float:
        return (self.expires - datetime.now(UTC)).total_seconds()

    def finding(self) -> Finding | None:
        """What people are to be told of it."""
        return certificate_finding(self.named, self.until, self.left_s)

    @property
    def until(self) -> str:
        return f"{self.expires:%Y-%m-%d %H:%M:%S} UTC"


def own_certificate(settings: Mapping[str, Any]) -> Certificate | None:
    """The certificate that a client made of these settings now would show; None: there is none, or it cannot be read here."""
    try:
        if store := settings.get(STORE):
            expires = _of_store(Path(str(store)), str(settings.get("ssl.keystore.password", "")))
            return None if expires is None else Certificate(f"{store} (`{STORE}`)", expires)
        if file := settings.get(FILE):
            return Certificate(f"{file} (`{FILE}`)", _of_pem(Path(str(file)).read_text("utf-8", "replace")))
        if text := settings.get(TEXT):
            return Certificate(f"in `{TEXT}`", _of_pem(str(text)))
    except (OSError, ValueError, IndexError):
        pass  # whoever makes a client says what is wrong with it
    return None


def _of_pem(text: str) -> datetime:
    """Of the first certificate: the others of the file are its authorities'."""
    begin, end = text.index(_BEGIN), text.index(_END)
    return _not_after(ssl.PEM_cert_to_DER_cert(text[begin : end + len(_END)]))


def _of_store(path: Path, password: str) -> datetime | None:
    """Of a PKCS#12 file, which Python itself cannot read; None: the package is not installed that can."""
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        return None
    found = load_pkcs12(path.read_bytes(), password.encode()).cert
    return None if found is None else found.certificate.not_valid_after_utc


def _not_after(certificate: bytes) -> datetime:
    """Where X.509 has it: Certificate { tbs { [version], serial, algorithm, issuer, validity { notBefore, notAfter } … } … }.

    Raises:
        ValueError: this is no certificate.
    """
    (_, whole), *_ = _parts(certificate)
    (_, signed), *_ = _parts(whole)
    fields = [body for tag, body in _parts(signed) if tag != _VERSION]
    _, (tag, until) = list(_parts(fields[3]))
    if tag not in (_UTC_TIME, _LONG_TIME):
        raise ValueError("no time")
    text = until.decode("ascii")
    if tag == _UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The values of DER that follow each other: tag and content."""
    while data:
        tag, size, begin = data[0], data[1], 2
        if size & 0x80:
            begin += size & 0x7F
            size = int.from_bytes(data[2:begin], "big")
        yield tag, data[begin : begin + size]
        data = data[begin + size :]
