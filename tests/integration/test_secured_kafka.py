"""A Kafka with TLS, passwords and ACLs: what a job needs, what is said when it is refused, and that no password gets out.

One broker for all of these tests. It has two more listeners, with certificates that are of no use: one has expired, one is for another host.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from samzapy.api.errors import ConfigurationError, LogError, NotAuthenticated, TlsFailed
from samzapy.cli.dev import app
from samzapy.config.load import load_job
from samzapy.dev.java import find_java
from samzapy.dev.kafka import LocalKafka
from samzapy.dev.places import write_private
from samzapy.dev.ports import free_ports
from samzapy.dev.secure import ADMIN, LISTENER, KeyStore
from samzapy.kafka.acls import grant, withdraw
from samzapy.kafka.admin import KafkaAdmin
from samzapy.kafka.logins import silent_broker
from samzapy.kafka.producer import KafkaTransactionalProducer
from samzapy.model.acls import Access
from samzapy.ops.acls import access_of
from tests.command_server import run_samzapy
from tests.integration.job import TASK
from tests.integration.processes import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
PRINCIPAL = "User:samzapy"
LIMIT_S = 90.0


@dataclass(frozen=True)
class Secured:
    """The broker, the ports of its two bad listeners, and the authority that signed their certificates."""

    kafka: LocalKafka
    expired: str
    other_name: str
    other_ca: Path

    def settings(self, **changes: str) -> dict[str, Any]:
        return {**self.kafka.client_settings(), **{k.replace("_", "."): v for k, v in changes.items()}}

    @property
    def passwords(self) -> list[str]:
        assert self.kafka.secure is not None
        return [file.read_text() for file in self.kafka.secure.folder.glob("*.password")]


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    directory = Path(tempfile.mkdtemp(prefix="samzapy-secured-"))
    java = find_java()
    port, expired, other = free_ports(3)
    write_private(directory / "password", "of-no-use-to-anybody")
    bad = KeyStore(java, directory / "expired.p12", directory / "password")
    bad.make_authority("another authority")
    bad.export_authority(directory / "other-ca.pem")
    shutil.copy(directory / "expired.p12", directory / "other.p12")
    bad.make_certificate("expired", "ip:127.0.0.1", "-startdate", "-3d", "-validity", "1")
    bad.forget_authority()
    elsewhere = KeyStore(java, directory / "other.p12", directory / "password")
    elsewhere.make_certificate("elsewhere", "dns:elsewhere.example")
    elsewhere.forget_authority()
    listeners = {LISTENER: port, "EXPIRED": expired, "OTHERNAME": other}
    overrides = {
        "listener.security.protocol.map": f"{LISTENER}:SASL_SSL,CONTROLLER:SASL_SSL,EXPIRED:SSL,OTHERNAME:SSL",
        "advertised.listeners": ",".join(f"{name}://127.0.0.1:{at}" for name, at in listeners.items()),
        "listeners": ",".join(f"{name}://127.0.0.1:{at}" for name, at in {**listeners, "CONTROLLER": free_ports(1)[0]}.items()),
    }
    overrides["controller.quorum.voters"] = "1@" + overrides["listeners"].rpartition("//")[2]
    for name, file in (("expired", "expired.p12"), ("othername", "other.p12")):
        store = {"type": "PKCS12", "location": str(directory / file), "password": "of-no-use-to-anybody"}
        overrides |= {f"listener.name.{name}.ssl.keystore.{key}": value for key, value in store.items()}
        overrides[f"listener.name.{name}.ssl.key.password"] = "of-no-use-to-anybody"
    kafka = LocalKafka.start(port=port, directory=directory / "kafka", secure=True, overrides=overrides, tied=True)
    try:
        yield Secured(kafka, f"127.0.0.1:{expired}", f"127.0.0.1:{other}", directory / "other-ca.pem")
    finally:
        kafka.stop()
        shutil.rmtree(directory, ignore_errors=True)


class SecuredJob:
    """A job of the user `samzapy`: topics made by `admin`, a file that names its password's file."""

    def __init__(self, secured: Secured, folder: Path, name: str) -> None:
        self.secured, self.folder, self.name = secured, folder, name
        self.input, self.output = f"{name}-in", f"{name}-out"
        self.admin_settings = secured.kafka.client_settings(ADMIN)
        admin = AdminClient(self.admin_settings)
        for future in admin.create_topics([NewTopic(self.input, 2), NewTopic(self.output, 2)]).values():
            future.result(LIMIT_S)
        module = "task_" + re.sub(r"\W", "_", name)
        (folder / f"{module}.py").write_text(TASK)
        secure = secured.kafka.secure
        assert secure is not None
        document = {
            "job": name, "task": f"{module}:Counting", "params": {"out": self.output},
            "kafka": {**secured.settings(), "sasl.password": f"${{file:{secure.password_file('samzapy')}}}"},
            "inputs": [{"topic": self.input, "value": "string"}],
            "outputs": [{"topic": self.output, "key": "string", "value": "integer"}],
            "stores": {"counts": {"key": "string", "value": "integer"}},
            "commit": {"interval": "200ms"}, "state": {"dir": str(folder / "state")}, "web": {"port": 0},
        }  # fmt: skip
        self.file = folder / f"{name}.yaml"
        self.file.write_text(json.dumps(document))
        self.needs = access_of(load_job([self.file], []).settings)

    def feed(self, words: list[str]) -> None:
        producer = Producer(self.admin_settings)
        for i, word in enumerate(words):
            producer.produce(self.input, word.encode(), partition=i % 2)
        assert 0 == producer.flush(LIMIT_S)

    def outputs(self) -> list[tuple[str, int]]:
        """What a read_committed reader sees."""
        consumer = Consumer({**self.admin_settings, "group.id": "looks-on", "enable.partition.eof": True, "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition(self.output, p, 0) for p in range(2)])
        found, open_ends = [], 2
        while open_ends:
            message = consumer.poll(LIMIT_S)
            assert message is not None
            if message.error() is not None:
                open_ends -= 1
            else:
                found.append(((message.key() or b"").decode(), int.from_bytes(message.value() or b"")))
        consumer.close()
        return sorted(found)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command about this job; it must not show a password."""
        verb, *rest = arguments
        done = run_samzapy([verb, str(self.file), *rest], self.folder, LIMIT_S)
        assert not [p for p in self.secured.passwords if p in done.stdout + done.stderr], "a password was shown"
        return done


# -- the broker ------------------------------------------------------------------------------------------------------------------------


def test_passwords_are_in_files_of_their_user_only_and_in_no_argument_and_no_log(secured: Secured) -> None:
    kafka = secured.kafka
    assert kafka.secure is not None
    assert 0o700 == stat.S_IMODE(kafka.secure.folder.stat().st_mode)
    holding = [f for f in kafka.directory.rglob("*") if f.is_file() and any(p.encode() in f.read_bytes() for p in secured.passwords)]
    assert holding
    assert {0o600} == {stat.S_IMODE(f.stat().st_mode) for f in holding}
    (pid,) = kafka.pids.values()
    arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    assert not [p for p in secured.passwords if p in arguments]


def test_it_is_started_again_without_asking_for_security_and_refuses_to_be_one_without(secured: Secured) -> None:
    again = CliRunner().invoke(app, ["kafka", "start", "--dir", str(secured.kafka.directory)])
    assert 0 == again.exit_code, again.stderr
    assert "${file:" in again.stdout
    assert not [p for p in secured.passwords if p in again.output]
    with pytest.raises(ConfigurationError, match="holds a secured cluster"):
        LocalKafka.start(directory=secured.kafka.directory, secure=False)


# -- who is let in ---------------------------------------------------------------------------------------------------------------------


def refused(settings: dict[str, Any], kind: type[LogError], *words: str) -> None:
    with pytest.raises(kind) as told:
        KafkaAdmin(settings).cluster_id()
    assert 4 == told.value.exit_code
    assert told.value.remedy
    for word in words:
        assert word in told.value.message
    assert str(settings.get("sasl.password")) not in str(told.value)


def test_a_wrong_password_is_named_with_the_user(secured: Secured) -> None:
    refused(secured.settings(sasl_password="wrong-word"), NotAuthenticated, "refused the login of user 'samzapy'", "invalid credentials")


def test_a_wrong_mechanism_is_named_with_those_that_the_broker_has(secured: Secured) -> None:
    refused(secured.settings(sasl_mechanism="SCRAM-SHA-256"), NotAuthenticated, "SCRAM-SHA-512")


def test_a_certificate_of_an_unknown_authority_is_named(secured: Secured) -> None:
    refused(secured.settings(ssl_ca_location=str(secured.other_ca)), TlsFailed, "signed by an authority that is not trusted here")


def tls_only(secured: Secured, servers: str) -> dict[str, Any]:
    return {"bootstrap.servers": servers, "security.protocol": "SSL", "ssl.ca.location": str(secured.other_ca)}


def test_a_certificate_that_has_expired_is_named(secured: Secured) -> None:
    refused(tls_only(secured, secured.expired), TlsFailed, "has expired", secured.expired)


def test_a_certificate_for_another_host_is_named(secured: Secured) -> None:
    refused(tls_only(secured, secured.other_name), TlsFailed, "is not for 127.0.0.1")


def test_a_client_without_tls_is_told_that_the_broker_speaks_it(secured: Secured) -> None:
    assert "speaks TLS" in silent_broker({"bootstrap.servers": secured.kafka.bootstrap_servers})
    assert "" == silent_broker({"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"})


def test_a_producer_that_is_not_let_in_any_more_says_so_instead_of_waiting(secured: Secured) -> None:
    producer = KafkaTransactionalProducer(secured.settings(sasl_password="wrong-word"), "nobody-1-x", 60_000)
    with pytest.raises(NotAuthenticated, match="refused the login"):
        producer.init()
    producer.close()


# -- what it may do --------------------------------------------------------------------------------------------------------------------


def test_a_job_runs_with_the_least_access_and_what_is_missing_is_named(secured: Secured, tmp_path: Path, unique: str) -> None:
    job = SecuredJob(secured, tmp_path, unique)
    job.feed(["a", "b", "a", "b"])

    before = job.command("run", "--local", "--until-end")
    assert 4 == before.returncode, before.stderr
    for need in job.needs:
        assert f"{PRINCIPAL} lacks {need}" in before.stderr
    assert "Traceback" not in before.stderr

    printed = job.command("topics", "--acls").stdout.splitlines()
    assert len(job.needs) == len(printed)
    assert all(line in before.stderr for line in printed)

    grant(job.admin_settings, PRINCIPAL, job.needs)
    ran = job.command("run", "--local", "--until-end")
    assert 0 == ran.returncode, ran.stderr
    assert "lacks" not in ran.stderr
    assert [("a", 1), ("a", 2), ("b", 1), ("b", 2)] == job.outputs()
    assert 0 == job.command("validate", "--connect").returncode
    for verb, *options in (("validate", "--connect"), ("plan", "--local"), ("run", "--local", "--until-end")):
        told = job.command(verb, *options, "--set", "commit.timeout=16m")  # the brokers' limit is not shown to this user
        assert (2, True) == (told.returncode, "commit.timeout is 16m, longer than the brokers allow" in told.stderr), told.stderr
        assert "CRITICAL" not in told.stderr


@pytest.mark.prove
def test_each_operation_that_is_taken_away_is_found_missing(secured: Secured, tmp_path: Path, unique: str) -> None:
    job = SecuredJob(secured, tmp_path, unique)
    admin = KafkaAdmin(secured.settings())
    grant(job.admin_settings, PRINCIPAL, job.needs)
    until(lambda: not admin.missing_access(job.needs), "all is allowed")
    told_of = [n for n in job.needs if n.name in (job.input, job.output) or n.kind != "topic"] + [
        n.only(("Create",)) for n in job.needs if "Create" in n.operations
    ]
    for access in told_of:
        for operation in access.operations:
            one = access.only((operation,))
            withdraw(job.admin_settings, PRINCIPAL, [one])
            found = until(lambda: admin.missing_access(job.needs), f"{one} is missing")
            assert [(access.kind, access.name)] == [(f.kind, f.name) for f in found]
            assert operation in found[0].operations
            grant(job.admin_settings, PRINCIPAL, [one])
    admin.close()


@pytest.mark.prove
def test_doctor_and_validate_name_what_is_missing_and_the_line_that_allows_it(secured: Secured, tmp_path: Path, unique: str) -> None:
    job = SecuredJob(secured, tmp_path, unique)
    grant(job.admin_settings, PRINCIPAL, job.needs)
    taken = next(n for n in job.needs if n.name == job.output).only(("Write",))
    withdraw(job.admin_settings, PRINCIPAL, [taken])
    line = f"--add --allow-principal '{PRINCIPAL}' --operation Write"
    validated, looked = job.command("validate", "--connect"), job.command("doctor", "--json")
    assert 4 == validated.returncode
    assert f"{PRINCIPAL} lacks Write" in validated.stderr
    assert line in validated.stderr
    found = [c for c in json.loads(looked.stdout)["checks"] if c["name"] == "access"]
    assert [("fail", True)] == [(c["state"], line in c["remedy"]) for c in found]


@pytest.mark.prove
def test_a_command_that_needs_more_than_the_job_names_it(secured: Secured, tmp_path: Path, unique: str) -> None:
    job = SecuredJob(secured, tmp_path, unique)
    job.file.write_text(json.dumps({**json.loads(job.file.read_text()), "on_error": {"then": "dead_letter"}}))
    needs = access_of(load_job([job.file], []).settings)
    grant(job.admin_settings, PRINCIPAL, needs)
    producer = Producer(job.admin_settings)
    for value in (b"\xff", b"good"):
        producer.produce(job.input, value, partition=0)
    assert 0 == producer.flush(LIMIT_S)
    assert 0 == job.command("run", "--local", "--until-end").returncode

    def tail(topic: str) -> subprocess.CompletedProcess[str]:
        return run_samzapy(["tail", topic, "--job", str(job.file), "--max", "1", "--value-serde", "bytes"], job.folder, LIMIT_S)

    assert (0, "") == (tail(job.input).returncode, tail(job.input).stderr)
    written = tail(job.output)
    assert (4, True) == (written.returncode, f"Read on topic {job.output} is missing" in written.stderr), written.stderr

    def replay() -> subprocess.CompletedProcess[str]:
        return run_samzapy(["dlq", "replay", str(job.file), "--all", "--execute"], job.folder, LIMIT_S)

    refused = replay()
    assert (4, True) == (refused.returncode, f"Write on topic {job.input} is missing" in refused.stderr), refused.stderr
    grant(job.admin_settings, PRINCIPAL, [Access("topic", job.input, ("Write",), "replay")])
    until(lambda: replay().returncode == 0, "it may write")


@pytest.mark.prove
def test_what_may_not_be_deleted_is_named_before_anything_is_deleted(secured: Secured, tmp_path: Path, unique: str) -> None:
    job = SecuredJob(secured, tmp_path, unique)
    grant(job.admin_settings, PRINCIPAL, job.needs)
    changelog, checkpoints = f"{job.name}-1-counts-changelog", f"__samza_checkpoint_{job.name.replace('-', '_')}_1"
    grant(job.admin_settings, PRINCIPAL, [Access("topic", checkpoints, ("Delete",), "one of those that a reset deletes")])
    job.feed(["a", "b"])
    assert 0 == job.command("run", "--local", "--until-end").returncode
    before = AdminClient(job.admin_settings).list_topics(timeout=LIMIT_S).topics.keys()

    shown, refused = job.command("reset"), job.command("reset", "--execute")
    assert (0, True) == (shown.returncode, "--execute would be refused: this reset needs more" in shown.stderr), shown.stderr
    assert (4, True) == (refused.returncode, f"Delete on topic {changelog} is missing" in refused.stderr), refused.stderr
    assert (False, False) == (f"Delete on topic {checkpoints}" in refused.stderr, "deleting topic" in refused.stderr)

    document = json.loads(job.file.read_text())
    job.file.write_text(json.dumps({**document, "task": "without_stores:Nothing"} | {"stores": {}}))
    (job.folder / "without_stores.py").write_text("from samzapy import StreamTask\n\nclass Nothing(StreamTask):\n    def process(self, *_):\n        pass\n")
    dropped = run_samzapy(["state", "drop", str(job.file), "counts", "--execute"], job.folder, LIMIT_S)
    assert (4, True) == (dropped.returncode, f"dropping this store needs more than the job itself: Delete on topic {changelog} is missing" in dropped.stderr)

    assert before <= AdminClient(job.admin_settings).list_topics(timeout=LIMIT_S).topics.keys()
    job.file.write_text(json.dumps(document))
    job.feed(["a"])
    assert 0 == job.command("run", "--local", "--until-end").returncode
    assert [("a", 1), ("a", 2), ("b", 1)] == job.outputs()
    again = run_samzapy(["checkpoint", "set", str(job.file), "--to-earliest", "--reset-state"], job.folder, LIMIT_S)
    assert 0 == again.returncode, again.stderr  # it looks for dead letters, whose topic this job needs no access to


@pytest.mark.prove
@pytest.mark.parametrize("kind", ["output", "input", "transactions"])
def test_a_permission_that_is_taken_away_while_the_job_runs_ends_it_with_its_name(
    secured: Secured, tmp_path: Path, unique: str, kind: str
) -> None:
    job = SecuredJob(secured, tmp_path, unique)
    grant(job.admin_settings, PRINCIPAL, job.needs)
    job.feed(["a"] * 10)
    taken: dict[str, tuple[str, str]] = {
        "output": (job.output, "Write"), "input": (job.input, "Read"), "transactions": (f"{job.name}-1-", "Write"),
    }  # fmt: skip
    name, operation = taken[kind]
    access: Access = next(n for n in job.needs if n.name == name).only((operation,))
    process = subprocess.Popen(
        [sys.executable, "-m", "samzapy", "run", str(job.file), "--local"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"}, cwd=job.folder,
    )  # fmt: skip
    try:
        until(lambda: len(job.outputs()) == 10, "the first records are committed")
        withdraw(job.admin_settings, PRINCIPAL, [access])
        job.feed(["b"] * 10)
        _, said = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    assert 4 == process.returncode, said
    assert "SZ304" in said
    assert not [p for p in secured.passwords if p in said]
    assert [("a", n) for n in range(1, 6) for _ in range(2)] == [o for o in job.outputs() if o[0] == "a"]


@pytest.mark.prove
@pytest.mark.spark
def test_a_job_runs_on_spark_with_the_least_access_and_its_password_is_nowhere(
    secured: Secured, tmp_path: Path, unique: str, java_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", java_home)
    job = SecuredJob(secured, tmp_path, unique)
    grant(job.admin_settings, PRINCIPAL, job.needs)
    job.feed(["a", "b", "a", "b"])
    ran = job.command("run", "--until-end", "--set", "spark.conf={spark.ui.enabled: 'false'}")
    assert 0 == ran.returncode, ran.stderr
    assert [("a", 1), ("a", 2), ("b", 1), ("b", 2)] == job.outputs()
    assert not [f for f in (tmp_path / "state").rglob("*") if f.is_file() and any(p.encode() in f.read_bytes() for p in secured.passwords)]
