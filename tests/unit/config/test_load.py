"""What a job file comes to: defaults, overlays, `--set`, references, secrets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from samzapy.config.document import settings_from_document
from samzapy.config.errors import ConfigError
from samzapy.config.load import LoadedJob, load_job
from samzapy.config.secrets import is_secret
from samzapy.config.task_class import import_task_class

HEAD = 'job: j\ntask: cfg_tasks:Good\nkafka: {bootstrap.servers: "h:9092"}\ninputs:\n  - {topic: a}\n'
FULL = """
job: page-view-counts
id: 7
task: jobs.page_views:PageViewCounter
params: {top_n: 10, "dotted.key": [1, 2.5, true, null, text]}
kafka:
  bootstrap.servers: "a:9092,b:9092"
  linger.ms: 5
  producer: {linger.ms: 50}
  consumer: {fetch.min.bytes: 10}
inputs:
  - {topic: page-views, key: string, value: json}
  - {topic: users, key: string, value: "avro:user.avsc", bootstrap: true, broadcast: true, on_out_of_range: earliest}
outputs:
  - {topic: page-view-counts, key: string, value: integer, partitions: 4}
stores:
  counts: {key: string, value: integer, engine: memory, changelog: my-changelog}
  scratch: {changelog: false}
commit: {interval: 500ms, guarantee: at_least_once, timeout: 2m, max_uncommitted: 1MiB}
window: 10s
on_error: {retries: 0, then: skip}
containers: {count: 2, memory: 1GiB, host_affinity: 0s, standby: 0, max_restarts: 3, restart_window: 1h, heartbeat: 1s, lease: 5s}
state: {dir: /var/state}
spark: {master: "local[4]", conf: {spark.executor.memory: 1g, spark.ui.enabled: false}}
web: {port: 8080, host: 0.0.0.0, proxy: true, names: [status.example, driver]}
"""


def write(folder: Path, text: str, name: str = "job.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def loaded(folder: Path, text: str, *sets: str, **environ: str) -> LoadedJob:
    return load_job([write(folder, text)], sets, environ)


def problems(folder: Path, text: str, *sets: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as raised:
        loaded(folder, text, *sets, **environ)
    return raised.value.render()


def test_the_shortest_file_has_the_defaults(folder: Path) -> None:
    settings = loaded(folder, HEAD).settings

    assert ("j", "1", "cfg_tasks:Good") == (settings.job, settings.id, settings.task)
    assert ({}, {}, None, ()) == (settings.params, settings.stores, settings.window_ms, settings.outputs)
    (entry,) = settings.inputs
    assert ("a", "bytes", "bytes", "earliest", False, False, "fail") == (
        entry.topic, entry.key, entry.value, entry.start, entry.bootstrap, entry.broadcast, entry.on_out_of_range,
    )  # fmt: skip
    commit, containers = settings.commit, settings.containers
    assert (1000, "exactly_once", 60_000, 64 << 20) == (
        commit.interval_ms, commit.guarantee, commit.timeout_ms, commit.max_uncommitted_bytes,
    )  # fmt: skip
    assert (1, 512 << 20, 5000, 0, 8, 300_000, 2000, 10_000) == (
        containers.count, containers.memory_bytes, containers.host_affinity_ms, containers.standby, containers.max_restarts,
        containers.restart_window_ms, containers.heartbeat_ms, containers.lease_ms,
    )  # fmt: skip
    assert (0, "fail") == (settings.on_error.retries, settings.on_error.then)
    assert Path("~/.samzapy/state").expanduser() == settings.state.dir
    assert ("local[2]", {}, 0, "127.0.0.1") == (settings.spark.master, settings.spark.conf, settings.web.port, settings.web.host)


def test_every_key(folder: Path) -> None:
    settings = loaded(folder, FULL).settings

    assert "7" == settings.id
    assert {"top_n": 10, "dotted.key": [1, 2.5, True, None, "text"]} == settings.params
    assert ("status.example", "driver") == settings.web.names
    assert {"bootstrap.servers": "a:9092,b:9092", "linger.ms": 5} == settings.kafka_client
    assert {"bootstrap.servers": "a:9092,b:9092", "linger.ms": 50} == settings.kafka_producer
    assert {"bootstrap.servers": "a:9092,b:9092", "linger.ms": 5, "fetch.min.bytes": 10} == settings.kafka_consumer
    assert (True, True, "earliest", "avro:user.avsc") == (
        settings.inputs[1].bootstrap, settings.inputs[1].broadcast, settings.inputs[1].on_out_of_range, settings.inputs[1].value,
    )  # fmt: skip
    assert 4 == settings.outputs[0].partitions
    assert ("memory", "my-changelog", False) == (
        settings.stores["counts"].engine, settings.stores["counts"].changelog, settings.stores["scratch"].changelog,
    )  # fmt: skip
    assert (500, 120_000, 1 << 20, 10_000) == (
        settings.commit.interval_ms, settings.commit.timeout_ms, settings.commit.max_uncommitted_bytes, settings.window_ms,
    )  # fmt: skip
    assert (1 << 30, 0, 3_600_000) == (
        settings.containers.memory_bytes, settings.containers.host_affinity_ms, settings.containers.restart_window_ms,
    )  # fmt: skip
    assert {"spark.executor.memory": "1g", "spark.ui.enabled": "false"} == settings.spark.conf


def test_settings_do_not_change(folder: Path) -> None:
    settings = loaded(folder, HEAD).settings

    with pytest.raises(ValidationError):
        settings.job = "other"
    with pytest.raises(ValidationError):
        settings.commit.interval_ms = 5


# -- precedence ---------------------------------------------------------------------------------------------------------------------


def test_later_files_and_then_set_win(folder: Path) -> None:
    base = write(folder, HEAD + "commit: {interval: 2s, timeout: 30s}\nparams: {a: 1, b: {x: 1, y: 2}, list: [1, 2, 3]}\nwindow: 1s\n")
    first = write(folder, "commit: {interval: 3s}\nparams: {b: {y: 3}, list: [9]}\n", "first.yaml")
    second = write(folder, "params: {b: {z: 4}}\nwindow: 5s\n", "second.yaml")

    settings = load_job([base, first, second], ["window=7s", "params.a=text"], {}).settings

    assert (3000, 30_000, 7000) == (settings.commit.interval_ms, settings.commit.timeout_ms, settings.window_ms)
    assert {"a": "text", "b": {"x": 1, "y": 3, "z": 4}, "list": [9]} == settings.params


def test_set_takes_yaml_scalars_and_items_by_index(folder: Path) -> None:
    job = loaded(
        folder, HEAD, "inputs.0.start=latest", "inputs.1.topic=b", "params.n=3", "params.t='3'", "params.flag=true", "params.none=",
        "kafka.linger.ms=5", "kafka.producer.linger.ms=6", "spark.conf.spark.executor.memory=2g", "stores.s.key=string",
    )  # fmt: skip
    settings = job.settings

    assert [("a", "latest"), ("b", "earliest")] == [(i.topic, i.start) for i in settings.inputs]
    assert {"n": 3, "t": "3", "flag": True, "none": None} == settings.params
    assert (5, 6) == (settings.kafka_consumer["linger.ms"], settings.kafka_producer["linger.ms"])
    assert {"spark.executor.memory": "2g"} == settings.spark.conf
    assert "string" == settings.stores["s"].key


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("commit.interval", "--set:1:1: error: expected KEY=VALUE"),
        ("commit.intervl=1s", "--set:1:8: error: commit.intervl: unknown key 'intervl'"),
        ("commit.interval=soon", "--set:1:17: error: commit.interval: expected a duration, found 'soon'"),
        ("inputs.5.start=latest", "--set:1:8: error: inputs.5: expected an index"),
        ("job.x.y=1", "--set:1:1: error: job.x.y: 'job.x.y' is a key of Samza"),
        ("window.x=1", "--set:1:8: error: window.x"),
        ("id=", "--set:1:4: error: id: the value is empty"),
        ("containers.count= ", "--set:1:18: error: containers.count: the value is empty"),
        ("a..b=1", "--set:1:3: error: an empty part"),
        ("kafka.client.id=a #1", "--set:1:19: error: kafka.client.id: text after # is a comment in YAML, and would be left out"),
        ("kafka.client.id=#1", "--set:1:17: error: kafka.client.id: text after # is a comment"),
        ("params.a=[1", "--set:1:12: error: this is not YAML"),
        ("task.commit.ms=5", "In samzapy it is `commit.interval`"),
    ],
)
def test_a_wrong_set_is_told_with_its_column(text: str, told: str, folder: Path) -> None:
    assert told in problems(folder, HEAD + "window: 5s\n", text)


# -- references ---------------------------------------------------------------------------------------------------------------------


def test_references_inside_values(folder: Path) -> None:
    write(folder, "from a file\n", "text.txt")
    text = (
        HEAD + 'params: {a: "${A}", b: "x${B:-d}y", c: "${EMPTY:-d}", d: "${EMPTY}", e: "$${A}", f: "${file:text.txt}", g: "${A}-${A}"}\n'
    )

    params = loaded(folder, text, A="1", EMPTY="").settings.params

    assert {"a": "1", "b": "xdy", "c": "d", "d": "", "e": "${A}", "f": "from a file", "g": "1-1"} == params


def test_a_reference_is_read_as_what_its_setting_wants(folder: Path) -> None:
    text = HEAD + 'containers: {count: "${N}"}\nwindow: "${W}"\nstores: {s: {changelog: "${C}"}}\nid: "${N}"\n'

    settings = loaded(folder, text, N="3", W="5s", C="false").settings

    assert (3, 5000, False, "3") == (settings.containers.count, settings.window_ms, settings.stores["s"].changelog, settings.id)


def test_what_a_variable_holds_changes_no_structure(folder: Path) -> None:
    nasty = "x, injected: true}\n${HOME} # *a !!tag"

    assert {"a": nasty} == loaded(folder, HEAD + 'params: {a: "${A}"}\n', A=nasty, HOME="/h").settings.params


# -- what travels -------------------------------------------------------------------------------------------------------------------


def test_the_document_makes_the_same_settings_elsewhere(folder: Path) -> None:
    write(folder, "x", "text.txt")
    text = FULL.replace("top_n: 10", 'top_n: 10, v: "${V}", n: "${N}", e: "$${V}", f: "${file:text.txt}"').replace(
        "count: 2", 'count: "${N}"'
    )
    job = load_job([write(folder, text)], [], {"V": "a${N}b", "N": "3"})

    again = json.loads(json.dumps(job.document))

    assert job.settings == settings_from_document(again, {"V": "a${N}b", "N": "3"})


def test_what_names_the_cluster_is_the_same_everywhere(folder: Path) -> None:
    job = loaded(folder, HEAD.replace("h:9092", "${SERVERS:-localhost:9092}"), SERVERS="real:9092")

    assert "real:9092" == settings_from_document(job.document, {}).kafka_client["bootstrap.servers"]


def test_secrets_stay_unresolved_until_they_are_used(folder: Path) -> None:
    write(folder, "in-a-file", "pw.txt")
    text = HEAD.replace("{boot", '{sasl.password: "${KEY_A}", ssl.key.password: "${file:pw.txt}", boot')
    text += 'params: {dsn: "postgres://u:${DB_PASSWORD}@h/d", other: "${file:pw.txt}", api_token: "${T}"}\n'
    secret = {"KEY_A": "hunter1", "DB_PASSWORD": "hunter2", "T": "hunter3"}

    job = loaded(folder, text, **secret)

    assert not [word for word in (*secret.values(), "in-a-file") if word in json.dumps(job.document)]
    settings = settings_from_document(job.document, secret)
    assert job.settings == settings
    assert ("hunter1", "in-a-file") == (settings.kafka_client["sasl.password"], settings.kafka_client["ssl.key.password"])
    assert {"dsn": "postgres://u:hunter2@h/d", "other": "in-a-file", "api_token": "hunter3"} == settings.params


@pytest.mark.parametrize("value", ["2024.10", "1e3", "null", "2024", "true", "false", "name"])
def test_a_changelog_that_came_out_of_a_reference_is_the_same_in_containers(value: str, folder: Path) -> None:
    job = loaded(folder, HEAD + 'stores: {s: {changelog: "${CL}"}}\n', CL=value)
    assert job.settings.stores["s"].changelog == settings_from_document(job.document, {}).stores["s"].changelog


def test_a_secret_that_is_missing_where_it_is_used_is_named(folder: Path) -> None:
    job = loaded(folder, HEAD.replace("{boot", '{sasl.password: "${PW}", boot'), PW="x")

    with pytest.raises(ConfigError, match=r"kafka\.sasl\.password: environment variable PW is not set"):
        settings_from_document(job.document, {})


@pytest.mark.parametrize(
    ("text", "sets"),
    [
        ("{sasl.password: [hunter2], boot", []),
        ("{sasl.password: hunter2, sasl.password: hunter2, boot", []),
        ("{sasl.password: a, sasl.password: hunter2, linger: {b: c}, boot", []),
        ("{sasl.password: 'hun{ter2 hunter2', ]boot", []),
        ("{sasl.password: hunter2, lingr: {a: b}, boot", []),
        ("{boot", ["kafka.sasl.password={hunter2"]),
        ("{sasl.password: hunter2, ]boot", []),
    ],
)
def test_no_error_shows_a_secret(text: str, sets: list[str], folder: Path) -> None:
    assert "hunter2" not in problems(folder, HEAD.replace("{boot", text), *sets)


@pytest.mark.parametrize(
    "key", ["window", "task", "job", "inputs.0.topic", "inputs.0.value", "commit.guarantee", "kafka.bootstrap.servers"]
)
def test_a_secret_put_under_a_key_that_holds_none_is_not_shown_either(key: str, folder: Path) -> None:
    (folder / "token").write_text("hunter2 hunter3 " * 20)
    path = folder / "job.yaml"
    path.write_text(HEAD)
    for reference in ("${TOKEN}", f"${{file:{folder / 'token'}}}"):
        with pytest.raises(ConfigError) as raised:
            load_job([path], [f"{key}={reference}"], {"TOKEN": "hunter2 'hunter3'"}, check_classes=True)
        assert [f"{key}: this key needs another value"] == [f"{p.path}: {p.message[:28]}" for p in raised.value.problems]
        assert "hunter" not in raised.value.render()


def test_a_secret_may_be_reached_through_links_as_in_kubernetes(folder: Path) -> None:
    (folder / "..2026").mkdir()
    (folder / "..2026" / "password").write_text("hunter2\n")
    (folder / "..data").symlink_to("..2026")
    (folder / "password").symlink_to("..data/password")
    path = folder / "job.yaml"
    path.write_text(HEAD + 'params: {api_token: "${file:password}"}\n')
    assert "hunter2" == load_job([path], [], {}).settings.params["api_token"]


def test_a_word_that_a_secret_happens_to_be_stays_in_other_messages(folder: Path) -> None:
    path = folder / "job.yaml"
    path.write_text(HEAD + 'params: {api_token: "${TOKEN}"}\nstores: {s: {value: jsn}}\n')
    with pytest.raises(ConfigError, match=r"unknown serde 'jsn'[^!]*json"):
        load_job([path], [], {"TOKEN": "json"})


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        (("kafka", "sasl.password"), True),
        (("kafka", "producer", "ssl.key.password"), True),
        (("kafka", "ssl.key.pem"), True),
        (("params", "db", "api_key"), True),
        (("spark", "conf", "spark.authenticate.secret"), True),
        (("kafka", "bootstrap.servers"), False),
        (("kafka", "sasl.mechanism"), False),
        (("stores", "tokens", "key"), False),
        (("params", "partition_key"), False),
        ((), False),
    ],
)
def test_which_keys_are_secret(path: tuple[str, ...], secret: bool) -> None:
    assert secret == is_secret(path)


# -- folders and imports ------------------------------------------------------------------------------------------------------------


def test_modules_are_found_in_the_files_folder_and_the_working_directory(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "cfg_beside.py").write_text((folder / "cfg_tasks.py").read_text())
    path = write(folder / "sub", HEAD.replace("cfg_tasks", "cfg_beside"))

    job = load_job([path], [], {}, check_classes=True)

    assert (folder / "sub", folder) == job.folders
    assert "Good" == import_task_class(job.settings.task, job.folders).__name__
    assert "Batches" == import_task_class("cfg_tasks:Batches", job.folders).__name__
    assert load_job([write(folder / "sub", HEAD)], [], {}, check_classes=True).settings


def test_loading_imports_nothing_of_the_users_unless_asked(folder: Path) -> None:
    loaded(folder, HEAD.replace("cfg_tasks", "cfg_broken"))

    assert "cfg_broken" not in sys.modules


def test_importing_the_configuration_is_light() -> None:
    code = "import samzapy.config.load, sys; print({'pyspark', 'confluent_kafka', 'rocksdict'} & set(sys.modules))"

    heavy = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "set()" == heavy.strip()
