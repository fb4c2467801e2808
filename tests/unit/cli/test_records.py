"""`samzapy send` and `samzapy tail`: lines to records and back, on the in-memory log."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError, SerdeError
from samzapy.cli.chaos import _encoded
from samzapy.cli.lines import LineForm, Shown
from samzapy.cli.records import log_of, of_job, send_lines
from samzapy.cli.tail import _Counted, last_records, print_records, why_nothing
from samzapy.model.marks import MARKS_KEY
from samzapy.model.offsets import Bounds, TopicPartition
from samzapy.ports import TopicSpec
from samzapy.serde.record import RecordSerde
from samzapy.serde.record_keys import as_key
from samzapy.serde.registry import serde_named
from samzapy.testing.memory_log import MemoryCluster, MemoryLog
from tests.command_server import run_samzapy
from tests.unit.container.bench import HandClock

STRING, INTEGER, JSON, BYTES = ((name, serde_named(name, [])) for name in ("string", "integer", "json", "bytes"))


class World:
    def __init__(self, partitions: int = 1) -> None:
        self.clock = HandClock()
        self.log = MemoryLog(MemoryCluster(self.clock))
        self.log.admin().create([TopicSpec("t", partitions)])
        self.places = [TopicPartition("t", p) for p in range(partitions)]
        self.told: list[str] = []

    def send(self, text: bytes, form: LineForm, is_file: bool = False, topic: str = "t", creates: TopicSpec | None = None) -> int:
        return send_lines(io.BytesIO(text), is_file, form, topic, self.log, self.told.append, creates)

    def there(self, count: int = 100) -> list[tuple[bytes | None, bytes | None]]:
        return [(m.key(), m.value()) for m in last_records(self.log.restore_consumer("t"), self.places, count, self.clock)]

    def shown(self, shown: Shown) -> list[str]:
        return [shown.line(m) for m in last_records(self.log.restore_consumer("t"), self.places, 100, self.clock)]


@pytest.mark.parametrize(
    ("line", "form", "record"),
    [
        (b"one two", LineForm(STRING), (None, b"one two")),
        (b"a\tb\tc", LineForm(STRING), (None, b"a\tb\tc")),
        (b"a\tb\tc", LineForm(STRING, STRING), (b"a", b"b\tc")),
        (b"\t", LineForm(STRING, STRING), (b"", b"")),
        (b"", LineForm(STRING), (None, b"")),
        (b"7\t-1", LineForm(INTEGER, INTEGER), ((7).to_bytes(8, "big"), b"\xff" * 8)),
        (b'{"a": [1]}', LineForm(JSON), (None, b'{"a":[1]}')),
        (b"\xff\x00", LineForm(BYTES), (None, b"\xff\x00")),
        (b"a\tNULL", LineForm(STRING, STRING, b"NULL"), (b"a", None)),
        (b"a\tNULL", LineForm(STRING, STRING), (b"a", b"NULL")),
    ],
)
def test_a_line_becomes_a_record(line: bytes, form: LineForm, record: tuple[bytes | None, bytes | None]) -> None:
    assert record == form.record(line)


@pytest.mark.parametrize(
    ("line", "form", "why"),
    [
        (b"no tab", LineForm(STRING, STRING), "there is no tab between key and value"),
        (b"\xff", LineForm(STRING), "the value is not UTF-8: invalid start byte at byte 0"),
        (b"x\t1", LineForm(INTEGER, INTEGER), "the key is not JSON, which serde integer requires"),
        (b"1.5", LineForm(INTEGER), "the value: serde integer takes int, not 1.5"),
        (b"[" * 100_000, LineForm(JSON), "the value is not JSON"),
        (b"x" * 100, LineForm(STRING, max_bytes=150), "about 170 bytes, more than the topic takes (150, max.message.bytes)"),
    ],
)
def test_a_line_that_is_no_record_says_why(line: bytes, form: LineForm, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        form.record(line)


def test_of_a_file_with_bad_lines_nothing_is_sent_and_every_one_is_named() -> None:
    world = World()
    with pytest.raises(ConfigurationError, match="2 of 4 lines are not records; nothing was sent"):
        world.send(b"1\nx\n2\n\n", LineForm(INTEGER), is_file=True)
    assert [2, 4] == [int(told.split(":")[0].removeprefix("line ")) for told in world.told]
    assert [] == world.there()


def test_of_a_stream_the_good_lines_are_sent_and_the_bad_ones_named() -> None:
    world = World()
    with pytest.raises(ConfigurationError, match="1 of 3 lines are not records; the other 2 were sent"):
        world.send(b"a\t1\nb\nc\t3\n", LineForm(STRING, STRING))
    assert ["line 2: there is no tab between key and value"] == world.told
    assert [(b"a", b"1"), (b"c", b"3")] == world.there()


@pytest.mark.parametrize("is_file", [True, False])
def test_all_lines_are_sent_with_or_without_a_last_line_end(is_file: bool) -> None:
    world = World()
    assert 3 == world.send(b"a\r\nb\n c", LineForm(STRING), is_file)
    assert [(None, b"a"), (None, b"b"), (None, b" c")] == world.there()


@pytest.mark.parametrize("is_file", [True, False])
def test_a_topic_is_created_for_lines_to_send_or_for_none_but_not_for_bad_ones_alone(is_file: bool) -> None:
    world = World()
    with pytest.raises(ConfigurationError, match="2 of 2 lines are not records; nothing was sent"):
        world.send(b"x\ny\n", LineForm(INTEGER), is_file, "new", TopicSpec("new", 2))
    assert not world.log.admin().topics(["new"])
    assert 1 == world.send(b"7\n", LineForm(INTEGER), is_file, "new", TopicSpec("new", 2))
    assert 0 == world.send(b"", LineForm(INTEGER), is_file, "other", TopicSpec("other", 1))
    assert [2, 1] == [world.log.admin().topics([topic])[topic].partitions for topic in ("new", "other")]
    assert "created new with 2 partitions" in world.told


@pytest.mark.parametrize("options", [["--compact"], ["--compact", "--key"], ["--compact", "--partitions", "2"]])
def test_a_compacted_topic_is_made_for_records_with_keys(options: list[str], tmp_path: Path) -> None:
    done = run_samzapy(["send", "table", *options], tmp_path, 60.0)
    assert done.returncode == 2
    assert "--compact is for a new topic whose records have keys. Add --key and --partitions N." in " ".join(done.stderr.split())


def test_a_compacted_topic_is_told_as_such() -> None:
    world = World()
    table = TopicSpec("table", 2, {"cleanup.policy": "compact"})
    assert 0 == world.send(b"", LineForm(STRING, STRING), topic="table", creates=table)
    assert ["created table with 2 partitions, compacted"] == world.told
    assert "compact" == world.log.admin().topics(["table"])["table"].config["cleanup.policy"]


@dataclass
class Visit:
    page: str
    seconds: float = 0.0


VISIT = ("record:m:Visit", as_key(RecordSerde("record:m:Visit", Visit)))


def test_lines_of_a_class_are_json_and_objects_are_shown_as_json() -> None:
    world = World()
    with pytest.raises(ConfigurationError, match="1 of 2 lines"):
        world.send(b'{"page": "a"}\t{"page": "/"}\n{"page": "b"}\t{"page": 7}\n', LineForm(VISIT, VISIT))
    assert ["line 2: the value: b'{\"page\": 7}' is no Visit (record:m:Visit): Expected `str`, got `int` - at `$.page`"] == world.told
    assert ['0@0\t{"page": "a", "seconds": 0.0}\t{"page": "/", "seconds": 0.0}'] == world.shown(Shown(VISIT[1], VISIT[1]))
    (message,) = last_records(world.log.restore_consumer("t"), world.places, 9, world.clock)
    assert {"page": "/", "seconds": 0.0} == Shown(VISIT[1], VISIT[1]).document(message)["value"]


def test_chaos_reads_objects_of_a_class_as_tail_prints_them() -> None:
    assert b'{"page":"/","seconds":1.5}' == _encoded(VISIT[0], {"page": "/", "seconds": 1.5}, VISIT[1])
    with pytest.raises(SerdeError, match=r"`\$\.page`"):
        _encoded(VISIT[0], {"page": 7}, VISIT[1])


def test_the_last_records_are_shown_past_markers_and_aborted_records() -> None:
    world = World()
    for number in range(20):
        producer = world.log.transactional_producer("x")
        producer.init()
        producer.begin()
        producer.send("t", str(number).encode(), None, 0)
        _ = producer.abort() if number % 4 else producer.commit()
    assert [b"8", b"12", b"16"] == [value for _, value in world.there(3)]
    assert 5 == len(world.there(100))


def test_the_last_records_of_several_partitions_are_the_newest_of_all() -> None:
    world = World(partitions=2)
    producer = world.log.plain_producer("x")
    for at, partition in ((2, 0), (1, 1), (3, 1), (5, 0)):
        producer.send("t", str(at).encode(), None, partition, at)
    assert [b"2", b"3", b"5"] == [value for _, value in world.there(3)]


def test_a_record_is_one_line_with_headers_and_tombstones() -> None:
    world = World()
    producer = world.log.plain_producer("x")
    producer.send("t", b"two\nlines \x1b[2J", b"k", 0)
    producer.send("t", None, b"k", 0, 1, [("trace", b"\x01"), ("empty", None)])
    producer.send("t", b"\xff", None, 0)
    assert ["0@0\tk\ttwo\\nlines \\x1b[2J", "0@1\tk\t(tombstone)\ttrace=\\x01\tempty=", "0@2\t(no key)\t\\xff"] == world.shown(Shown())


def test_json_tells_a_tombstone_from_null() -> None:
    world = World()
    producer = world.log.plain_producer("x")
    producer.send("t", b"null", b"k", 0)
    producer.send("t", None, b"k", 0)
    shown = Shown(STRING[1], JSON[1])
    found = [shown.document(m) for m in last_records(world.log.restore_consumer("t"), world.places, 9, world.clock)]
    assert [("k", None, False), ("k", None, True)] == [(d["key"], d["value"], d["tombstone"]) for d in found]


def test_a_record_of_another_serde_is_an_error_that_names_it() -> None:
    world = World()
    world.log.plain_producer("x").send("t", b"x", None, 0)
    with pytest.raises(SerdeError, match="serde integer reads 8 bytes"):
        world.shown(Shown(value=INTEGER[1]))


@pytest.mark.parametrize("as_json", [True, False])
def test_marks_of_a_topic_between_stages_are_in_no_serde_of_the_program(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.log.plain_producer("x").send("t", b"{}", MARKS_KEY, 0)
    found = last_records(world.log.restore_consumer("t"), world.places, 9, world.clock)
    assert 0 == print_records(iter([found]), None, Shown(INTEGER[1], INTEGER[1]), as_json)
    assert "samzapy/times" in capsys.readouterr().out


def test_serdes_with_files_are_looked_for_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "n.avsc").write_text('"long"')
    monkeypatch.chdir(tmp_path)
    name = "avro:n.avsc"
    form = LineForm((name, serde_named(name, [Path.cwd()])))
    assert [5] == [serde_named(name, [tmp_path]).decode(value or b"") for _, value in [form.record(b"5")]]


def test_a_second_file_and_single_keys_apply_to_the_job_that_has_the_topic(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("job: j\ntask: m:T\nkafka: {bootstrap.servers: 'b:1'}\ninputs: [{topic: in, key: string, value: string}]\n")
    (tmp_path / "more.yaml").write_text("inputs: [{topic: other, key: string, value: integer}]\n")
    _, servers, names, *_ = of_job(tmp_path / "job.yaml", "other", "", [tmp_path / "more.yaml"], ["kafka.bootstrap.servers=b:2"])
    assert ("b:2", ("string", "integer")) == (servers, names)
    with pytest.raises(ConfigurationError, match="none is given"):
        of_job(None, "in", "b:1", None, ["id=2"])


def test_of_a_topic_without_records_it_is_said_whether_it_had_some() -> None:
    world = World(partitions=2)

    def told() -> str:
        return why_nothing("t", world.log.restore_consumer("t").bounds_of(world.places).values())

    assert "t has no records that are committed" == told()
    world.send(b"one\ntwo\n", LineForm(STRING))
    with world.log.admin() as admin:
        admin.delete_records(dict(admin.high_watermarks(world.places)))
    assert told().startswith("t is empty: its records, 2 at most, were removed")
    assert why_nothing("t", [Bounds(12, 13)]).startswith("t is empty: its records, 13 at most"), "the end of a transaction stays, and is no record"
    assert "t has no records that are committed" == why_nothing("t", [Bounds(0, 3)]), "they were aborted"


def test_what_is_shown_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.send(b"one\ntwo\n", LineForm(STRING))
    found = last_records(world.log.restore_consumer("t"), world.places, 10, world.clock)
    for batches, count in (([], 0), ([found[:1], found[1:]], 2)):
        counted = _Counted(iter(batches))
        print_records(counted, None, Shown(None, None), False)
        assert count == counted.records


@pytest.mark.parametrize("servers", ["bootstrap.servers=localhost:9092", "a:9092,b:0", "a b", ""])
def test_what_is_no_address_of_brokers_is_named_before_anybody_is_asked(servers: str) -> None:
    with pytest.raises(ConfigurationError, match="--kafka: expected HOST:PORT, found"):
        log_of(servers)
    log_of("a:9092, b:9092,[::1]:9092")
