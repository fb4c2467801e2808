"""The table of routes: the application and the OpenAPI file are both made of it."""

from __future__ import annotations

import re
from typing import Any

from samzapy.web import bodies as b
from samzapy.web import schemas as s
from samzapy.web.access import NAMES, May
from samzapy.web.facts import filtered, ordered
from samzapy.web.graph import graph_of
from samzapy.web.open_status import open_status
from samzapy.web.route import Asked, J, Query, Route
from samzapy.web.route_errors import NotFound
from samzapy.web.routes_contents import CONTENTS

MAX_PAGE = 1000
SORTS = ("name", "state", "container", "lag", "behind_s", "rate", "busy", "us", "processed")


def _container(asked: Asked) -> int:
    text = asked.path["container"]
    if not re.fullmatch(r"\d{1,6}", text, re.ASCII):
        raise NotFound(f"there is no container {text[:100]!r}")
    return int(text)


def _me(asked: Asked) -> dict[str, Any]:
    about = asked.facts.about()
    names = {name: about[name] if asked.caller.may >= May.VIEW else "" for name in ("called", "called_to_look")}
    return {"may": NAMES[asked.caller.may], "job": about["job"], "id": about["id"], "data": asked.contents.are_shown, **names}


def _jobs(asked: Asked) -> dict[str, Any]:
    """The job of this page to anyone; the others of its Kafka cluster to those who may look."""
    status = asked.facts.status()
    own = {"jobName": status["job"], "jobId": status["id"], "status": status["state"], "url": status["coordinator"], "run": status["run_id"], "is_here": True}
    found = asked.cluster.jobs() if asked.caller.may >= May.VIEW else []
    others = [
        {"jobName": j["job"], "jobId": j["id"], "status": j["state"], "url": j["url"] or "", "run": j["run_id"] or "", "is_here": False}
        for j in found
        if (j["job"], j["id"]) != (status["job"], status["id"])
    ]
    return {"items": sorted([own, *others], key=lambda one: (one["jobName"], one["jobId"])), "next": None}


def _samza_tasks(asked: Asked) -> list[dict[str, Any]]:
    status = asked.facts.status()
    homes = {c["id"]: c["preferred_host"] for c in status["containers"]}
    return [
        {
            "preferredHost": homes.get(task["container"]), "taskName": task["name"],
            "containerId": "" if task["container"] is None else str(task["container"]),
            "partitions": [_partition(text) for text in task["partitions"]], "storeNames": sorted(task["stores"]),
        }
        for task in status["tasks"]
    ]  # fmt: skip


def _partition(text: str) -> dict[str, Any]:
    """`kafka.visits.3`, as a document."""
    system, _, rest = text.partition(".")
    stream, _, partition = rest.rpartition(".")
    return {"system": system, "stream": stream, "partitionId": int(partition)}


def _status(asked: Asked) -> dict[str, Any]:
    status = asked.facts.status()
    return status if asked.caller.may >= May.VIEW else open_status(status)


def _rows(asked: Asked) -> dict[str, Any]:
    query = asked.query
    found = ordered(filtered(asked.facts.status()["tasks"], query["find"]), query["sort"])
    end = query["offset"] + query["limit"]
    return {"items": found[query["offset"] : end], "found": len(found), "next": str(end) if end < len(found) else None}


def _task(asked: Asked) -> dict[str, Any]:
    for task in asked.facts.status()["tasks"]:
        if task["name"] == asked.path["task"]:
            return dict(task)
    raise NotFound(f"there is no task {asked.path['task'][:100]!r}")


def _restores(asked: Asked) -> dict[str, Any]:
    found = [
        {"task": task["name"], "store": store, "container": task["container"], **facts["restore"]}
        for task in asked.facts.status()["tasks"]
        for store, facts in task["stores"].items()
        if facts.get("restore")
    ]
    return {"items": sorted(found, key=lambda r: -r["remaining"])}


def _events(asked: Asked) -> dict[str, Any]:
    items = asked.facts.events(asked.query["since"])
    return {"items": items, "last": items[-1]["n"] if items else asked.query["since"]}


