"""When the certificate of a client expires is read from wherever the settings name it, and said where a broker refuses it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import NameOID

from samzapy.api.errors import TlsFailed
from samzapy.kafka.logins import Refusals
from samzapy.kafka.own_certificate import own_certificate

KEY = ec.generate_private_key(ec.SECP256R1())
FILE = "ssl.certificate.location"
REFUSED = KafkaError(KafkaError._TRANSPORT, "ssl://127.0.0.1:9093/bootstrap: Receive failed: error:0A000416:SSL routines::ssl/tls alert certificate unknown")


def certificate(expires: datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a client")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key()).serial_number(x509.random_serial_number())
    return made.not_valid_before(datetime(2001, 1, 1, tzinfo=UTC)).not_valid_after(expires).sign(KEY, hashes.SHA256())


def pem(expires: datetime) -> str:
    return certificate(expires).public_bytes(Encoding.PEM).decode()


def in_days(days: float) -> datetime:
    return (datetime.now(UTC) + timedelta(days=days)).replace(microsecond=0)


@pytest.mark.parametrize("year", [2002, 2026, 2049, 2050, 2199])
def test_the_time_is_that_of_the_certificate_however_it_is_written(tmp_path: Path, year: int) -> None:
    expires = datetime(year, 12, 31, 23, 59, 58, tzinfo=UTC)
    (tmp_path / "own.pem").write_text("# ours\n" + pem(expires) + pem(datetime(2100, 1, 1, tzinfo=UTC)))
    store = serialize_key_and_certificates(b"own", KEY, certificate(expires), None, BestAvailableEncryption(b"secret"))
    (tmp_path / "own.p12").write_bytes(store)
    for settings in (
        {FILE: str(tmp_path / "own.pem")},
        {"ssl.certificate.pem": pem(expires)},
        {"ssl.keystore.location": str(tmp_path / "own.p12"), "ssl.keystore.password": "secret"},
    ):
        found = own_certificate(settings)
        assert found is not None
        assert expires == found.expires


def test_what_cannot_be_read_is_left_to_the_client(tmp_path: Path) -> None:
    whole = pem(in_days(1))
    cut = whole[:200] + "\n-----END CERTIFICATE-----\n"
    for number, text in enumerate(("", "no certificate", cut, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")):
        (tmp_path / f"{number}").write_text(text)
        assert own_certificate({FILE: str(tmp_path / f"{number}")}) is None, text
    (tmp_path / "junk.p12").write_bytes(b"junk")
    assert own_certificate({"ssl.keystore.location": str(tmp_path / "junk.p12"), "ssl.keystore.password": "x"}) is None
    assert own_certificate({FILE: str(tmp_path / "missing")}) is None
    assert own_certificate({"ssl.ca.location": str(tmp_path / "0")}) is None


@pytest.mark.parametrize(("days", "said"), [(-1.0, "act expired at"), (6.9, "look expires in 7 days, at"), (7.1, None)])
def test_people_are_told_a_week_before(tmp_path: Path, days: float, said: str | None) -> None:
    (tmp_path / "own.pem").write_text(pem(in_days(days)))
    own = own_certificate({FILE: str(tmp_path / "own.pem")})
    assert own is not None
    found = own.finding()
    if said is None:
        assert found is None
        return
    assert found is not None
    severity, _, words = said.partition(" ")
    assert severity == found.severity
    assert f"The client certificate {tmp_path}/own.pem (`{FILE}`) {words} {own.until}" in found.sentence
    assert "samzapy restart JOB.yaml" in found.remedy


def test_a_broker_that_refuses_an_expired_certificate_is_not_blamed(tmp_path: Path) -> None:
    file = tmp_path / "own.pem"
    expires = in_days(-1)
    file.write_text(pem(expires))
    refusals = Refusals({FILE: str(file)})
    refusals.heard(REFUSED)
    error = refusals.error("asking")
    assert isinstance(error, TlsFailed)
    assert f"the client certificate {file} (`{FILE}`), which expired at {expires:%Y-%m-%d %H:%M:%S} UTC" in error.message
    assert "Put a new certificate" in error.remedy
    file.write_text(pem(in_days(1)))  # the client that was refused keeps to the old one
    later = refusals.error("asking")
    assert later is not None
    assert error.message == later.message
    assert "a new one was put in its place" in later.remedy


def test_one_that_has_not_expired_is_refused_for_another_reason(tmp_path: Path) -> None:
    (tmp_path / "own.pem").write_text(pem(in_days(1)))
    refusals = Refusals({FILE: str(tmp_path / "own.pem")})
    refusals.heard(REFUSED)
    error = refusals.error("asking")
    assert error is not None
    assert "does not accept this client's certificate, or wants one (certificate unknown)" in error.message
