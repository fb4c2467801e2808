"""`samzapy chaos JOB.yaml`: whether a job commits the same whatever happens to its processes and its disk.

By default everything is thrown away afterwards: a Kafka of its own, the topics, the state. With `--yes-on-this-cluster` the job file's cluster is
used, where the job's topics must not exist. Exit codes: 0 the same; 1 other, or the run proved nothing.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from samzapy.api.errors import ConfigurationError, SerdeError
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, print_json, say
from samzapy.cli.lines import BadLine, LineForm, records_of, value_of
from samzapy.cli.loading import load
from samzapy.cli.signals_and_threads import clean_up_when_told
from samzapy.cli.tables import print_table
from samzapy.config.load import LoadedJob
from samzapy.dev.kafka import LocalKafka
from samzapy.ops.exact_json import bytes_in, header_of
from samzapy.serde.record import RecordSerde
from samzapy.testing.chaos import Asked, Chaos
from samzapy.testing.chaos_compare import CLEAN
from samzapy.testing.chaos_plan import Recorded, StrikeDone, row
from samzapy.wiring.serdes import KEY, VALUE, Serdes

HEADER = ("#", "AT S", "FAULT", "TARGET", "WHOLE AGAIN S", "NOTE")
MOST_BAD_LINES = 5
MOST_PARTITIONS = 1000
DIFFERENT = 1
JSON, TEXT = "json", "text"


def chaos(
    job: JobFile,
    source: Annotated[
        Path, typer.Option("--input", metavar="FILE", help="File with the records, one per line; - reads them from stdin, for example from a generator.")
    ],
    more: MoreFiles = None,
    sets: Sets = None,
    seed: Annotated[
        int | None, typer.Option(help="Determines the faults and their times; random by default.", show_default=False)
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.1, help="For how many minutes faults are injected.")] = 1.0,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="json: documents with key, value and, if wanted, topic, partition, timestamp, tombstone, headers, as `samzapy tail TOPIC --job JOB.yaml --json`"
            " prints them; text: as `samzapy send --key` takes them, key<TAB>value of the first input.",
        ),
    ] = JSON,
    partitions: Annotated[int, typer.Option(min=1, max=MOST_PARTITIONS, help="Partitions of each topic; more if a record names a higher one.")] = 4,
    ordered: Annotated[
        bool,
        typer.Option("--ordered", help="Also compare the order of outputs within each key: for jobs in which only one task writes a key."),
    ] = False,
    on_this_cluster: Annotated[
        bool,
        typer.Option("--yes-on-this-cluster", help="Use the job file's cluster: a test cluster, in which none of the job's topics exists."),
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the job files, logs and state of both runs, and print their folder.")] = False,
    as_json: AsJson = False,
) -> int:
    """Run a copy of the job with faults, and compare its results with a run without. Processes are killed or suspended (SIGSTOP), and state is deleted.
    Nothing of yours is touched."""
    if form not in (JSON, TEXT):
        raise ConfigurationError(f"--format {form}: must be json or text.", "See `samzapy chaos --help`.")
    loaded = load(job, more, sets, classes=True)
    records = _records(source, loaded, form)
    chosen = secrets.randbelow(10**6) if seed is None else seed
    clean_up_when_told()
    folder = Path(tempfile.mkdtemp(prefix="samzapy-chaos-"))
    with contextlib.ExitStack() as blocks:
        if not keep:
            blocks.callback(shutil.rmtree, folder, ignore_errors=True)
        code = _run(
            loaded, records, folder, _own_kafka(folder, blocks) if not on_this_cluster else None, chosen, minutes, partitions, ordered, as_json
        )
    if keep:
        say(f"kept: {folder}")
    return code


def _own_kafka(folder: Path, blocks: contextlib.ExitStack) -> dict[str, Any]:
    kafka = LocalKafka.start(directory=folder / "kafka", port=0, say=say, tied=True)
    blocks.callback(kafka.stop)
    return {"bootstrap.servers": kafka.bootstrap_servers}


def _run(
    loaded: LoadedJob,
    records: list[Any],
    folder: Path,
    kafka: dict[str, Any] | None,
    seed: int,
    minutes: float,
    partitions: int,
    ordered: bool,
    as_json: bool,
) -> int:
    result = Chaos(loaded, kafka, folder, Asked(seed, 60 * minutes, partitions, ordered), say).run(records)
    if as_json:
        print_json(
            {
                "result": result.result, "why": result.why, "seed": seed, "strikes": [_strike(done) for done in result.strikes],
                "differences": [{"where": d.where, "kind": d.kind, "count": d.count, "first": d.first} for d in result.differences],
            }
        )  # fmt: skip
        return 0 if result.result == CLEAN else DIFFERENT
    if result.strikes:
        print_table(HEADER, [row(number, done) for number, done in enumerate(result.strikes, 1)])
    for difference in result.differences:
        print(difference)
    exactly_once = loaded.settings.commit.guarantee == "exactly_once"
    order = "in their order" if ordered and exactly_once else "in any order (see --ordered)"
    repeated = "" if exactly_once else "; an output may be repeated (at_least_once)"
    print(f"compared: the outputs of each key in each partition, {order}, with their headers, without their times{repeated}. Stores: entry by entry")
    print(f"{result.result}: {result.why}; seed {seed}")
    return 0 if result.result == CLEAN else DIFFERENT


def _strike(done: StrikeDone) -> dict[str, Any]:
    return {"at_s": done.at_s, "fault": done.kind, "target": done.target, "whole_again_s": done.whole_again_s, "note": done.note}


# -- records ---------------------------------------------------------------------------------------------------------------------------


def _records(source: Path, loaded: LoadedJob, form: str) -> list[Any]:
    with _opened(source) as lines:
        bad: list[BadLine] = []
        records = list(_of_json(lines, loaded, bad) if form == JSON else _of_text(lines, loaded, bad))
    if bad:
        first = "; ".join(map(str, bad[:MOST_BAD_LINES]))
        raise ConfigurationError(f"{source}: {len(bad)} lines are not records: {first}.", "See --format in `samzapy chaos --help`.")
    if not records:
        recorded = f"samzapy tail {loaded.settings.inputs[0].topic} --from-beginning --json --job JOB.yaml"
        raise ConfigurationError(f"{source} holds no records.", f"Record some into a file: {recorded}")
    return records


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[IO[bytes]]:
    if str(source) == "-":
        yield sys.stdin.buffer
        return
    try:
        with source.open("rb") as file:
            yield file
    except OSError as error:
        raise ConfigurationError(f"{source} cannot be read: {error.strerror}.", "Name a file of records, or - for stdin.") from None


def _of_text(lines: Iterable[bytes], loaded: LoadedJob, bad: list[BadLine]) -> Iterator[Any]:
    spec = loaded.settings.inputs[0]
    serdes = Serdes(loaded.settings, loaded.folders)
    form = LineForm((spec.value, serdes.of(spec.value, spec.topic, VALUE)), (spec.key, serdes.of(spec.key, spec.topic, KEY)))
    for key, value in records_of(lines, form, bad.append):
        yield Recorded(spec.topic, key, value)


def _of_json(lines: Iterable[bytes], loaded: LoadedJob, bad: list[BadLine]) -> Iterator[Any]:
    serdes = Serdes(loaded.settings, loaded.folders)
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield _of_document(line, loaded, serdes)
            except (ValueError, RecursionError) as error:
                bad.append(BadLine(number, str(error)))
            except SerdeError as error:
                bad.append(BadLine(number, error.message.rstrip(".")))


def _of_document(line: bytes, loaded: LoadedJob, serdes: Serdes) -> Any:
    """One line of `samzapy tail --json`.

    Raises:
        ValueError, SerdeError: it is none.
    """
    record = value_of(JSON, line.decode())
    if not isinstance(record, dict) or not {"value", "value_base64", "tombstone"} & set(record):
        raise ValueError('not a document with "value"')
    topic = record.get("topic", loaded.settings.inputs[0].topic)
    spec = next((i for i in loaded.settings.inputs if i.topic == topic), None)
    if spec is None:
        raise ValueError(f"topic {topic!r} is not an input of the job")
    partition, timestamp = record.get("partition"), record.get("timestamp", 0)
    if not (partition is None or (isinstance(partition, int) and 0 <= partition < MOST_PARTITIONS)) or not isinstance(timestamp, int):
        raise ValueError(f"partition and timestamp must be whole numbers, a partition less than {MOST_PARTITIONS}")
    key = bytes_in(record, "key", lambda key: _encoded(spec.key, key, serdes.of(spec.key, topic, KEY)))
    as_value = partial(_encoded, spec.value, serde=serdes.of(spec.value, topic, VALUE))
    value = None if record.get("tombstone") else bytes_in(record, "value", as_value)
    if value is None and record.get("tombstone") is False:
        value = as_value(None)  # JSON's null
    return Recorded(topic, key, value, partition, max(0, timestamp), tuple(_headers(record.get("headers") or ())))


def _headers(pairs: Any) -> Iterator[tuple[str, bytes | None]]:
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise ValueError("headers are pairs of a name and a value")
        yield pair[0], header_of(pair[1])


def _encoded(name: str, value: Any, serde: Any) -> bytes:
    if isinstance(serde, RecordSerde):
        return serde.encode(serde.of_json(json.dumps(value).encode()))
    data: bytes = serde.encode(value.encode() if name == "bytes" and isinstance(value, str) else value)
    return data