PAGE = (
    Query("sort", str, "name", "The field to sort by; -field: the largest first.", choices=tuple(f"{d}{n}" for n in SORTS for d in ("", "-"))),
    Query("find", str, "", "Only rows with this text in name, state, container or reason."),
    Query("limit", int, 100, "How many rows at most.", 1, MAX_PAGE),
    Query("offset", int, 0, "How many rows to pass over; `next` has it for the next page.", 0, 1_000_000),
)
OPEN, VIEW, OPERATE = May.ANYTHING_OPEN, May.VIEW, May.OPERATE
TABLE: tuple[Route, ...] = (
    *CONTENTS,
    Route("GET", "/v1/me", "me", OPEN, "What this token may do", s.Me, _me),
    Route("GET", "/v1/jobs", "jobs", OPEN, "The jobs of this Kafka cluster, as far as this token shows them", s.Jobs, _jobs),
    Route("GET", J, "status", OPEN, "The status document", s.Status, _status),
    Route(
        "PUT", J, "set-status", OPERATE, "Samza's way to stop a job: ?status=stopped", s.Effect, lambda a: a.actions.stop(a.by, False),
        (Query("status", str, "stopped", "The state that is wanted.", choices=("stopped",)),),
    ),
    Route("GET", f"{J}/tasks", "tasks", OPEN, "The tasks in Samza's form", [s.SamzaTask], _samza_tasks),
    Route("GET", f"{J}/tasks/{{task}}", "task", VIEW, "One task", s.Task, _task),
    Route("GET", f"{J}/rows", "rows", VIEW, "The tasks, sorted, filtered, a page at a time", s.Tasks, _rows, PAGE),
    Route("GET", f"{J}/containers", "containers", VIEW, "The containers", s.Containers, lambda a: {"items": a.facts.status()["containers"]}),
    Route("GET", f"{J}/model", "model", VIEW, "Which container runs which tasks", s.Model, lambda a: a.facts.model()),
    Route("GET", f"{J}/graph", "graph", VIEW, "Topics, stores, and what flows between them", s.Graph, lambda a: graph_of(a.facts.about(), a.facts.status())),
    Route("GET", f"{J}/config", "config", VIEW, "The configuration, with where each value comes from", s.Config, lambda a: {"items": a.facts.about()["config"]}),
    Route(
        "GET", f"{J}/events", "events", VIEW, "The timeline", s.Events, _events, (Query("since", int, 0, "Only events after the one of that number."),)
    ),
    Route("GET", f"{J}/commits", "commits", VIEW, "The last commits", s.Commits, lambda a: {"items": a.facts.commits()}),
    Route("GET", f"{J}/restores", "restores", VIEW, "The restores", s.Restores, _restores),
    Route("GET", f"{J}/errors", "errors", VIEW, "Errors of records, grouped", s.Errors, lambda a: {"items": a.facts.errors()}),
    Route("GET", f"{J}/hints", "hints", VIEW, "What is wrong, and what mends it", s.Hints, lambda a: {"items": a.facts.hints()}),
    Route(
        "GET", f"{J}/series", "series", VIEW, "The job's numbers over time", s.Series,
        lambda a: {"step_s": a.query["step"], "items": a.facts.series(a.query["step"])},
        (Query("step", float, 2.0, "Seconds between two points: 2 for ten minutes, 30 for six hours.", 1, 3600),),
    ),
    Route("POST", f"{J}/scale", "scale", OPERATE, "Run in so many containers", s.Effect,
          lambda a: a.actions.scale(a.body.containers, a.by, a.body.dry_run), (), b.Scale),
    Route("POST", f"{J}/restart", "restart", OPERATE, "Restart containers", s.Effect,
          lambda a: a.actions.restart(a.body.container, a.by, a.body.dry_run, is_checked=a.caller.is_signed), (), b.Restart),
    Route("POST", f"{J}/pause", "pause", OPERATE, "Process nothing until resumed", s.Effect, lambda a: a.actions.pause(a.by, a.body.dry_run), (), b.Stop),
    Route("POST", f"{J}/resume", "resume", OPERATE, "Go on after a pause", s.Effect, lambda a: a.actions.resume(a.by, a.body.dry_run), (), b.Stop),
    Route("POST", f"{J}/commit", "commit", OPERATE, "Commit now, in every container", s.Effect, lambda a: a.actions.commit(a.by, a.body.dry_run), (), b.Stop),
    Route("POST", f"{J}/stop", "stop", OPERATE, "Stop after a final commit", s.Effect, lambda a: a.actions.stop(a.by, a.body.dry_run), (), b.Stop),
    Route("POST", f"{J}/containers/{{container}}/stack", "stack", OPERATE, "What a container does now: the stacks of its threads", s.Stack,
          lambda a: a.inside.stack(_container(a), a.by), looks=True),
    Route("POST", f"{J}/containers/{{container}}/profile", "profile", OPERATE, "Where a container's time goes, for some seconds", s.Profile,
          lambda a: a.inside.profile(_container(a), a.body.seconds, a.by), (), b.AskProfile, looks=True),
    Route("POST", f"{J}/tasks/{{task}}/trace", "trace", OPERATE, "The next records of a task, and what its hook does with them", s.Trace,
          lambda a: a.inside.trace(a.path["task"], a.body.records, a.body.seconds, a.by), (), b.AskTrace, of_records=True, looks=True),
)  # fmt: skip
