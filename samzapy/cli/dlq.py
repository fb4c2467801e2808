"""`samzapy dlq list|show|replay|discard`: a job's dead letters, running or not, and the way back to where they came from."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from samzapy.api.errors import SamzapyError
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, print_json, say
from samzapy.cli.dlq_filter import OfTask, OfTopic, Since, WithError, filter_of
from samzapy.cli.job import Job
from samzapy.cli.signals_and_threads import clean_up_when_told
from samzapy.cli.tables import print_table
from samzapy.model.dead_letter import Origin
from samzapy.ops.dead_letters import DeadLetters
from samzapy.ops.exact_json import exact, header
from samzapy.ops.letter_choice import by_kind, check_choice, discard_of, opened, replay_of
from samzapy.ops.letters import Entry
from samzapy.ops.shown import BYTES, Undecoded, decoded, serdes_by_topic
from samzapy.printable import printable
from samzapy.wiring.serdes import KEY, VALUE, Serdes

app = typer.Typer(help="Show dead letters, replay or discard them.", no_args_is_help=True)
MAX_ERROR = 240  # characters


Execute = Annotated[bool, typer.Option("--execute", help="Do it. Without this option the command only shows what it would do.")]


@app.command("list")
def list_letters(
    file: JobFile,
    task: OfTask = None,
    topic: OfTopic = None,
    error: WithError = None,
    since: Since = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="Only those that were neither sent back nor discarded.")] = False,
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """The dead letters, the oldest first; all of them, or those that the options select."""
    job = Job(file, more, sets)
    chosen = filter_of(task, topic, error, since, job.clock.now_ms())
    with _opened(job) as letters:
        found = letters.read()
    entries = [e for e in found.entries if chosen.takes(e) and (e.is_waiting or not waiting)]
    if as_json:
        for entry in entries:
            print_json(_summary(entry))
    elif entries:
        rows = [(e.number, e.letter.task, e.letter.origin, _time(e.letter.time_ms), _error(e.letter), _state(e)) for e in entries]
        print_table(("NUMBER", "TASK", "ORIGIN", "TIME", "ERROR", "STATE"), rows)
    else:
        say(why_none(len(found.entries), only_waiting=waiting and chosen.is_any is False))
    if found.strangers:
        say(f"{found.strangers} records in the dead-letter topic are not dead letters")
    if found.deleted:
        who = "Kafka (retention.ms of the topic) or somebody"
        say(f"{who} deleted older dead letters: {found.deleted:,} offsets at the start of the partitions are gone")


@app.command("show")
def show(
    file: JobFile,
    which: Annotated[
        str,
        typer.Argument(
            metavar="NUMBER", help="The number that `list` gives, or TOPIC[PARTITION]@OFFSET of the record.", show_default=False
        ),
    ],
    more: MoreFiles = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """A dead letter: key and value by the input's serdes if they decode, headers, stack.

    With --json, what does not decode, and what JSON cannot hold exactly, is in `key_base64` or `value_base64`: the bytes as Kafka has
    them. A header that is not text is {"base64": …}."""
    job = Job(file, more, sets)
    with _opened(job) as letters:
        chosen = letters.read().named(which)
    for entry in chosen:
        key, value = _decoded(job, entry.letter)
        if as_json:
            headers = [[name, header(data)] for name, data in entry.letter.headers]
            fields = {**exact("key", entry.letter.key, key), **exact("value", entry.letter.value, value)}
            print_json({**_summary(entry), **fields, "headers": headers, "stack": entry.letter.stack})
        else:
            _print_letter(entry, key, value)


Numbers = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NUMBER]...", help="The numbers that `list` gives, or TOPIC[PARTITION]@OFFSET of the records.", show_default=False),
]


@app.command("replay")
def replay(
    file: JobFile,
    which: Numbers = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters that wait; each record once at most.")] = False,
    task: OfTask = None,
    topic: OfTopic = None,
    error: WithError = None,
    since: Since = None,
    to_all_tasks: Annotated[
        bool,
        typer.Option("--to-all-tasks", help="Also records of broadcast inputs that some tasks have processed already: those tasks process them a second time."),
    ] = False,
    new_time: Annotated[
        bool, typer.Option("--new-time", help="Records without a time, or whose topic would refuse or soon delete them for their time, get the current time.")
    ] = False,
    over_newer: Annotated[
        bool,
        typer.Option("--over-newer", help="Also records of tables and compacted topics that have a newer record of the key: the old value replaces the newer one."),
    ] = False,
    more: MoreFiles = None,
    sets: Sets = None,
    execute: Execute = False,
    as_json: AsJson = False,
) -> None:
    """Send records back to the topic and partition that they came from, each at most once, with their own timestamp.

    A record that failed in a following stage of a program goes back into the topic before that stage: earlier stages do not repeat it. With its
    own time it may be late, or too late, for windows that have given their result meanwhile.

    A broadcast input's record that failed in some tasks only is refused: every task would process it again. `--to-all-tasks` sends it
    anyway. A record is refused, too, if its topic does not take its timestamp (message.timestamp.before.max.ms, message.timestamp.after.max.ms), or
    would remove it soon (retention.ms). `--new-time` sends it with the current time. A topic with message.timestamp.type=LogAppendTime gives
    each record the current time anyway.

    In a table (`app.table`, an input with `bootstrap`) and in a compacted topic, a record replaces those before it with its key. So one is refused if the
    topic has a newer record of its key; `--over-newer` sends it anyway. Every reader of the topic gets what is sent back, other jobs, too.
    """
    job = Job(file, more, sets)
    chosen = filter_of(task, topic, error, since, job.clock.now_ms())
    check_choice(which, everything, chosen, "replay")
    with job:
        letters = opened(job.settings, job.log, job.clock, to_all_tasks, new_time, over_newer=over_newer)
        plan = replay_of(letters, letters.read(), which, chosen)
        waiting = list(plan.waiting)
        for origin in plan.shortened:
            say(f"{origin} is not sent back: its dead letter is shortened. The whole record is at {origin}, as long as the topic keeps it")
        for entry in plan.sent_before:
            say(sent_before(entry))
        _tell_passed_by(plan.passed_by)
        for why, origins in plan.new_time.items():
            say(f"{len(origins)} of the records get the current time instead of their own: {why}; the first: {origins[0]}")
        if plan.late:
            say(plan.late)
        if waiting:
            say(f"{', '.join(sorted({e.letter.origin.topic for e in waiting}))}: every reader gets what is sent back, other jobs, too")
        if execute:
            clean_up_when_told()
            waiting = send_back(letters, plan.wanted)
            if waiting:
                say(f"{_records(waiting)} sent back")
        else:
            for origin in dict.fromkeys(e.letter.origin for e in waiting):
                say(f"would send back {origin}")
        for entry in plan.done_before:
            say(done_before(entry))
        if not waiting:
            say("nothing to send back")
        elif not execute:
            say("nothing was changed; do it with --execute")
    _print_done(waiting, "replayed", execute, as_json)


@app.command("discard")
def discard(
    file: JobFile,
    which: Numbers = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters that were neither sent back nor discarded.")] = False,
    task: OfTask = None,
    topic: OfTopic = None,
    error: WithError = None,
    since: Since = None,
    more: MoreFiles = None,
    sets: Sets = None,
    execute: Execute = False,
    as_json: AsJson = False,
) -> None:
    """Mark dead letters as not needed: no replay sends them back. They stay in the topic until Kafka deletes them."""
    job = Job(file, more, sets)
    chosen = filter_of(task, topic, error, since, job.clock.now_ms())
    check_choice(which, everything, chosen, "discard")
    with _opened(job) as letters:
        waiting = discard_of(letters.read(), which, chosen)
        if execute and waiting:
            clean_up_when_told()
            waiting = letters.discard({e.place for e in waiting}, lambda done, of: say(f"discarded {done} of {of}"))
        elif waiting:
            for entry in waiting:
                say(f"would discard {entry.number}: {entry.letter.origin}, {_error(entry.letter)}")
            say("nothing was changed; do it with --execute")
        else:
            say("nothing to discard")
    _print_done(waiting, "discarded", execute, as_json)


def _print_done(entries: Sequence[Entry], done: str, execute: bool, as_json: bool) -> None:
    if as_json:
        for entry in entries:
            print_json({"number": entry.number, "origin": str(entry.letter.origin), "done": done if execute else None})


def _tell_passed_by(why: Sequence[SamzapyError]) -> None:
    """Those that stay, counted by kind, each kind with its first one."""
    for errors in by_kind(why):
        say(f"{len(errors)} dead letter{'' if len(errors) == 1 else 's'} skipped; the first: {errors[0]}")


def send_back(letters: DeadLetters, wanted: Sequence[Origin] | None) -> list[Entry]:
    """As `DeadLetters.replay`; if that is interrupted, says how many records confirmed commits have sent."""
    so_far = "nothing is known to be sent back"

    def tell(done: int, of: int) -> None:
        nonlocal so_far
        so_far = f"sent back {done} of {of}"
        if done < of:  # the end is said by who called
            say(so_far)

    try:
        return letters.replay(wanted, tell)
    except KeyboardInterrupt:
        say(f"{so_far}; the next replay sends the rest, and nothing twice")
        raise


@contextmanager
def _opened(job: Job) -> Iterator[Any]:
    """To look at, or to discard."""
    with job:
        yield DeadLetters(job.names, [i.topic for i in job.settings.inputs], job.log, job.clock)


def _records(entries: Sequence[Any]) -> str:
    count = len({e.letter.origin for e in entries})
    return f"{count} record{'' if count == 1 else 's'}"


def _summary(entry: Any) -> dict[str, Any]:
    letter = entry.letter
    return {
        "number": entry.number, "task": letter.task, "origin": str(letter.origin), "topic": letter.origin.topic,
        "partition": letter.origin.partition, "offset": letter.origin.offset, "timestamp": letter.timestamp_ms, "time": letter.time_ms,
        "error": letter.error, "truncated": letter.truncated or None, "attempts": letter.attempts, "dead_letter": str(entry.place), "replayed": entry.replayed_ms,
        "discarded": entry.discarded_ms,
    }  # fmt: skip


def _decoded(job: Job, letter: Any) -> tuple[Any, Any]:
    """Key and value by the serdes of the topic, each as its bytes if the job has no such topic."""
    names = serdes_by_topic(job.settings).get(letter.origin.topic, (BYTES, BYTES))
    serdes, topic = Serdes(job.settings, job.loaded.folders), letter.origin.topic
    return decoded(serdes, names[0], topic, KEY, letter.key), decoded(serdes, names[1], topic, VALUE, letter.value)


def _print_letter(entry: Any, key: Any, value: Any) -> None:
    letter = entry.letter
    lines = [
        f"number    {entry.number} ({entry.place})", f"record    {letter.origin}", f"task      {letter.task}", f"error     {_line(letter.error)}",
        *([f"shortened {_line(letter.truncated)} (its sizes before, in bytes; the whole record is only at {letter.origin})"] if letter.truncated else []),
        f"attempts  {letter.attempts}", f"time      {_time(letter.time_ms)}", f"timestamp {_time(letter.timestamp_ms)}",
        f"state     {_state(entry)}", f"key       {_shown(key)}",
        f"value     {_shown(value)}",
        *(f"header    {_line(name)}: {'-' if data is None else _escaped(data)}" for name, data in letter.headers),
        "stack", *(f"  {_line(line)}" for line in letter.stack.splitlines()),
    ]  # fmt: skip
    sys.stdout.write("\n".join(printable(line) for line in lines) + "\n")


def why_none(there: int, only_waiting: bool) -> str:
    """Why `list` shows none of those that are there."""
    if not there:
        return "no dead letters"
    if only_waiting:
        return f"no dead letter waits: {'the one that is there was' if there == 1 else f'all {there} were'} sent back or discarded before"
    return f"no dead letter matches the options; the dead-letter topic holds {there}"


def done_before(entry: Entry) -> str:
    """What became of one that was chosen and does not wait."""
    is_sent = entry.replayed_ms is not None
    return f"{entry.letter.origin} was {'sent back' if is_sent else 'discarded'} before: {_time(entry.replayed_ms if is_sent else entry.discarded_ms)} UTC"


def sent_before(entry: Entry) -> str:
    """Why one that waits is left out of all."""
    return (
        f"{entry.number} is not sent back: its record, {entry.letter.origin}, was sent back before, from another dead letter, and the job processes that copy. "
        f"To send the record once more, name this one: samzapy dlq replay JOB.yaml {entry.number} --execute"
    )


def error_cell(error: str) -> str:
    """An error's text for a table, cut in its middle: the end says what was wrong, the beginning which error it is."""
    text = _line(error)
    return text if len(text) <= MAX_ERROR else f"{text[: MAX_ERROR // 2 - 2]} … {text[1 - MAX_ERROR // 2 :]}"


def _error(letter: Any) -> str:
    return ("(shortened) " if letter.truncated else "") + error_cell(letter.error)


def _state(entry: Entry) -> str:
    return _time(entry.replayed_ms) if entry.discarded_ms is None else f"discarded {_time(entry.discarded_ms)}"


def _time(ms: int | None) -> str:
    if ms is None:
        return "-"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
    except (OverflowError, ValueError, OSError):
        return str(ms)


def _shown(value: Any) -> str:
    data = value.data if isinstance(value, Undecoded) else value
    return json.dumps(_escaped(data) if isinstance(data, bytes) else data, ensure_ascii=False, default=repr)


def _escaped(data: bytes) -> str:
    """As text where it is printable, \\x.. elsewhere."""
    return repr(data)[2:-1]


def _line(text: str) -> str:
    """One line that does nothing to a terminal."""
    return printable(text)
