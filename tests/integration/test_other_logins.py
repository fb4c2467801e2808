"""Certificates of clients, and tokens that last for seconds: a job runs with each, and what is wrong with one is said with the keys to look at."""

from __future__ import annotations

import base64
import json
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from samzapy.api.errors import NotAuthenticated, TlsFailed
from samzapy.dev.java import find_java
from samzapy.dev.kafka import LocalKafka
from samzapy.dev.places import write_private
from samzapy.dev.ports import free_ports
from samzapy.dev.secure import KeyStore
from samzapy.kafka.admin import KafkaAdmin
from tests.broker import read_all
from tests.integration.job import Job

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(600)]
PASSWORD = "of-no-use-to-anybody"
LASTS_S = 8
START_S = 240.0
EXPIRES_S = 100  # a job starts in that time
SETTINGS = {"commit": {"interval": "200ms"}, "containers": {"count": 1}, "web": {"port": 0}}


@dataclass(frozen=True)
class Place:
    """A broker with a listener that wants certificates, and one that wants tokens and looks at them again every five seconds."""

    folder: Path
    plain: str
    tls: str
    oauth: str
    kafka: LocalKafka

    def with_certificate(self, name: str) -> dict[str, Any]:
        own = {"ssl.keystore.location": str(self.folder / f"{name}.p12"), "ssl.keystore.password": PASSWORD} if name else {}
        return {"bootstrap.servers": self.tls, "security.protocol": "SSL", "ssl.ca.location": str(self.folder / "ca.pem"), **own}

    def with_token(self, **more: Any) -> dict[str, Any]:
        base = {"bootstrap.servers": self.oauth, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
        return base | {key.replace("_", "."): value for key, value in more.items()}

    def with_own_tokens(self, claims: str) -> dict[str, Any]:
        return self.with_token(enable_sasl_oauthbearer_unsecure_jwt=True, sasl_oauthbearer_config=claims)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("logins")
    java = find_java()
    write_private(folder / "password", PASSWORD)
    authority = KeyStore(java, folder / "authority.p12", folder / "password")
    authority.make_authority("ours")
    authority.export_authority(folder / "ca.pem")
    more = {"expired": ("-startdate", "-3d", "-validity", "1")}
    for name in ("broker", "client", "expired"):
        shutil.copy(authority.path, folder / f"{name}.p12")
        _own_certificate(KeyStore(java, folder / f"{name}.p12", folder / "password"), name, *more.get(name, ()))
    stranger = KeyStore(java, folder / "stranger.p12", folder / "password")
    stranger.make_authority("another")
    _own_certificate(stranger, "stranger")

    plain, tls, oauth, control = free_ports(4)
    at = {"PLAINTEXT": plain, "TLS": tls, "OAUTH": oauth}
    store = {"type": "PKCS12", "location": str(folder / "broker.p12"), "password": PASSWORD}
    login = 'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    overrides = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,OAUTH:SASL_PLAINTEXT",
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in at.items()),
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in {**at, "CONTROLLER": control}.items()),
        "controller.quorum.voters": f"1@127.0.0.1:{control}",
        "listener.name.tls.ssl.client.auth": "required",
        **{f"listener.name.tls.ssl.keystore.{key}": value for key, value in store.items()},
        "listener.name.tls.ssl.key.password": PASSWORD,
        "listener.name.tls.ssl.truststore.type": "PEM",
        "listener.name.tls.ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.oauth.connections.max.reauth.ms": "5000",
        "listener.name.oauth.oauthbearer.sasl.jaas.config": login,
    }
    kafka = LocalKafka.start(port=plain, directory=folder / "kafka", overrides=overrides, tied=True, timeout_s=START_S)
    try:
        yield Place(folder, *(f"127.0.0.1:{port}" for port in (plain, tls, oauth)), kafka)
    finally:
        kafka.stop()


def _own_certificate(store: KeyStore, name: str, *more: str) -> None:
    store.make_certificate(name, "ip:127.0.0.1", *more)
    store.forget_authority()


def runs(job: Job, wait_s: float) -> None:
    """It counts, goes on counting after this time, and stops in order."""
    job.feed(["fox"] * 10)
    with job.running("--local") as running:
        running.until(lambda _: 10 == len(read_all(job.servers, job.output)))
        threading.Event().wait(wait_s)
        job.feed(["fox"] * 10)
        running.until(lambda _: 20 == len(read_all(job.servers, job.output)))
        assert 0 == running.stop()
    assert 20 == sum(job.stored().values())
    log = (job.folder / "run.log").read_text()
    assert [] == [line for line in log.splitlines() if "starts over" in line or "ERROR" in line]


def test_a_job_runs_with_a_certificate_of_its_own(place: Place, tmp_path: Path, unique: str) -> None:
    runs(Job(place.plain, tmp_path, unique, 2, kafka=place.with_certificate("client"), **SETTINGS), 0.0)


