"""`samzapy dev`: what a developer's machine needs beside samzapy.

`dev kafka start|stop|status` work on a directory; `--dir` names it, `--port` the one that goes with the port. On stdout: the bootstrap
servers, or one JSON document. All else goes to stderr. `dev spark` is a room of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from samzapy.api import exit_codes
from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.cli.common import JobFile, MoreFiles, Sets, say
from samzapy.cli.dev_spark import spark
from samzapy.cli.loading import load
from samzapy.dev.kafka import DEFAULT_PORT, LocalKafka, default_directory
from samzapy.dev.secure import ADMIN, JOB
from samzapy.kafka import acls
from samzapy.ops.acls import access_of, principal_of

app = typer.Typer(help="A real Kafka and a real Spark on this machine, for development.", no_args_is_help=True)
kafka = typer.Typer(help="A local KRaft Kafka on loopback, without Docker. Its jars are fetched once per user.", no_args_is_help=True)
app.add_typer(kafka, name="kafka")
app.add_typer(spark, name="spark")

Port = Annotated[int | None, typer.Option(help=f"The first broker's port, {DEFAULT_PORT} by default.", show_default=False)]
Directory = Annotated[Path | None, typer.Option("--dir", help="Its directory; by default one for each port.", show_default=False)]


@kafka.command()
def start(
    port: Annotated[
        int | None, typer.Option(help=f"The first broker's port, {DEFAULT_PORT} by default; 0 = any free one.", show_default=False)
    ] = None,
    brokers: Annotated[int | None, typer.Option(help="How many brokers, 1 by default.", show_default=False)] = None,
    directory: Directory = None,
    secure: Annotated[bool | None, typer.Option("--secure", help="With TLS, users with passwords, and ACLs.", show_default=False)] = None,
) -> None:
    """Start Kafka, or its brokers that do not run; return when it answers. Prints the bootstrap servers; with --secure a job file's `kafka:` instead."""
    cluster = LocalKafka.start(port=port, brokers=brokers, directory=directory, secure=secure, say=say)
    say(f"Kafka answers; stop it with: samzapy dev kafka stop --dir {quote(str(cluster.directory))}")
    if cluster.secure is None:
        print(cluster.bootstrap_servers)
        return
    say(f"user {JOB} may do nothing yet; grant it what a job needs with: samzapy dev kafka grant JOB.yaml --dir {quote(str(cluster.directory))}")
    say(f"user {ADMIN} may do everything; for Kafka's own tools: --command-config {cluster.secure.admin_properties}")
    say("for a job file:")
    print(cluster.secure.job_file_lines(cluster.bootstrap_servers), end="")


@kafka.command()
def stop(port: Port = None, directory: Directory = None) -> None:
    """Stop it; its data stays."""
    cluster = _cluster(port, directory)
    if cluster is None or not cluster.stop():
        say(f"no Kafka runs in {_place(port, directory)}")
    else:
        say(f"stopped; its data stays in {cluster.directory}")


@kafka.command()
def status(
    port: Port = None,
    directory: Directory = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Say whether it runs: exit code 0 if every broker answers, 3 if not."""
    cluster = _cluster(port, directory)
    answers = cluster is not None and cluster.is_answering()
    show: Callable[[LocalKafka | None, Path, bool], str] = _as_json if as_json else _as_text
    print(show(cluster, _place(port, directory), answers))
    if not answers:
        raise typer.Exit(exit_codes.NOT_RUNNING)


@kafka.command()
def grant(
    job: JobFile, more: MoreFiles = None, sets: Sets = None, port: Port = None, directory: Directory = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Revoke them instead.")] = False,
) -> None:  # fmt: skip
    """Give the job's user, on a cluster started with --secure, the permissions that the job needs and no more."""
    cluster = _cluster(port, directory)
    if cluster is None or not cluster.is_running():
        raise ClusterUnreachable(f"no Kafka runs in {_place(port, directory)}.", "Start it: samzapy dev kafka start --secure")
    if cluster.secure is None:
        raise ConfigurationError(
            f"the Kafka in {cluster.directory} has no ACLs: everybody may do everything.", "There is nothing to grant"
        )
    settings = load(job, more, sets).settings
    wanted, principal = access_of(settings), principal_of(settings)
    (acls.withdraw if withdraw else acls.grant)(cluster.client_settings(ADMIN), principal, wanted)
    for one in wanted:
        say(f"{principal} {'may not' if withdraw else 'may'} {one}")


def _as_text(cluster: LocalKafka | None, place: Path, answers: bool) -> str:
    if cluster is None or not cluster.pids:
        return f"not running ({place})"
    pids = ", ".join(f"broker {node} is pid {pid}" for node, pid in sorted(cluster.pids.items()))
    state = "running" if answers else f"not answering, {len(cluster.pids)} of {len(cluster.nodes)} brokers run"
    return f"{cluster.bootstrap_servers} {state} ({pids}; {cluster.directory})"


def _as_json(cluster: LocalKafka | None, place: Path, answers: bool) -> str:
    pids = cluster.pids if cluster else {}
    return json.dumps(
        {
            "running": answers,
            "bootstrap_servers": cluster.bootstrap_servers if cluster and pids else None,
            "dir": str(place),
            "brokers": [{"id": node.id, "port": node.port, "pid": pids.get(node.id)} for node in (cluster.nodes if cluster else ())],
        }
    )


def _cluster(port: int | None, directory: Path | None) -> LocalKafka | None:
    return LocalKafka.at(_place(port, directory))


def _place(port: int | None, directory: Path | None) -> Path:
    return directory or default_directory(DEFAULT_PORT if port is None else port)
