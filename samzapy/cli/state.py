"""`samzapy state get|scan|export|restore|verify`: the committed view of a job's stores, running or not, and its local stores."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from samzapy.api.errors import ConfigurationError, SamzapyError
from samzapy.cli import forget
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, print_json, say
from samzapy.cli.job import Job
from samzapy.cli.lines import value_of
from samzapy.cli.output import unescaped
from samzapy.cli.state_of_windows import Entry, WindowStore, window_of
from samzapy.cli.tables import print_table
from samzapy.model.names import LOCALHOST, task_name
from samzapy.ops.exact_json import exact, from_base64
from samzapy.ops.inspection import changelog_of, committed_entries
from samzapy.ops.local_stores import NO_LOCAL_STORE, LocalState, StoreReport
from samzapy.ops.shown import read, text_of
from samzapy.printable import printable
from samzapy.wiring.serdes import KEY, VALUE, Serdes

app = typer.Typer(help="Show, export, check, rebuild and delete a job's stores.", no_args_is_help=True)
StoreName = Annotated[str, typer.Argument(metavar="STORE", help="The store's name in the job file.", show_default=False)]
NOT_FOUND = 1
IsBase64 = Annotated[
    bool, typer.Option("--base64", help="KEY or PREFIX is given in base64: the key's bytes, or its first bytes. With --json, `key_base64` has a key's bytes.")
]


@app.command("get")
def get(
    file: JobFile,
    store: StoreName,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="The key: as text if its serde is string or bytes, else as JSON.", show_default=False)
    ],
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
    is_base64: IsBase64 = False,
) -> int:
    """The committed value of one key, and the task whose entry it is (of each task that has it); exit code 1 if no task has it.
    Of a window's store: all slices of the key.

    The output without --json is for people. With --json it is one document per line, in which nothing is lost: `key` and `value` hold what the
    serdes read (bytes as their text in UTF-8). What JSON cannot hold exactly is in `key_base64` or `value_base64` instead: the bytes
    as Kafka has them."""
    job = Job(file, more, sets)
    windows = _windows(job, store)
    if windows is not None:
        wanted = _base64(store, key) if is_base64 else _encoded(windows.key_serde, windows.key, key)
        slices = windows.rows(_entries(job, store), lambda found: found == wanted)
        windows.show(slices, as_json)
        count = len(slices)
    else:
        wanted = _key_bytes(job, store, key, is_base64)
        found = [entry for entry in _entries(job, store) if entry[1] == wanted]
        _print(job, store, found, as_json)
        count = len(found)
    if not count:
        say(f"no such key in {store!r}")
    return 0 if count else NOT_FOUND


@app.command("scan")
def scan(
    file: JobFile,
    store: StoreName,
    prefix: Annotated[str, typer.Argument(metavar="[PREFIX]", help="Only keys that start with this.")] = "",
    limit: Annotated[int, typer.Option(help="Show at most this many entries; 0 = all.", min=0)] = 0,
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
    is_base64: IsBase64 = False,
) -> None:
    """Committed entries in key order: key, value, and the task whose entry it is. Of a window's store: its slices in the order of time,
    each with its key, its span of time (UTC), how many records it has, and what they add up to.

    The output without --json is for people. With --json it is one document per line, in which nothing is lost: `key` and `value` hold what the
    serdes read (bytes as their text in UTF-8). What JSON cannot hold exactly is in `key_base64` or `value_base64` instead: the bytes
    as Kafka has them."""
    job = Job(file, more, sets)
    start = _base64(store, prefix) if is_base64 else os.fsencode(prefix)
    windows = _windows(job, store)
    if windows is not None:
        slices = windows.rows(_entries(job, store), lambda key: key.startswith(start))
        windows.show(slices[:limit] if limit else slices, as_json)
        _say_if_none(store, slices, prefix)
        return
    found = sorted((entry for entry in _entries(job, store) if entry[1].startswith(start)), key=_order(job, store))
    _print(job, store, found[:limit] if limit else found, as_json)
    _say_if_none(store, found, prefix)


@app.command("export")
def export(file: JobFile, store: StoreName, more: MoreFiles = None, sets: Sets = None, as_json: AsJson = False) -> None:
    """All committed entries in key order: key, value, and the task whose entry it is. Of a window's store: its slices, as `state scan` shows them.

    The output without --json is for people. With --json it is one document per line, in which nothing is lost: `key` and `value` hold what the
    serdes read (bytes as their text in UTF-8). What JSON cannot hold exactly is in `key_base64` or `value_base64` instead: the bytes
    as Kafka has them."""
    job = Job(file, more, sets)
    windows = _windows(job, store)
    if windows is not None:
        slices = windows.rows(_entries(job, store), lambda key: True)
        windows.show(slices, as_json)
        _say_if_none(store, slices)
        return
    found = sorted(_entries(job, store), key=_order(job, store))
    _print(job, store, found, as_json)
    _say_if_none(store, found)


@app.command("restore")
def restore(
    file: JobFile,
    store: Annotated[str | None, typer.Option("--store", help="Only this store.")] = None,
    task: Annotated[str | None, typer.Option("--task", help='Only this task, e.g. "Partition 0".')] = None,
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild local stores from the changelogs while the job is stopped; the next run uses them."""
    with Job(file, more, sets) as job:
        local = _local(job)
        reports: list[StoreReport] = [local.restore(t, s, _progress) for t, s in local.places(store, task)]
    _print_reports(reports, as_json)