@pytest.mark.parametrize(
    ("name", "whose", "remedy"),
    [
        ("", "this client's certificate", "Set `ssl.keystore.location`"),
        ("expired", r"the client certificate \S+/expired.p12 \(`ssl.keystore.location`\), which expired at ", "Put a new certificate, with its key, in its place"),
        ("stranger", "this client's certificate", "the broker trusts"),
    ],
)
def test_a_certificate_that_the_broker_does_not_accept_is_named(place: Place, name: str, whose: str, remedy: str) -> None:
    with pytest.raises(TlsFailed, match=f"the broker at {place.tls} does not accept {whose}") as refused, KafkaAdmin(
        place.with_certificate(name)
    ) as admin:
        admin.cluster_id()
    assert remedy in refused.value.remedy


def test_a_certificate_that_expires_while_the_job_runs_is_named_and_a_new_one_helps(place: Place, tmp_path: Path, unique: str) -> None:
    """Kafka keeps the connections that it has; here they end with the broker's process."""
    shutil.copy(place.folder / "authority.p12", place.folder / "short.p12")
    _own_certificate(KeyStore(find_java(), place.folder / "short.p12", place.folder / "password"), "short", "-startdate", f"-1d+{EXPIRES_S}S", "-validity", "1")
    named = f"client certificate {place.folder}/short.p12 (`ssl.keystore.location`)"
    job = Job(place.plain, tmp_path, unique, 2, kafka=place.with_certificate("short"), **SETTINGS)
    job.feed(["fox"] * 10)
    with job.running("--local") as running:
        running.until(lambda _: 10 == len(read_all(job.servers, job.output)))
        [before] = running.until(lambda status: status["hints"] != [])["hints"]
        assert ("certificate", "look") == (before["code"], before["severity"])
        assert f"The {named} expires in" in before["sentence"]
        [hint] = running.until(lambda status: [hint["severity"] for hint in status["hints"]] == ["act"])["hints"]
        assert f"The {named} expired at" in hint["sentence"]
        place.kafka.kill_broker(1)
        place.kafka.start_broker(1, tied=True)
        assert 10 == len(read_all(job.servers, job.output)), "it answers again"
        told = job.of("status")
        assert f"the {named}, which expired at" in told.stdout + told.stderr
        assert f"The {named} expired at" in told.stdout, "by the run on this host"
        assert 0 == told.returncode
        checked = " ".join(job.command("doctor", str(job.file)).stdout.split())
        assert f"fail certificate: The {named} expired at" in checked
        shutil.copy(place.folder / "client.p12", place.folder / "renewed.p12")
        (place.folder / "renewed.p12").replace(place.folder / "short.p12")
        job.feed(["fox"] * 10)
        running.until(lambda _: 20 == len(read_all(job.servers, job.output)))
        running.until(lambda status: status["state"] == "RUNNING" and not status["reason"] and status["hints"] == [])
        assert 0 == running.stop()
    assert 20 == sum(job.stored().values())
    assert f"the {named}, which expired at" in (job.folder / "run.log").read_text()


def test_a_job_outlives_its_tokens(place: Place, tmp_path: Path, unique: str) -> None:
    runs(Job(place.plain, tmp_path, unique, 2, kafka=place.with_own_tokens(f"principal=me lifeSeconds={LASTS_S}"), **SETTINGS), 2.5 * LASTS_S)


def test_a_token_that_the_broker_does_not_accept_is_named(place: Place) -> None:
    with pytest.raises(NotAuthenticated, match="invalid_token") as refused, KafkaAdmin(
        place.with_own_tokens("principal=me principalClaimName=azp lifeSeconds=60")
    ) as admin:
        admin.cluster_id()
    assert "`sasl.oauthbearer.*`" in refused.value.remedy


class Tokens(BaseHTTPRequestHandler):
    """An authority that gives tokens to whoever knows the secret."""

    given = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        is_known = self.headers["Authorization"] == "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
        now = int(time.time())
        parts = [{"alg": "none"}, {"sub": "me", "iat": now, "exp": now + LASTS_S}]
        token = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."
        answer = {"access_token": token, "token_type": "bearer", "expires_in": LASTS_S} if is_known else {"error": "invalid_client"}
        Tokens.given += is_known
        body = json.dumps(answer).encode()
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def authority() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Tokens)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/token"
    finally:
        server.shutdown()
        server.server_close()


def test_a_job_gets_new_tokens_from_their_authority_and_a_wrong_secret_is_named(
    place: Place, authority: str, tmp_path: Path, unique: str
) -> None:
    oidc = {"sasl_oauthbearer_method": "oidc", "sasl_oauthbearer_client_id": "me", "sasl_oauthbearer_token_endpoint_url": authority}
    good = place.with_token(**oidc, sasl_oauthbearer_client_secret=PASSWORD)
    runs(Job(place.plain, tmp_path, unique, 2, kafka=good, **SETTINGS), 2.5 * LASTS_S)
    clients = 3  # of the driver and the container, at least
    assert Tokens.given > 2 * clients
    with pytest.raises(NotAuthenticated, match="Failed to acquire SASL OAUTHBEARER token") as refused, KafkaAdmin(
        place.with_token(**oidc, sasl_oauthbearer_client_secret="guessed")
    ) as admin:
        admin.cluster_id()
    assert "guessed" not in str(refused.value)
