"""`samzapy state get|scan|export|restore|verify`: the committed view of a job's stores, running or not, and its local stores."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from samzapy.api.errors import ConfigurationError, OwnedElsewhere, SamzapyError
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, connected, load, print_json, print_table, say
from samzapy.cli.lines import text_of
from samzapy.cli.output import unescaped
from samzapy.config.load import LoadedJob
from samzapy.model.names import task_name
from samzapy.ports import Log
from samzapy.printable import printable

app = typer.Typer(help="Show and restore stores.", no_args_is_help=True)
StoreName = Annotated[str, typer.Argument(metavar="STORE", help="The store's name in the job file.", show_default=False)]
NOT_FOUND = 1
Entry = tuple[int, bytes, bytes]  # partition, key, value


@app.command("get")
def get(
    job: JobFile,
    store: StoreName,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key, as text; JSON where the serde is not string.", show_default=False)],
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> int:
    """The committed value of one key, and the task whose entry it is (of each, where several have it); exit code 1 where there is none."""
    loaded = load(job, more, sets)
    wanted = _key_bytes(loaded, store, key)
    found = [entry for entry in _entries(loaded, store) if entry[1] == wanted]
    _print(loaded, store, found, as_json)
    if not found:
        say(f"no such key in {store!r}")
    return 0 if found else NOT_FOUND


@app.command("scan")
def scan(
    job: JobFile,
    store: StoreName,
    prefix: Annotated[str, typer.Argument(metavar="[PREFIX]", help="Only keys that start with this.")] = "",
    limit: Annotated[int, typer.Option(help="At most so many entries; 0 = all.", min=0)] = 0,
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Committed entries in key order: key, value, and the task whose entry it is."""
    loaded = load(job, more, sets)
    start = prefix.encode()
    found = sorted((entry for entry in _entries(loaded, store) if entry[1].startswith(start)), key=_order(loaded, store))
    _print(loaded, store, found[:limit] if limit else found, as_json)


@app.command("export")
def export(job: JobFile, store: StoreName, more: MoreFiles = None, sets: Sets = None, as_json: AsJson = False) -> None:
    """All committed entries in key order: key, value, and the task whose entry it is."""
    loaded = load(job, more, sets)
    _print(loaded, store, sorted(_entries(loaded, store), key=_order(loaded, store)), as_json)


@app.command("restore")
def restore(
    job: JobFile,
    store: Annotated[str | None, typer.Option("--store", help="Only this store.")] = None,
    task: Annotated[str | None, typer.Option("--task", help='Only this task, e.g. "Partition 0".')] = None,
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild local stores from the changelogs while the job is stopped; the next run uses them."""
    from samzapy.local_stores import StoreReport

    loaded = load(job, more, sets)
    with connected(loaded) as log:
        local = _local(loaded, log)
        reports: list[StoreReport] = [local.restore(t, s, _progress) for t, s in local.places(store, task)]
    _print_reports(reports, as_json)


@app.command("verify")
def verify(job: JobFile, more: MoreFiles = None, sets: Sets = None, as_json: AsJson = False) -> int:
    """Whether changelog, local stores and checkpoint agree; exit code 1 where they do not."""
    loaded = load(job, more, sets)
    with connected(loaded) as log:
        local = _local(loaded, log)
        reports = [local.verify(t, s) for t, s in local.places(None, None)]
    _print_reports(reports, as_json)
    return 0 if all(r.good for r in reports) else 1


def _local(loaded: LoadedJob, log: Log) -> Any:
    from samzapy.cli.inspect import running_url
    from samzapy.clock import SystemClock
    from samzapy.local_stores import LocalState

    url = running_url(loaded, log)
    if url is not None:
        raise OwnedElsewhere(f"job {loaded.settings.job}-{loaded.settings.id} is running ({url}).", "Stop it first: `samzapy stop JOB.yaml`.")
    return LocalState(loaded.settings, list(loaded.folders), "localhost", log, SystemClock())


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


def _entries(loaded: LoadedJob, store: str) -> list[Entry]:
    from samzapy.clock import SystemClock
    from samzapy.inspection import committed_entries

    with connected(loaded) as log:
        return list(committed_entries(loaded.settings, store, log, SystemClock()))


def _serdes(loaded: LoadedJob, store: str) -> tuple[Any, Any]:
    from samzapy.inspection import changelog_of
    from samzapy.serde.registry import serde_named

    changelog_of(loaded.settings, store)
    spec = loaded.settings.stores[store]
    folders = [Path(f) for f in loaded.folders]
    return serde_named(spec.key, folders), serde_named(spec.value, folders)


def _order(loaded: LoadedJob, store: str) -> Any:
    key, _ = _serdes(loaded, store)
    if getattr(key, "key_order", "bytes") == "signed":
        return lambda entry: (int.from_bytes(entry[1], "big", signed=True), entry[0])
    return lambda entry: (entry[1], entry[0])


def _key_bytes(loaded: LoadedJob, store: str, text: str) -> bytes:
    import json

    key, _ = _serdes(loaded, store)
    try:
        value = (
            text
            if loaded.settings.stores[store].key == "string"
            else text.encode()
            if loaded.settings.stores[store].key == "bytes"
            else json.loads(text)
        )
        encoded: bytes = key.encode(value)
        return encoded
    except (ValueError, SamzapyError) as error:
        raise ConfigurationError(
            f"key {text!r} is none of the serde {loaded.settings.stores[store].key}: {error}", "Write it as JSON."
        ) from None


def _print(loaded: LoadedJob, store: str, entries: list[Entry], as_json: bool) -> None:
    key, value = _serdes(loaded, store)
    for partition, raw_key, raw in entries:
        k, v, task = key.decode(raw_key), value.decode(raw), task_name(partition)
        if as_json:
            print_json({"key": k, "value": v, "task": task, "partition": partition})
        else:
            sys.stdout.write(f"{text_of(k)}\t{text_of(v)}\t{task}\n")
