"""The web listener beyond loopback: refused without TLS, https only with it, certificates checked, fixed tokens that are shown nowhere."""

from __future__ import annotations

import contextlib
import datetime
import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from samzapy import http_client
from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.cli.coordinator_http import http_json
from samzapy.cli.web_listener import context_of, fixed_tokens, name_of
from samzapy.config.load import load_job
from samzapy.config.web_settings import WebSettings
from samzapy.coordinator.http import Listener
from samzapy.http_client import NO_ANSWER, ask, trust
from samzapy.model.ownership import LEASE_KEY, LeaseRecord, Ledger, UnreadableRecord
from samzapy.web.access import May
from samzapy.web.app import web_app
from samzapy.wiring.coordinator import for_containers
from tests.page.staged import TOKEN, J, Stage, contents, live

LONG_S = 30.0
FIXED = "a-fixed-token-of-a-scraper"


def web(**settings: Any) -> WebSettings:
    return WebSettings.model_validate(settings)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate that signs itself, for localhost, and its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256())
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(private)
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture(autouse=True)
def trusted() -> Iterator[None]:
    yield
    http_client._trusted.clear()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9"])
def test_on_loopback_no_certificate_is_needed(host: str) -> None:
    assert context_of(web(host=host)) is None


def test_after_a_proxy_no_certificate_is_needed() -> None:
    assert context_of(web(host="0.0.0.0", proxy=True)) is None


def test_a_certificate_that_is_none_is_refused(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    cert, key = pair
    for files in ({"cert": tmp_path / "gone", "key": key}, {"cert": key, "key": cert}, {"cert": cert, "key": cert}):
        with pytest.raises(ConfigurationError, match="cannot be used"):
            context_of(web(tls={name: str(path) for name, path in files.items()}))


def test_it_answers_by_https_only_and_to_those_who_know_its_certificate(pair: tuple[Path, Path]) -> None:
    async def told(_: Any) -> PlainTextResponse:
        return PlainTextResponse(json.dumps({"is": "told"}))

    settings = web(host="0.0.0.0", names=["localhost"], tls={"cert": str(pair[0]), "key": str(pair[1])})
    app = Starlette(routes=[Route("/x", told)])
    listener = Listener(app, "127.0.0.1", 0, tls=context_of(settings), name=name_of(settings), head_s=LONG_S)
    listener.start()
    port = int(listener.url.rpartition(":")[2])
    silent = socket.create_connection(("127.0.0.1", port))  # never begins to shake hands: nobody waits for it
    try:
        assert f"https://localhost:{port}" == listener.url
        with pytest.raises(ClusterUnreachable, match="CERTIFICATE_VERIFY_FAILED"):
            http_json("GET", f"{listener.url}/x", timeout_s=LONG_S)
        trust(pair[0])
        assert {"is": "told"} == http_json("GET", f"{listener.url}/x", timeout_s=LONG_S)
        with pytest.raises(ClusterUnreachable, match="CERTIFICATE_VERIFY_FAILED"):
            http_json("GET", f"https://127.0.0.1:{port}/x", timeout_s=LONG_S)  # of another name
        with pytest.raises(NO_ANSWER):
            ask("GET", "127.0.0.1", port, "/x", LONG_S)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_1
        with pytest.raises(OSError), socket.create_connection(("127.0.0.1", port)) as plain:
            old.wrap_socket(plain)
    finally:
        silent.close()
        listener.stop()


def test_connections_that_never_shake_hands_are_closed_to_make_room_as_others_are(pair: tuple[Path, Path]) -> None:
    settings = web(host="0.0.0.0", names=["localhost"], tls={"cert": str(pair[0]), "key": str(pair[1])})
    listener = Listener(Starlette(), "127.0.0.1", 0, tls=context_of(settings), name=name_of(settings), head_s=LONG_S)
    listener.start()
    port, per_peer = int(listener.url.rpartition(":")[2]), listener._server.door.per_peer
    silent = [socket.create_connection(("127.0.0.1", port), LONG_S) for _ in range(2 * per_peer)]
    try:
        for connection in silent[:per_peer]:  # the first ones; else each of them would wait for as long as a head may take
            connection.settimeout(LONG_S / 2)
            with contextlib.suppress(ConnectionResetError):
                assert b"" == connection.recv(1)
    finally:
        for connection in silent:
            connection.close()
        listener.stop()


def test_fixed_tokens_open_what_they_say_and_wrong_ones_nothing() -> None:
    facts = live(stage := Stage())
    given = fixed_tokens(web(tokens={"view": FIXED}))
    assert {May.VIEW: FIXED} == given
    client = TestClient(web_app(facts, facts, contents(stage), TOKEN, tokens=given), base_url="http://127.0.0.1:1")
    bearer = {"Authorization": f"Bearer {FIXED}"}
    assert 200 == client.get(f"{J}/events", headers=bearer).status_code
    assert 403 == client.post(f"{J}/scale", json={"containers": 1}, headers=bearer).status_code
    assert 403 == client.get(f"{J}/events", headers={"Authorization": f"Bearer {FIXED}x"}).status_code


def test_a_fixed_token_is_shown_nowhere_and_containers_do_not_get_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(FIXED + "\n")
    file = tmp_path / "job.yaml"
    head = 'job: j\ntask: cfg_tasks:Good\nkafka: {bootstrap.servers: "h:9092"}\ninputs:\n  - {topic: a}\n'
    file.write_text(f'{head}web: {{tokens: {{view: "${{file:{tmp_path}/token}}", operate: "${{OPERATE}}"}}}}\n')
    loaded = load_job([file], [], {"OPERATE": "another-token-of-the-operators"})
    assert {May.VIEW: FIXED, May.OPERATE: "another-token-of-the-operators"} == fixed_tokens(loaded.settings.web)
    shown = json.dumps([origin.to_json() for origin in loaded.origins]) + json.dumps(loaded.document)
    assert FIXED not in shown
    assert "another-token" not in shown
    assert {"web", "spark"}.isdisjoint(for_containers({**loaded.document, "spark": {"conf": {"spark.authenticate.secret": "${SECRET}"}}}))


@pytest.mark.parametrize("token", ["short", "", 7, "with spaces in it, and long", "x" * 201])
def test_what_is_no_token_is_refused_without_showing_it(token: Any) -> None:
    with pytest.raises(ValueError, match="no token") as refused:
        web(tokens={"view": token})
    assert str(token) not in str(refused.value).split("input_value")[0] or token in ("", 7)


def test_a_lease_names_the_address_of_https_too() -> None:
    ledger = Ledger()
    lease = LeaseRecord(run_id="r", url="https://driver.example:8443", host="h", pid=1, process_start="s", renewed_ms=1)
    ledger.apply(LEASE_KEY, lease.to_bytes())
    assert lease == ledger.lease
    for wrong in ("https://a@b", "https://a/x", "ftp://a", "https://"):
        with pytest.raises(UnreadableRecord):
            ledger.apply(LEASE_KEY, replace(lease, url=wrong).to_bytes())
