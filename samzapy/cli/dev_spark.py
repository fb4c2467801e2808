"""`samzapy dev spark`: a standalone cluster on this machine. On stdout: the master's URL, or one JSON document; all else on stderr."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from samzapy.api import exit_codes
from samzapy.cli.common import say
from samzapy.dev.spark import LocalSpark, default_directory
from samzapy.dev.spark_settings import DEFAULT_CORES, DEFAULT_MEMORY, DEFAULT_WORKERS, MASTER_HOST

spark = typer.Typer(help="A local Spark cluster on loopback, from PySpark's jars; each worker counts as a host of its own.", no_args_is_help=True)

Port = Annotated[int | None, typer.Option(help="The master's port, if it was started with one.", show_default=False)]
Directory = Annotated[Path | None, typer.Option("--dir", help="Its directory.", show_default=False)]


@spark.command()
def start(
    workers: Annotated[
        int | None, typer.Option(help=f"How many workers, {DEFAULT_WORKERS} by default: one each on 127.0.0.2, 127.0.0.3 and so on.", show_default=False)
    ] = None,
    cores: Annotated[
        int | None, typer.Option(help=f"Cores of each worker, {DEFAULT_CORES} by default; a container takes one.", show_default=False)
    ] = None,
    memory: Annotated[str | None, typer.Option(help=f"Memory that each worker offers, {DEFAULT_MEMORY} by default.", show_default=False)] = None,
    port: Annotated[int | None, typer.Option(help="The master's port, any free one by default.", show_default=False)] = None,
    directory: Directory = None,
) -> None:
    """Start it, or the workers that do not run; return when all are registered. Prints the master's URL."""
    cluster = LocalSpark.start(workers=workers, cores=cores, memory=memory, port=port, directory=directory, say=say)
    say(f"Spark answers; stop it with: samzapy dev spark stop --dir {quote(str(cluster.directory))}")
    print(cluster.url)


@spark.command()
def stop(port: Port = None, directory: Directory = None) -> None:
    """Stop it with all that runs on it."""
    place = directory or default_directory(port)
    cluster = LocalSpark.at(place)
    if cluster is None or not cluster.stop():
        say(f"no Spark cluster runs in {place}")
    else:
        say(f"stopped; its logs stay in {cluster.directory}")


@spark.command()
def status(
    port: Port = None,
    directory: Directory = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Say whether it runs: exit code 0 if the master knows every worker, 3 if not."""
    place = directory or default_directory(port)
    cluster = LocalSpark.at(place)
    seen = _look(cluster, place)
    print(json.dumps(seen) if as_json else _as_text(seen))
    if not seen["running"]:
        raise typer.Exit(exit_codes.NOT_RUNNING)


def _look(cluster: LocalSpark | None, place: Path) -> dict[str, Any]:
    """Master and workers: what runs, and what of it the master knows."""
    if cluster is None:
        return {"running": False, "url": None, "dir": str(place), "master": None, "workers": []}
    answer, pids = cluster.ask(), cluster.workers
    registered = {worker.host: worker for worker in answer.workers} if answer else {}
    workers = [
        {
            "host": host,
            "pid": pids.get(host),
            "registered": host in registered,
            "cores": cluster.size.cores,
            "cores_used": registered[host].cores_used if host in registered else 0,
            "log": str(cluster.worker(host).log),
        }
        for host in cluster.hosts
    ]
    pid = cluster.master.pid()
    page = f"http://{MASTER_HOST}:{cluster.ui_port}"
    master = {"host": MASTER_HOST, "port": cluster.port, "pid": pid, "web": page, "log": str(cluster.master.log)}
    is_running = answer is not None and all(worker["registered"] and worker["pid"] for worker in workers)
    url = cluster.url if pid is not None or pids else None
    return {"running": is_running, "url": url, "dir": str(cluster.directory), "master": master, "workers": workers}


def _as_text(seen: dict[str, Any]) -> str:
    if seen["url"] is None:
        return f"not running ({seen['dir']})"
    known, count = sum(bool(worker["registered"] and worker["pid"]) for worker in seen["workers"]), len(seen["workers"])
    state = "running" if seen["running"] else f"incomplete, {known} of {count} workers"
    lines = [f"{seen['url']} {state} ({seen['dir']})"]
    lines.append(f"  master  {seen['master']['host']}  pid {seen['master']['pid'] or '-'}  {seen['master']['web']}")
    lines += [f"  worker  {w['host']}  pid {w['pid'] or '-'}  {w['cores_used']} of {w['cores']} cores used" for w in seen["workers"]]
    return "\n".join(lines)
