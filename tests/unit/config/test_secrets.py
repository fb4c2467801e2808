"""What is a secret of this process's is left out of its log and of what it tells of a user's error."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import pytest

from samzapy.config import secrets
from samzapy.config.document import settings_from_document
from samzapy.config.load import load_job
from samzapy.config.reader import parse, read_file
from samzapy.config.references import written_secrets
from samzapy.config.secrets import SecretsHidden, keep_out, without_secrets
from samzapy.container.failure import brief, described, named, stack_of


@pytest.fixture(autouse=True)
def own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_kept_out", set())


def test_secrets_are_hidden_and_short_ones_are_not_looked_for() -> None:
    keep_out(["hunter2", "hunter2-long", "line\nbreak", "abc"])
    assert "a *** b *** c *** d *** e abc" == without_secrets("a hunter2 b hunter2-long c line\nbreak d line\\nbreak e abc")


def test_a_container_keeps_out_what_its_document_resolves_to() -> None:
    document = {
        "job": "j", "task": "m:T", "inputs": [{"topic": "in"}], "kafka": {"bootstrap.servers": "nobody:9", "sasl.password": "${PW}"},
        "params": {"api_token": "Bearer ${TOKEN}", "deep": [{"db_password": "literal-one"}], "url": "${DB_SECRET}", "shown": "${PLAIN}"},
    }  # fmt: skip
    settings_from_document(document, {"PW": "pw-of-kafka", "TOKEN": "t0ken-of-api", "DB_SECRET": "db-secret", "PLAIN": "plain-text"})
    assert "*** *** *** *** *** plain-text" == without_secrets(
        "pw-of-kafka t0ken-of-api Bearer t0ken-of-api literal-one db-secret plain-text"
    )


def test_a_secret_that_is_partly_a_reference_is_neither_shown_nor_told(tmp_path: Path) -> None:
    """`$${` stands for a literal `${`, and a text around a reference may be most of the secret."""
    document = {
        "job": "j", "task": "m:T", "inputs": [{"topic": "in"}], "params": {"db_password": "hunter3-${SUFFIX}", "other_password": "${WHOLE}"},
        "kafka": {
            "bootstrap.servers": "nobody:9", "security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "hunter4$${Q}",
        },
    }  # fmt: skip
    (tmp_path / "job.yaml").write_text(json.dumps(document))
    loaded = load_job([tmp_path / "job.yaml"], [], {"SUFFIX": "abc", "WHOLE": "hunter5"})
    shown = {origin.key: origin.value for origin in loaded.origins if "password" in origin.key}
    assert shown == {"params.db_password": "***", "params.other_password": "${WHOLE}", "kafka.sasl.password": "***"}
    assert {"params.db_password", "kafka.sasl.password"} == set(loaded.written_secrets)
    assert "*** and *** and ***" == without_secrets("hunter3-abc and hunter4${Q} and hunter5")


def test_a_password_of_the_client_that_stands_in_the_file_is_kept_out_of_what_is_told() -> None:
    kafka = {"bootstrap.servers": "nobody:9", "sasl.password": "literal-two", "ssl.key.location": "/etc/key-of-mine.pem", "ssl.key.password": "literal-three"}
    settings_from_document({"job": "j", "task": "m:T", "inputs": [{"topic": "in"}], "kafka": kafka}, {})
    assert "***, ***, /etc/key-of-mine.pem" == without_secrets("literal-two, literal-three, /etc/key-of-mine.pem")


DSN = "postgres://me:hunter22@host/db"
JWT = f"eyJ{'hbGci' * 4}.eyJ{'zdWIi' * 4}.{'s-_9' * 8}"  # as one looks
PARAMS = {"dsn": DSN, "other_dsn": "${MY_DSN}", "Authorization": "Bearer t0ken1", "home": "https://host:443/a@b"}


def test_a_login_within_a_text_is_a_secret_whatever_its_key_is(tmp_path: Path) -> None:
    """On the page, in what travels, and in what is told."""
    document = {"job": "j", "task": "m:T", "inputs": [{"topic": "in"}], "kafka": {"bootstrap.servers": "nobody:9"}, "params": PARAMS}
    (tmp_path / "job.yaml").write_text(json.dumps(document))
    loaded = load_job([tmp_path / "job.yaml"], [], {"MY_DSN": "amqp://me:hunter33@host"})
    shown = {origin.key: origin.value for origin in loaded.origins if origin.key.startswith("params.")}
    assert shown == {"params.dsn": "***", "params.other_dsn": "${MY_DSN}", "params.Authorization": "***", "params.home": PARAMS["home"]}
    assert loaded.document["params"]["other_dsn"] == "${MY_DSN}"
    assert "postgres://me:***@host/db of *** of *** of *** at https://host:443/a@b" == without_secrets(f"{DSN} of hunter22 of hunter33 of t0ken1 at https://host:443/a@b")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("host=db user=me password=hunter2 dbname=x", ["hunter2"]),
        ("host=db password='hun ter2' dbname=x", ["hun ter2"]),
        ("jdbc:postgresql://db/x?user=me&password=hunter2&ssl=on", ["hunter2"]),
        ("Server=db;Uid=me;Pwd={hun;ter2};Database=x", ["hun;ter2"]),
        ("https://api/x?access_token=hunter2&page=2", ["hunter2"]),
        ("-Djavax.net.ssl.trustStorePassword=hunter2 -Da=b", ["hunter2"]),
        ("host=db password=${PW}", ["${PW}"]),
        ("amqp://me:hunter2@host", ["hunter2"]),
        ("https://0123456789abcdef0123@sentry/4", ["0123456789abcdef0123"]),
        ("https://me@host/4", []),
        ("https://store/x?sp=r&sig=hunter2%3D", ["hunter2%3D"]),
        ("a\n-----BEGIN RSA PRIVATE KEY-----\nhunter2\n", ["-----BEGIN RSA PRIVATE KEY-----\nhunter2\n"]),
        (f"with {JWT} and more", [JWT]),
        (f"ghp_{'aB3' * 12}", [f"ghp_{'aB3' * 12}"]),
        (f"sk_live_{'aB3' * 8}", [f"sk_live_{'aB3' * 8}"]),
        (f"id AKIA{'Q7' * 8}", [f"AKIA{'Q7' * 8}"]),
        ("eyJ.eyJ. task_live_one akia_of_mine", []),
        ("user=me key=a page=b", []),
        ("token == 'a', password => b, secret=", []),
    ],
)
def test_logins_in_texts(text: str, found: list[str]) -> None:
    assert found == secrets.logins(text)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000, "password=" * 30_000, "password='" * 30_000, "a://" * 75_000, "password=" + "${" * 100_000, "eyJ" * 100_000,
        "-eyJaaaaaaaaaa." * 20_000,
    ],
)  # fmt: skip
def test_long_texts_are_looked_through_in_one_go(text: str) -> None:
    """Within the test's time limit; where each begin looks to the end again, it takes minutes."""
    assert len(secrets.logins(text)) <= 30_000