@app.command("verify")
def verify(file: JobFile, more: MoreFiles = None, sets: Sets = None, as_json: AsJson = False) -> int:
    """Check whether changelog, local stores and checkpoint agree; exit code 1 if they do not.

    agrees: the local store has what the changelog has. no local store: the next run restores it. Wrong: differs (the local store), orphaned (state without
    a checkpoint), cut off (the changelog lost its end), refused (a run would be), only copy (the changelog lost its start; keep the local store)."""
    with Job(file, more, sets) as job:
        local = _local(job)
        reports = [local.verify(t, s) for t, s in local.places(None, None)]
    _print_reports(reports, as_json)
    if reports and all(r.outcome == NO_LOCAL_STORE for r in reports):
        say("nothing was compared: this host has no local store of the job")
    return 0 if all(r.good for r in reports) else 1


def _local(job: Job) -> Any:
    job.refuse_running()
    return LocalState(job.settings, list(job.loaded.folders), LOCALHOST, job.log, job.clock)


def _progress(what: str, have: int, need: int, seconds: float) -> None:
    rate = have / seconds if seconds > 0 else 0.0
    line = f"{what}: {have} of {need} offsets, {rate:,.0f}/s"
    if sys.stderr.isatty():
        unescaped(sys.stderr).write(f"\r{printable(line)}\x1b[K" + ("\n" if have >= need else ""))
        sys.stderr.flush()
    elif time.monotonic() - _last_line[0] > 1.0 or have >= need:
        _last_line[0] = time.monotonic()
        say(line)


_last_line = [0.0]


def _print_reports(reports: Any, as_json: bool) -> None:
    if as_json:
        for r in reports:
            print_json({"task": r.task, "store": r.store, "outcome": r.outcome, "records": r.records, "detail": r.detail, "good": r.good})
    else:
        print_table(("TASK", "STORE", "OUTCOME", "RECORDS", "DETAIL"), [(r.task, r.store, r.outcome, r.records, r.detail) for r in reports])


def _entries(job: Job, store: str) -> list[Entry]:
    with job:
        return list(committed_entries(job.settings, store, job.log, job.clock))


def _serdes(job: Job, store: str) -> tuple[Any, Any]:
    topic = changelog_of(job.settings, store)
    spec = job.settings.stores[store]
    serdes = Serdes(job.settings, [Path(f) for f in job.loaded.folders])
    return serdes.of(spec.key, topic, KEY), serdes.of(spec.value, topic, VALUE)


def _windows(job: Job, store: str) -> WindowStore | None:
    node = window_of(job.loaded, store)
    return None if node is None else WindowStore(job.loaded, node)


def _order(job: Job, store: str) -> Any:
    key, _ = _serdes(job, store)
    if getattr(key, "key_order", "bytes") == "signed":
        return lambda entry: (int.from_bytes(entry[1], "big", signed=True), entry[0])
    return lambda entry: (entry[1], entry[0])


def _key_bytes(job: Job, store: str, text: str, is_base64: bool) -> bytes:
    if is_base64:
        return _base64(store, text)
    key, _ = _serdes(job, store)
    return _encoded(job.settings.stores[store].key, key, text)


def _encoded(name: str, serde: Any, text: str) -> bytes:
    """A key as the serde of that name writes it."""
    if name == "bytes":
        return os.fsencode(text)
    try:
        encoded: bytes = serde.encode(value_of(name, text, serde))
        return encoded
    except (ValueError, SamzapyError) as error:
        raise ConfigurationError(f"key {text!r} does not fit serde {name}: {error}", "Write it as JSON, or as its bytes with --base64.") from None


def _base64(store: str, text: str) -> bytes:
    try:
        return from_base64(text)
    except ValueError as error:
        raise ConfigurationError(f"key {text!r}: {error}.", f"Give what `samzapy state export JOB.yaml {store} --json` shows as `key_base64`.") from None


def _print(job: Job, store: str, entries: list[Entry], as_json: bool) -> None:
    key, value = _serdes(job, store)
    for partition, raw_key, raw in entries:
        k, v, task = read(key, raw_key), read(value, raw), task_name(partition)
        if as_json:
            print_json({**exact("key", raw_key, k), **exact("value", raw, v), "task": task, "partition": partition})
        else:
            sys.stdout.write(f"{text_of(k)}\t{text_of(v)}\t{task}\n")


def _say_if_none(store: str, found: Sequence[object], prefix: str = "") -> None:
    if not found:
        say(f"store {store!r} has no committed entry" + (f" whose key begins with {prefix!r}" if prefix else ": it is empty"))


app.command("drop")(forget.drop)
