"""`samzapy debug stack|profile|trace`: what a container of the running job does now, and where its time goes. It goes on undisturbed meanwhile."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from samzapy.api.errors import ConfigurationError
from samzapy.cli.change import Running, TokenFile
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, print_json, say
from samzapy.cli.job import Job
from samzapy.container.profile import flame_graph, folded, stacks_in
from samzapy.container.sampling import Stack
from samzapy.model.states import ContainerState
from samzapy.printable import printable, printable_lines

app = typer.Typer(help="Look inside the running job's containers; nothing is changed by it.", no_args_is_help=True)
PATIENCE_S = 15.0
SHOWN = 15  # functions of a profile
OfContainer = Annotated[int | None, typer.Option("--container", min=0, help="Which container; needed if there are several.", show_default=False)]


@app.command("stack")
def stack(
    file: JobFile,
    container: Annotated[int | None, typer.Option("--container", min=0, help="Only this one.", show_default=False)] = None,
    more: MoreFiles = None,
    sets: Sets = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> int:
    """What each container is doing now: the record it is processing, and the stacks of its threads."""
    with _running(file, more, sets, token_file) as run:
        for number in _live(run.status) if container is None else [container]:
            found = _ask(run, f"containers/{number}/stack", {}, PATIENCE_S)
            if as_json:
                print_json(found)
            else:
                _print_stack(found)
    return 0


@app.command("profile")
def profile(
    file: JobFile,
    container: OfContainer = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.5, max=40, help="How long to profile, in seconds.")] = 10.0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file for the whole profile: X.svg, a flame graph, or X.folded for other tools.", show_default=False)
    ] = None,
    more: MoreFiles = None,
    sets: Sets = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> int:
    """Where a container's time goes, by its functions: like `run --profile`, but for some seconds of a running job."""
    if output is not None and output.suffix not in (".svg", ".folded"):
        raise ConfigurationError(f"-o {output}: ends neither in .svg nor in .folded.", "Name it X.svg for a flame graph, X.folded for other tools.")
    with _running(file, more, sets, token_file) as run:
        number = _only(run.status) if container is None else container
        say(f"container {number}, for {seconds:g} s …")
        found = _ask(run, f"containers/{number}/profile", {"seconds": seconds}, seconds + PATIENCE_S)
    stacks = stacks_in(str(found["folded"]))
    if output is not None:
        text = flame_graph(stacks, f"container {number}") if output.suffix == ".svg" else folded(stacks)
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"-o {output}: {error.strerror}.", "Name a file that this user can write.") from None
        say(f"written: {output}")
    if as_json:
        print_json(found)
    elif output is None:
        _print_profile(stacks)
    return 0


@app.command("trace")
def trace(
    file: JobFile,
    task: Annotated[str, typer.Argument(help="The task, for example 'Partition 3'.", show_default=False)],
    records: Annotated[int, typer.Option("--records", min=1, max=100, help="How many of its next records.")] = 5,
    seconds: Annotated[float, typer.Option("--seconds", min=0.5, max=40, help="How long to wait for them at most, in seconds.")] = 30.0,
    more: MoreFiles = None,
    sets: Sets = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> int:
    """A task's next records: what its hook put and sent for each, how long it took, what it raised. Shows the records' contents."""
    with _running(file, more, sets, token_file) as run:
        asked = {"records": records, "seconds": seconds}
        found = _ask(run, f"tasks/{quote(task, safe='')}/trace", asked, seconds + PATIENCE_S)
    if as_json:
        print_json(found)
        return 0
    for record in found["records"]:
        _print_record(record)
    if len(found["records"]) < records:
        say(f"{len(found['records'])} records came in {seconds:g} s")
    return 0


@contextmanager
def _running(file: Path, more: list[Path] | None, sets: list[str] | None, token_file: Path | None) -> Iterator[Running]:
    """The job's run; where it does not run, that is said, and the command ends with the exit code for it."""
    with Job(file, more, sets) as job:
        run = Running.of(job, token_file, time.monotonic() + PATIENCE_S)
        if isinstance(run, int):
            raise typer.Exit(run)
        yield run


def _ask(run: Running, path: str, content: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    status = run.status
    return run.post_to(f"v1/jobs/{quote(status['job'], safe='')}/{quote(status['id'], safe='')}/{path}", content, timeout_s)


def _live(status: Mapping[str, Any]) -> list[int]:
    return [c["id"] for c in status["containers"] if c["state"] in (ContainerState.STARTING, ContainerState.RUNNING, ContainerState.STOPPING)]


def _only(status: Mapping[str, Any]) -> int:
    found = _live(status)
    if len(found) != 1:
        if not found:
            raise ConfigurationError("no container of the job runs now.", "Ask again when `samzapy status JOB.yaml` shows one that runs.")
        raise ConfigurationError(f"which container? Those that run: {', '.join(map(str, found))}.", f"Name it: --container {found[0]}.")
    return found[0]


def _print_stack(found: Mapping[str, Any]) -> None:
    now = found["now"]
    what = f", record {now['record']}" if now["record"] else ""
    at = f", at {now['at']}" if now["at"] else ""
    lines = [f"container {found['container']}, process {found['pid']}: {now['phase'].replace('_', ' ')} for {now['seconds']:.1f} s{what}{at}"]
    for thread in found["threads"]:
        lines += ["", f"thread {thread['name']}" + (" (the loop)" if thread["is_loop"] else ""), *(f"  {frame}" for frame in thread["frames"])]
    sys.stdout.write(printable_lines("\n".join(lines)) + "\n\n")


def _print_profile(stacks: Mapping[Stack, int]) -> None:
    total = sum(stacks.values())
    own: dict[str, int] = {}
    whole: dict[str, int] = {}
    for stack_, microseconds in stacks.items():
        functions = [frame for frame in stack_ if not frame.startswith("line ")]
        for name in set(functions):
            whole[name] = whole.get(name, 0) + microseconds
        if functions:
            own[functions[-1]] = own.get(functions[-1], 0) + microseconds
    lines = ["  OWN  WITH CALLS  FUNCTION"]
    for name in sorted(whole, key=lambda n: (-own.get(n, 0), -whole[n]))[:SHOWN]:
        lines.append(f"{100 * own.get(name, 0) / total:4.0f} %  {100 * whole[name] / total:8.0f} %  {name}")
    sys.stdout.write(printable_lines("\n".join(lines)) + "\n")


def _print_record(record: Mapping[str, Any]) -> None:
    took = "" if record["us"] is None else f"  {record['us']:,.0f} µs"
    lines = [f"{record['record']}  key {record['key']}  value {record['value']}{took}"]
    lines += [f"  put {put['store']}  {put['key']}: {put['old']} -> {put['new']}" for put in record["puts"]]
    for sent in record["sent"]:
        partition = "" if sent["partition"] is None else f"[{sent['partition']}]"
        lines.append(f"  sent {sent['topic']}{partition}  {sent['key']}: {sent['value']}")
    if record["more"]:
        lines.append(f"  and {record['more']} more")
    if record["error"]:
        lines.append(f"  raised {record['error']}")
    sys.stdout.write("\n".join(map(printable, lines)) + "\n")