@pytest.mark.parametrize("key", ["passwords", "password2", "api_keys", "apiKeys", "cookies", "token1", "accessKey3", "db.passwd", "PGPASSWORD", "clientsecret"])
def test_secret_keys_in_the_plural_and_with_a_number(key: str) -> None:
    assert secrets.is_secret(("params", key))


@pytest.mark.parametrize("key", ["class", "address", "access", "keys", "s3", "partition.keys", "process2"])
def test_keys_that_hold_no_secret(key: str) -> None:
    assert not secrets.is_secret(("params", key))


def test_neither_a_message_nor_a_traceback_in_the_log_shows_one() -> None:
    keep_out(["hunter2"])
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(SecretsHidden())
    log = logging.Logger("test")
    log.addHandler(handler)
    try:
        raise ValueError("with hunter2")
    except ValueError:
        log.exception("said %s of %d", "hunter2", 1)
    assert ["said *** of 1", "ValueError: with ***"] == [stream.getvalue().splitlines()[0], stream.getvalue().splitlines()[-1]]
    assert "hunter2" not in stream.getvalue()


def test_what_is_told_of_a_users_error_shows_none() -> None:
    keep_out(["hunter2"])
    try:
        raise ValueError("x" * 995 + "hunter2")
    except ValueError as error:
        texts = [described(error), brief(error), str(named("Partition 0", "process", error)), stack_of(error)]
    assert [] == [text for text in texts if "hunte" in text], "cut off in its middle it is shown neither"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kafka: {sasl.password: hunter2}", ("kafka.sasl.password",)),
        ("kafka: {consumer: {ssl.key.password: hunter2}}", ("kafka.consumer.ssl.key.password",)),
        ("params: {api_token: hunter2}", ("params.api_token",)),
        ("params: {Authorization: Bearer hunter22, dbPw: hunter2, db_pass: hunter2}", ("params.Authorization", "params.dbPw", "params.db_pass")),
        ("params: {dsn: 'postgres://me:hunter2@host/db'}", ("params.dsn",)),
        ("params: {PGPASSWORD: hunter2, passwords: [hunter2, hunter3], pin: 1}", ("params.PGPASSWORD", "params.passwords.0", "params.passwords.1")),
        ("params: {password: 77110011, private_key: x}", ("params.password", "params.private_key")),
        ("params: {apiKey: y, tokens: {prod: z}}", ("params.apiKey", "params.tokens.prod")),
        ("web: {tokens: {view: hunter2}}", ("web.tokens.view",)),
        ("params: {max_tokens: 100, has_token: true, token: null, password: ''}", ()),
        ("params: {dsn: 'postgres://me:${PW}@host/db', home: 'https://host:443/a@b', mail: 'me:you@host'}", ()),
        ("kafka: {sasl.password: '${KAFKA_PASSWORD}'}", ()),
        ("kafka: {sasl.password: 'hunter2$${QQ}zz'}", ("kafka.sasl.password",)),
        ("params: {db_password: 'hunter3-${SUFFIX}', api_token: 'tok$${en}'}", ("params.db_password", "params.api_token")),
        ("params: {db_password: '${PW:-hunter2}', other_password: '${PW:-}'}", ("params.db_password",)),
        ("params: {dsn: 'postgres://me:hunter2${PW}@host/db', text: 'password=$${PW}'}", ("params.dsn", "params.text")),
        ("params: {Authorization: 'Bearer ${TOKEN}', secret: '${A}-${B}', secrets: '${A}${file:/b}'}", ("params.secret",)),
        ("schema_registry: {basic.auth.user.info: 'me:${PW}'}", ()),
        ("schema_registry: {basic.auth.user.info: '${ME}:${PW}'}", ()),
        ("schema_registry: {basic.auth.user.info: 'me:hunter${PW}'}", ("schema_registry.basic.auth.user.info",)),
        ("kafka: {sasl.password: '${file:/etc/kafka/password}'}", ()),
        ("kafka: {sasl.username: visits, ssl.key.location: key.pem, sasl.oauthbearer.token.endpoint.url: 'https://h'}", ()),
    ],
)
def test_secrets_that_stand_in_the_file_itself(line: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(line + "\n")
    assert expected == tuple(written_secrets(parse(read_file(tmp_path / "job.yaml"), [])))
