"""Wrong job files: every error with its file, line, column, path, what is wrong and what to do, all at once and sorted."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from samzapy.config import reader
from samzapy.config.errors import ConfigError
from samzapy.config.load import load_job

HEAD = 'job: j\ntask: cfg_tasks:Good\nkafka: {bootstrap.servers: "h:9092"}\ninputs:\n  - {topic: a}\n'
LINES = HEAD.count("\n")


@dataclass(frozen=True)
class Error:
    """What must be told: line, column, path, words of the message, words of the hint."""

    line: int
    column: int
    path: str
    message: str
    hint: str


def added(column: int, path: str, message: str, hint: str, line: int = 1) -> Error:
    """An error in the text that follows HEAD; its first line is 1."""
    return Error(LINES + line, column, path, message, hint)


def without(key: str) -> str:
    return "".join(line + "\n" for line in HEAD.splitlines() if not line.startswith(key))


def head(old: str, new: str) -> str:
    assert old in HEAD
    return HEAD.replace(old, new)


CASES: dict[str, tuple[str, list[Error]]] = {
    # paths, and characters that no system takes
    "home of nobody": (HEAD + "state: {dir: ~nosuchuser/x}\n", [added(14, "state.dir", "begins with the home directory of a user who is not known", "/")]),
    "NUL in a path": (HEAD + 'state: {dir: "/tmp/a\\0b"}\n', [added(14, "state.dir", "holds a NUL character", "Remove it")]),
    "NUL in a property": (HEAD + 'spark: {conf: {spark.x: "a\\0b"}}\n', [added(25, "spark.conf.spark.x", "holds a NUL character", "Remove it")]),
    "path of 5000 characters": (HEAD + f"state: {{dir: /tmp{'/a' * 2500}}}\n", [added(14, "state.dir", "a path of 5004 characters is too long", "2048 bytes")]),
    "directory of 300 characters": (HEAD + f"state: {{dir: /tmp/{'a' * 300}}}\n", [added(14, "state.dir", "too long", "255 between two /")]),
    "schema file of 5000 characters": (
        head("{topic: a}", "{topic: a, value: 'avro:" + "a" * 5000 + "'}"), [Error(5, 23, "inputs.0.value", "File name too long", "job file's folder")],
    ),
    "reference into the home of nobody": (
        head("{topic: a}", "{topic: '${file:~nosuchuser/x}'}"), [Error(5, 14, "inputs.0.topic", "home directory", "must be there")],
    ),
    "reference with NUL": (
        head("{topic: a}", '{topic: "${file:a\\0b}"}'), [Error(5, 14, "inputs.0.topic", "NUL character", "must be there")],
    ),
    "host with an empty label": (HEAD + "web: {host: a..b}\n", [added(13, "web.host", "'a..b' is no host name", "1 to 63 between the dots")]),
    "host of 300 characters": (HEAD + f"web: {{host: {'a.' * 150}a}}\n", [added(13, "web.host", "is no host name", "253 characters")]),
    "foreign letter": ("job: бase\n" + without("job"), [Error(1, 6, "job", "expected letters", "'б' (CYRILLIC SMALL LETTER BE) is none of a to z")]),
    "too many slots for Spark": (HEAD + "spark: {master: 'local[999999999999]'}\n", [added(17, "spark.master", "a number that is too large for Spark", "1000000")]),
    # keys
    "unknown key": (HEAD + "windw: 1s\n", [added(1, "windw", "unknown key 'windw'", "did you mean 'window'?")]),
    "unknown key of a store": (
        HEAD + "stores:\n  counts: {key: string, changlog: true}\n",
        [added(25, "stores.counts.changlog", "unknown key 'changlog'", "did you mean 'changelog'?", line=2)],
    ),
    "unknown key of an input": (
        head("{topic: a}", "{topic: a, strat: latest}"),
        [Error(5, 16, "inputs.0.strat", "unknown key 'strat'", "did you mean 'start'?")],
    ),
    "key of another section": (HEAD + "interval: 1s\n", [added(1, "interval", "unknown key", "commit.interval")]),
    "key of the top in a section": (HEAD + "commit: {window: 1s}\n", [added(10, "commit.window", "unknown key", "window")]),
    "duplicate key": (HEAD + "job: k\n", [added(1, "job", "duplicate key 'job'", "line 1")]),
    "missing required": (
        "kafka: {bootstrap.servers: h}\ninputs: [{topic: a}]\n",
        [
            Error(1, 1, "job", "missing required key 'job'", "Add `job:"),
            Error(1, 1, "task", "missing required key 'task'", "Add `task:"),
        ],
    ),
    "missing topic": (head("{topic: a}", "{key: string}"), [Error(5, 5, "inputs.0.topic", "missing required key 'topic'", "Add `topic:")]),
    "missing servers": (
        head('{bootstrap.servers: "h:9092"}', "{linger.ms: 5}"),
        [Error(3, 1, "kafka.bootstrap.servers", "missing required key", "localhost:9092")],
    ),
    "no inputs": (without("  -").replace("inputs:", "inputs: []"), [Error(4, 9, "inputs", "at least one", "topic")]),
    # types
    "number expected": (HEAD + "containers: {count: two}\n", [added(21, "containers.count", "expected a whole number, found 'two'", "1")]),
    "number quoted": (HEAD + 'containers: {count: "2"}\n', [added(21, "containers.count", "found '2'", "without quotes")]),
    "flag expected": (
        head("{topic: a}", "{topic: a, bootstrap: yes}"),
        [Error(5, 27, "inputs.0.bootstrap", "expected true or false, found 'yes'", "true or false")],
    ),
    "word expected": (
        HEAD + "commit: {guarantee: exactly_onc}\n",
        [added(21, "commit.guarantee", "expected exactly_once or at_least_once", "did you mean 'exactly_once'")],
    ),
    "map expected": (HEAD + "stores: [a]\n", [added(9, "stores", "expected a map, found a list", "stores")]),
    "list expected": (HEAD + "outputs: {a: b}\n", [added(10, "outputs", "expected a list, found a map", "- {topic")]),
    "a name for a list": (
        HEAD + "web: {names: a}\n",
        [added(14, "web.names", "expected a list of host names, found 'a'", "[status.example]")],
    ),
    "a URL for a name": (HEAD + "web: {names: ['http://a/']}\n", [added(14, "web.names", "expected a host name or address", "127.0.0.1")]),
    "out of range": (HEAD + "web: {port: 99999}\n", [added(13, "web.port", "expected 0 to 65535, found 99999", "0 to 65535")]),
    # durations and sizes
    "duration without a unit": (HEAD + "window: 10\n", [added(9, "window", "expected a duration, found 10 without a unit", "Write 10ms, 10s or 10m")]),
    "bad duration": (HEAD + "commit: {interval: 10 sec}\n", [added(20, "commit.interval", "expected a duration", "Write 10s")]),
    "endless duration": (HEAD + "window: 9999999d\n", [added(9, "window", "3650d, found 9999999d", "another duration")]),
    "bad size": (HEAD + "containers: {memory: 64 MB}\n", [added(22, "containers.memory", "expected a size", "Write 64MiB")]),
    # names
    "path as job": (head("job: j", "job: ../j"), [Error(1, 6, "job", "found '../j'", "must not be a path")]),
    "id": (HEAD + "id: a-b\n", [added(5, "id", "letters and digits only", "Write an id")]),
    "path as store": (HEAD + "stores:\n  a/b: {}\n", [added(3, "stores.a/b", "expected a store name", "must not be a path", line=2)]),
    "illegal topic": (head("topic: a", 'topic: "a b"'), [Error(5, 13, "inputs.0.topic", "'a b' is not a Kafka topic name", "letters")]),
    "path as task": (
        head("cfg_tasks:Good", "cfg_tasks.py"),
        [Error(2, 7, "task", "expected module:Class", "the module's name, not its path")],
    ),
    "dotted task": (
        head("cfg_tasks:Good", "cfg_tasks.Good"),
        [Error(2, 7, "task", "expected module:Class", "did you mean cfg_tasks:Good?")],
    ),
    # classes
    "no module": (head("cfg_tasks", "cfg_taks"), [Error(2, 7, "task", "there is no module 'cfg_taks'", "did you mean 'cfg_tasks'?")]),
    "no class": (head("Good", "Goood"), [Error(2, 7, "task", "has no class 'Goood'", "did you mean Good?")]),
    "no StreamTask": (head("Good", "NoTask"), [Error(2, 7, "task", "is not a StreamTask", "did you mean")]),
    "constructor with arguments": (head("Good", "NeedsArguments"), [Error(2, 7, "task", "requires size", "context.params")]),
    "no process": (head("Good", "NoProcess"), [Error(2, 7, "task", "no method `process`", "Define process(")]),
    "process_batch with two arguments": (
        head("Good", "NarrowBatches"),
        [Error(2, 7, "task", "NarrowBatches.process_batch has the wrong arguments", "Define process_batch(self, envelopes,")],
    ),
    "coroutine": (head("Good", "Coroutine"), [Error(2, 7, "task", "would never run", "plain def")]),
    "user's code raises": (head("cfg_tasks", "cfg_broken"), [Error(2, 7, "task", "cfg_broken.py:3: ValueError: boom", "cfg_broken")]),
    "user's code does not parse": (head("cfg_tasks", "cfg_syntax"), [Error(2, 7, "task", "cfg_syntax.py:1: SyntaxError", "cfg_syntax")]),
    "user's code lacks a module": (
        head("cfg_tasks", "cfg_needs"),
        [
            Error(
                2, 7, "task", "cfg_needs.py:1: ModuleNotFoundError", "Install the package that has the module 'a_module_that_is_not_there'"
            )
        ],
    ),
    "serde without decode": (
        head("{topic: a}", "{topic: a, value: 'cfg_tasks:HalfCodec'}"),
        [Error(5, 23, "inputs.0.value", "no method decode", "Define encode")],
    ),
    # serdes
    "unknown serde": (
        head("{topic: a}", "{topic: a, value: strng}"),
        [Error(5, 23, "inputs.0.value", "unknown serde 'strng'", "'string'")],
    ),
    "serde of another name": (
        head("{topic: a}", "{topic: a, key: long}"),
        [Error(5, 21, "inputs.0.key", "unknown serde 'long'", "'integer'")],
    ),
    "no schema file": (
        HEAD + 'stores: {s: {value: "avro:nope.avsc"}}\n',
        [added(21, "stores.s.value", "schema file 'nope.avsc' does not exist", "folder")],
    ),
    "schema file is no JSON": (
        HEAD + 'stores: {s: {value: "avro:no_json.avsc"}}\n',
        [added(21, "stores.s.value", "'no_json.avsc' is not JSON", "Avro schema")],
    ),
    # references
    "unset variable": (
        head('"h:9092"', '"${CFG_NOPE}"'),
        [Error(3, 29, "kafka.bootstrap.servers", "CFG_NOPE is not set", "${CFG_NOPE:-")],
    ),
    "no reference": (HEAD + 'params: {a: "x${A-b}"}\n', [added(15, "params.a", "'${A-b}' is not a reference", "${NAME:-default}")]),
    "reference left open": (HEAD + 'params: {a: "${A"}\n', [added(14, "params.a", "without a '}'", "$${")]),
    "file not there": (HEAD + 'params: {a: "${file:nope}"}\n', [added(14, "params.a", "nope cannot be read", "job file's folder")]),
    "file that never answers": (
        HEAD + 'params: {a: "${file:a_pipe}"}\n',
        [added(14, "params.a", "a_pipe cannot be read: it is a pipe", "job file's folder")],
    ),
    "file that never ends": (
        HEAD + 'params: {a: "${file:/dev/zero}"}\n',
        [added(14, "params.a", "/dev/zero cannot be read: it is a device", "job file's folder")],
    ),
    # what does not fit together
    "one changelog": (
        HEAD + "stores:\n  x: {changelog: t}\n  y: {changelog: t}\n",
        [added(18, "stores.y.changelog", "changelog 't' is also that of store 'x'", "its own", line=3)],
    ),
    "a derived changelog": (
        HEAD + "stores:\n  x: {}\n  y: {changelog: j-1-x-changelog}\n",
        [added(18, "stores.y.changelog", "also that of store 'x'", "its own", line=3)],
    ),
    "input twice": (HEAD + "  - {topic: a}\n", [added(13, "inputs.1.topic", "listed twice", "inputs.0")]),
    "output twice": (HEAD + "outputs: [{topic: o}, {topic: o}]\n", [added(31, "outputs.1.topic", "listed twice", "outputs.0")]),
    "output to an internal topic": (
        HEAD + "outputs: [{topic: __samza_checkpoint_j_1}]\n",
        [added(19, "outputs.0.topic", "is the checkpoint topic", "other topics")],
    ),
    "interval and timeout": (
        HEAD + "commit: {interval: 20s, timeout: 60s}\n",
        [added(20, "commit.interval", "three times commit.interval (3 x 20s) must be shorter", "commit.timeout above")],
    ),
    "interval and timeout that brokers do not take by themselves": (
        HEAD + "commit: {interval: 10m, timeout: 60s}\n",
        [added(20, "commit.interval", "three times commit.interval (3 x 10m) must be shorter", "transaction.max.timeout.ms is 15m unless set")],
    ),
    "a transaction that is too short for the client": (
        HEAD + "commit: {interval: 100ms, timeout: 900ms}\ncontainers: {lease: 500ms, heartbeat: 100ms}\n",
        [Error(6, 36, "commit.timeout", "is outside of what the Kafka client takes", "Set 1s to 24d")],
    ),
    "a transaction that is too long for it": (
        HEAD + "commit: {timeout: 25d}\n",
        [added(19, "commit.timeout", "is outside of what the Kafka client takes", "Set 1s to 24d")],
    ),
    "lease and timeout": (
        HEAD + "containers: {lease: 60s}\n",
        [added(21, "containers.lease", "must be shorter than commit.timeout", "Shorten")],
    ),
    "heartbeat and lease": (
        HEAD + "containers: {heartbeat: 5s}\n",
        [added(25, "containers.heartbeat", "two times containers.heartbeat (2 x 5s)", "containers.lease")],
    ),
    "times beside other errors of their section": (
        HEAD + "commit: {interval: 20s, timeout: 60s, max_uncommitted: 3}\ncontainers: {count: 0, heartbeat: 5s}\n",
        [
            Error(6, 20, "commit.interval", "three times commit.interval (3 x 20s) must be shorter", "commit.timeout above"),
            Error(6, 56, "commit.max_uncommitted", "without a unit", "3B"),
            Error(7, 21, "containers.count", "expected 1 to 1000", "from 1"),
            Error(7, 35, "containers.heartbeat", "two times containers.heartbeat (2 x 5s)", "containers.lease"),
        ],
    ),
    "bootstrap from latest": (
        head("{topic: a}", "{topic: a, bootstrap: true, start: latest}"),
        [Error(5, 40, "inputs.0.start", "bootstrap input", "Remove")],
    ),
    "every input broadcast": (
        head("{topic: a}", "{topic: a, broadcast: true}"),
        [Error(5, 27, "inputs.0.broadcast", "every input", "tasks")],
    ),
    # kafka
    "key of ours": (
        head("{boot", "{acks: 1, transactional.id: x, boot"),
        [
            Error(3, 9, "kafka.acks", "'acks' is set by samzapy itself", "samzapy sets it"),
            Error(3, 18, "kafka.transactional.id", "'transactional.id' is set by samzapy itself", "samzapy sets it"),
        ],
    ),
    "key of ours with a name": (
        head("{boot", "{transaction.timeout.ms: 1, message.timeout.ms: 2, boot"),
        [
            Error(3, 9, "kafka.transaction.timeout.ms", "set by samzapy itself", "commit.timeout"),
            Error(3, 36, "kafka.message.timeout.ms", "set by samzapy itself", "containers.lease"),
        ],
    ),
    "key that loads code": (
        head("{boot", "{consumer: {plugin.library.paths: /tmp/x.so}, error_cb: f, boot"),
        [
            Error(3, 20, "kafka.consumer.plugin.library.paths", "would run code", "a job file is data"),
            Error(3, 54, "kafka.error_cb", "would run code", "a job file is data"),
        ],
    ),
    "Java's key": (
        head("{boot", "{fetch.max.wait.ms: 5, boot"),
        [Error(3, 9, "kafka.fetch.max.wait.ms", "unknown Kafka", "fetch.wait.max.ms")],
    ),
    "two clusters": (
        head("{boot", "{producer: {bootstrap.servers: g}, boot"),
        [Error(3, 20, "kafka.producer.bootstrap.servers", "a job uses one Kafka cluster only", "once")],
    ),
    "no tokens": (
        head("{boot", "{sasl.mechanism: OAUTHBEARER, boot"),
        [Error(3, 25, "kafka.sasl.mechanism", "a key must say where tokens come from", "sasl.oauthbearer.method")],
    ),
    "bad port": (head("h:9092", "h:port"), [Error(3, 28, "kafka.bootstrap.servers", "expected host:port", "commas")]),
    "nested kafka key": (
        head("{boot", "{linger: {ms: 5}, boot"),
        [Error(3, 17, "kafka.linger", "found a map", "write linger.ms")],
    ),
    # topics that are not the user's
    "Kafka's own": (
        HEAD.replace("{topic: a}", "{topic: __consumer_offsets}") + "outputs: [{topic: __transaction_state}]\n",
        [Error(5, 13, "inputs.0.topic", "a topic of Kafka itself", "other topics"), added(19, "outputs.0.topic", "a topic of Kafka itself", "other topics")],
    ),
    "another job's positions": (
        HEAD.replace("{topic: a}", "{topic: __samza_checkpoint_other_1}") + "outputs: [{topic: __samza_coordinator_other_1}]\n",
        [added(19, "outputs.0.topic", "where a job keeps its positions", "other topics")],
    ),
    "another job's changelog": (
        HEAD + "stores: {s: {changelog: __samza_checkpoint_other_1}, t: {changelog: __consumer_offsets}}\n",
        [added(25, "stores.s.changelog", "where a job keeps its positions", "Remove"), added(69, "stores.t.changelog", "a topic of Kafka", "Remove")],
    ),
    # Samza's
    "Samza: commit": (HEAD + "task.commit.ms: 5\n", [added(1, "task.commit.ms", "key of Samza", "`commit.interval`")]),
    "Samza: store": (HEAD + "stores.s.factory: x\n", [added(1, "stores.s.factory", "key of Samza", "`engine`")]),
    "Samza: nested": (head("job: j", "job: {name: j}"), [Error(1, 1, "job", "'job.name' is a key of Samza", "`job`")]),
    "Samza: system": (
        HEAD + "systems: {kafka: {samza.msg.serde: json}}\n",
        [added(1, "systems", "'systems.kafka.samza.msg.serde' is a key of Samza", "`value`")],
    ),
    # not built
    "reserved": (
        HEAD + "time: 1\nside_inputs: []\nsnapshots: {}\nstores: {s: {partition_by: x}}\n",
        [
            added(1, "time", "not implemented yet", "Remove"),
            added(1, "side_inputs", "not implemented yet", "Remove", line=2),
            added(1, "snapshots", "not implemented yet", "Remove", line=3),
            added(14, "stores.s.partition_by", "not implemented yet", "Remove", line=4),
        ],
    ),
    # YAML
    "tag": (
        HEAD + "params: {a: !!python/object:os.system x}\n",
        [added(13, "params.a", "YAML tag '!!python/object:os.system'", "plain value")],
    ),
    "tag of YAML": (HEAD + "params: {a: !!str 5}\n", [added(13, "params.a", "YAML tag '!!str'", "plain value")]),
    "tab": (HEAD + "\tx: 1\n", [added(1, "", "not YAML", "spaces, not tabs")]),
    "open bracket": (HEAD + "params: [1\n", [added(1, "", "not YAML", "brackets", line=2)]),
    "unquoted reference": (head('"h:9092"', "${K}"), [Error(3, 29, "", "not YAML", 'quotes around a reference: "${NAME}"')]),
    "second document": (HEAD + "---\na: b\n", [added(1, "", "a second document", "One job a file")]),
    "key is no text": (HEAD + "1: x\n", [added(1, "", "keys are text, found '1'", "quotes")]),
    "alias around itself": (HEAD + "params: &a [*a]\n", [added(13, "params.0", "alias *a names no anchor", "before its alias")]),
    "alias bomb": (
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
        [Error(5, 11, "e.1", "more than 20000 values", "Write the values out")],
    ),
    "nested bomb": ("[" * 100_000, [Error(1, 33, "0.0.0", "nested more than 32 deep", "")]),
    "half a character": (HEAD + 'params: {a: "\\ud800"}\n', [added(13, "", "half a character (U+D800)", "Write")]),
    "control character": (HEAD + "a: \x07\n", [added(4, "", "control character (U+0007)", "Remove")]),
    "list at the top": ("- a\n", [Error(1, 1, "", "expected keys and values, found a list", "job:")]),
    "text at the top": ("job\n", [Error(1, 1, "", "expected keys and values", "job:")]),
    "empty file": ("# nothing\n", [Error(1, 1, "", "the file is empty", "at least job")]),
}


def problems_of(path: Path, *more: Path, **options: object) -> ConfigError:
    with pytest.raises(ConfigError) as raised:
        load_job([path, *more], [], {}, check_classes=True)
    return raised.value


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_file_is_told_all_its_errors(name: str, folder: Path) -> None:
    text, expected = CASES[name]
    path = folder / "job.yaml"
    path.write_text(text)

    started = time.process_time()
    found = problems_of(path).problems

    assert [(e.line, e.column, e.path) for e in expected] == [(p.line, p.column, p.path) for p in found], [p.render() for p in found]
    for error, problem in zip(expected, found, strict=True):
        assert str(path) == problem.file
        assert error.message in problem.message
        assert error.hint in problem.hint
        assert "\n" not in problem.message + problem.hint
    assert time.process_time() - started < 2


def test_the_table_is_long_enough() -> None:
    assert len(CASES) >= 40


def test_everything_is_told_at_once_and_sorted(folder: Path) -> None:
    path = folder / "job.yaml"
    path.write_text("jb: j\ntask: cfg_taks:Good\nkafka: {acks: 1}\ninputs:\n  - {topic: a b, key: strng}\nwindow: 10\nwindow: 11\n")

    found = problems_of(path).problems

    assert found == sorted(found)
    assert {"job", "jb", "task", "kafka.acks", "kafka.bootstrap.servers", "inputs.0.topic", "inputs.0.key", "window"} == {
        p.path for p in found
    }
    assert 9 == len(found)


def test_what_a_file_without_an_end_is_waited_for_is_told(folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "TELL_S", 0.05)
    os.mkfifo(folder / "pipe.yaml")

    def write() -> None:
        while "waiting for what is written" not in caplog.text:
            continue
        (folder / "pipe.yaml").write_text("job: j\n")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert "task" in {p.path for p in problems_of(folder / "pipe.yaml").problems}
    writer.join()
    assert f"{folder / 'pipe.yaml'} is a pipe or a device" in caplog.text


def test_the_gnu_form(folder: Path) -> None:
    path = folder / "job.yaml"
    path.write_text(HEAD + "stores: {counts: {changlog: true}}\n")

    assert (
        f"{path}:6:19: error: stores.counts.changlog: unknown key 'changlog'\n"
        "    stores: {counts: {changlog: true}}\n"
        "                      ^\n"
        "  hint: did you mean 'changelog'?\n"
        "1 error"
    ) == problems_of(path).render()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: None, "this file does not exist"),
        (lambda p: p.mkdir(), "is a directory"),
        (lambda p: p.write_bytes(b"job: \xff\n"), "not UTF-8"),
        (lambda p: p.write_bytes(b"#" * (1 << 19)), "larger than 256 KiB"),
    ],
)
def test_a_file_that_cannot_be_read(make: object, message: str, folder: Path) -> None:
    path = folder / "other.yaml"
    make(path)  # type: ignore[operator]

    (problem,) = problems_of(path).problems

    assert (str(path), 1) == (problem.file, problem.line)
    assert message in problem.message


def test_an_error_in_an_overlay_is_told_there(folder: Path) -> None:
    base, over = folder / "base.yaml", folder / "over.yaml"
    base.write_text(HEAD + "commit:\n  interval: 1s\n")
    over.write_text("commit:\n  interval: soon\nstores: {s: {ky: string}}\n")

    found = problems_of(base, over).problems

    assert [(str(over), 2, 13, "commit.interval"), (str(over), 3, 14, "stores.s.ky")] == [(p.file, p.line, p.column, p.path) for p in found]


def test_what_an_overlay_lacks_is_told_at_the_first_file(folder: Path) -> None:
    base, over = folder / "base.yaml", folder / "over.yaml"
    base.write_text(without("job"))
    over.write_text("window: 1s\n")

    (problem,) = problems_of(base, over).problems

    assert (str(base), "job") == (problem.file, problem.path)
