"""`samzapy plan`: what a run would do that began now. It reads the topics and what earlier runs left in them; it changes nothing and starts no JVM."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from samzapy.api.errors import ConfigurationError, LauncherError, SamzapyError, TopicMisconfigured, TopicMissing
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, as_called, print_json, say
from samzapy.cli.job import Job
from samzapy.cli.loading import load, with_master
from samzapy.cli.run_refusals import what_a_run_refuses
from samzapy.cli.tables import print_table
from samzapy.config.load import LoadedJob
from samzapy.config.schema import Settings
from samzapy.model.job_model import TaskModel
from samzapy.ops.inspection import job_in_kafka
from samzapy.ops.schemas import what_schemas_lack
from samzapy.ops.topic_rows import ABSENT, MISSING, WRONG, topic_rows
from samzapy.plan.assignment import check_slots
from samzapy.plan.preview import RunPreview, preview_run
from samzapy.streams import picture
from samzapy.wiring.program import graph_of

TOPICS = ("TOPIC", "ROLE", "EXPECTED", "ACTUAL", "STATE")


def plan(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    master: Annotated[str | None, typer.Option(help="Spark's master, instead of the job file's.", show_default=False)] = None,
    local: Annotated[bool, typer.Option("--local", help="As for `samzapy run --local`.")] = False,
    as_json: AsJson = False,
    graph: Annotated[
        str | None, typer.Option("--graph", help="The graph of an `app` as text, mermaid, dot or json; needs no cluster.", show_default=False)
    ] = None,
    code: Annotated[bool, typer.Option("--code", help="The code that is generated from an `app`; needs no cluster.")] = False,
) -> int:
    """What `run` would do: tasks, containers, hosts, topics to create. Changes nothing. If a run would be refused, `plan` ends with the run's exit code."""
    if graph is not None or code:
        show_program(load(file, more, with_master(sets, local, master)), graph, code)
        return 0
    job = Job(file, more, with_master(sets, local, master), classes=True)
    settings = job.settings
    with job:
        tasks = job_in_kafka(settings, job.log).tasks
        rows = topic_rows(settings, job.log, job.clock)
        ledger = job.ledger()
        refused = what_a_run_refuses(job)
    problems = _topic_problems(rows, refused)
    lacks = what_schemas_lack(settings, job.loaded.folders)
    problems += [lacks] if lacks is not None else []
    preview: RunPreview | None = None
    if tasks:
        preview = preview_run(list(tasks), settings.containers.count, ledger, None if local else settings.spark.master, os.cpu_count() or 1)
        problems += _slot_problems(settings, preview)
    if as_json:
        print_json(_document(settings, local, tasks, preview, rows, problems))
    else:
        _print(settings, local, tasks, preview, rows)
        for problem in problems:
            say(f"error[{problem.code}]: {problem}")
    return problems[0].exit_code if problems else 0


def show_program(loaded: LoadedJob, form: str | None, code: bool) -> None:
    """Print the graph of a job's program, and its code.

    Raises:
        ConfigurationError: there is no such form, or the job has no program.
    """
    if form is not None and form not in picture.FORMS:
        raise ConfigurationError(f"--graph {form}: there is no such form.", f"There are: {', '.join(picture.FORMS)}.")
    graph, topics = graph_of(loaded.settings, loaded.folders)
    if form is not None:
        sys.stdout.write(picture.FORMS[form](graph, topics))
    if code:
        sys.stdout.write(picture.code(graph))


def _topic_problems(rows: list[Any], refused: SamzapyError | None) -> list[SamzapyError]:
    """What a run would be refused for comes first: its exit code counts. Then whatever else is wrong with topics."""
    if refused is None:
        return []
    missing = [f"{role} topic {topic}" for kind, (topic, role, *_) in rows if kind == MISSING]
    found: list[SamzapyError] = [TopicMissing(f"there is no {', no '.join(missing)}.", refused.remedy)] if missing else []
    for kind, (topic, _, _, _, state) in rows:
        if kind == WRONG:
            found.append(TopicMisconfigured(f"{topic} {state}.", "samzapy never changes the settings of an existing topic: change them with Kafka's own tools."))
    same = [problem for problem in found if type(problem) is type(refused)]
    return [*(same or [refused]), *(problem for problem in found if type(problem) is not type(refused))]


def _slot_problems(settings: Settings, preview: RunPreview) -> list[SamzapyError]:
    try:
        check_slots(len(preview.plan.tasks), preview.slots, settings.spark.master)
    except LauncherError as error:
        return [error]
    return []


def _where(settings: Settings, local: bool) -> str:
    return "child processes (--local)" if local else f"Spark at {settings.spark.master}"


def _print(settings: Settings, local: bool, tasks: dict[str, TaskModel], preview: RunPreview | None, rows: list[Any]) -> None:
    print(f"job {settings.job}-{settings.id} on {_where(settings, local)}")
    if preview is not None:
        _print_preview(settings, local, tasks, preview)
    print()
    print_table(TOPICS, [row for _, row in rows])


def _print_preview(settings: Settings, local: bool, tasks: dict[str, TaskModel], preview: RunPreview) -> None:
    used = len(preview.plan.tasks)
    slots = f"; {preview.slots} slots" if preview.slots is not None else "" if local else "; the number of slots is known only when Spark runs"
    print(f"{len(tasks)} tasks in {used} container{'' if used == 1 else 's'}{slots}")
    if used < settings.containers.count:
        say(f"containers.count is {settings.containers.count}, but {len(tasks)} tasks fill {used}; containers that would have none are not started")
    if preview.hosts_are_assumed:
        say("hosts: those with the tasks' state from earlier runs, if Spark has executors there again")
    print()
    print_table(("CONTAINER", "HOST", "TASKS"), [(n, preview.plan.hosts.get(n) or "any", len(names)) for n, names in preview.plan.tasks.items()])
    print()
    container = {t: n for n, names in preview.plan.tasks.items() for t in names}
    lines = [(t.name, container[t.name], preview.before.get(t.name), ", ".join(str(p) for p in t.inputs)) for t in tasks.values()]
    print_table(("TASK", "CONTAINER", "BEFORE", "PARTITIONS"), lines)


def _document(
    settings: Settings, local: bool, tasks: dict[str, TaskModel], preview: RunPreview | None, rows: list[Any], problems: list[SamzapyError]
) -> dict[str, Any]:
    container = {} if preview is None else {t: n for n, names in preview.plan.tasks.items() for t in names}
    return {
        "job": settings.job, "id": settings.id, "master": None if local else settings.spark.master,
        "slots": None if preview is None else preview.slots,
        "containers": [] if preview is None else [
            {"id": n, "host": preview.plan.hosts.get(n), "tasks": list(names)} for n, names in preview.plan.tasks.items()
        ],
        "tasks": [
            {"name": t.name, "container": container.get(t.name), "before": preview.before.get(t.name) if preview else None,
             "partitions": [f"kafka.{p.topic}.{p.partition}" for p in t.inputs]}
            for t in tasks.values()
        ],
        "topics": [dict(zip([h.lower() for h in TOPICS], row, strict=True)) for _, row in rows],
        "creates": [row[0] for kind, row in rows if kind == ABSENT],
        "problems": [{"code": p.code, "message": as_called(p.message), "remedy": as_called(p.remedy)} for p in problems],
    }  # fmt: skip
