"""`python -m tests.recovery.run`: a long trial with seeded faults; prints the table of faults, the verdict and the audit; exit code 0 if all is clean.

    python -m tests.recovery.run --local --containers 3 --minutes 5 --seed 7
    python -m tests.recovery.run --standalone 3x2 --containers 6 --minutes 20 --seed 7 --keys 10000
    python -m tests.recovery.run --chaos --minutes 30 --seed 7

`--standalone` starts a Spark of its own, whose hosts can be lost and come back. `--chaos` hits brokers, network and disks as well, and a second
job: over three brokers of its own, first with containers as child processes, then (unless `--local`) on a Spark of its own. Exit codes: 0 all is
clean; 1 it is not; 2 (`--chaos`) nothing is wrong, but the run was too short or too gentle to prove anything.

The seed decides the load, and the kinds, times and victims of the faults; when exactly a fault meets which commit is the machine's to decide.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import sys
import tempfile
import time
from pathlib import Path

from samzapy.dev.spark import LocalSpark
from tests.recovery.chaos import WEIGHTS as CHAOS_WEIGHTS
from tests.recovery.chaos_run import Plan, unknown_kinds
from tests.recovery.chaos_run import conduct as conduct_chaos
from tests.recovery.fault_run import FaultRun
from tests.recovery.scenario import OF_LINKS, WEIGHTS, kinds_for, play, steps


def main() -> int:
    given = arguments().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the jobs and their Kafka are stopped, as after Ctrl-C
    if given.chaos:
        return chaos(given)
    if not (given.master or given.standalone or given.local):
        sys.exit("one of --local, --master, --standalone or --chaos is needed")
    kinds = tuple(given.kinds.split(",")) if given.kinds else kinds_for(not is_without_executors(given), given.standalone is not None)
    unknown = set(kinds) - set(WEIGHTS)
    if unknown:
        sys.exit(f"unknown kinds of faults: {', '.join(sorted(unknown))}; there are: {', '.join(WEIGHTS)}")
    folder = Path(given.folder or tempfile.mkdtemp(prefix="samzapy-trial-"))
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as blocks:
        cluster = None
        if given.standalone:
            workers, _, cores = given.standalone.partition("x")
            cluster = LocalSpark.start(directory=folder / "spark", workers=int(workers), cores=int(cores), say=say, tied=True)
            blocks.callback(cluster.stop)
        fault_run = trial_of(given, folder, kinds, cluster)
        say(f"seed {given.seed}, job {fault_run.job.name}, folder {folder}")
        return conduct(fault_run, given, kinds)


def chaos(given: argparse.Namespace) -> int:
    """A chaos run; the report, or what broke it off."""
    kinds = tuple(given.kinds.split(",")) if given.kinds else ()
    if unknown_kinds(kinds):
        sys.exit(f"unknown kinds of faults: {', '.join(unknown_kinds(kinds))}; there are: {', '.join(CHAOS_WEIGHTS)}")
    if given.master:
        sys.exit("--chaos hits a Spark of its own: --standalone WxC, or nothing for 2x2")
    workers, _, cores = (given.standalone or "2x2").partition("x")
    folder = Path(given.folder or tempfile.mkdtemp(prefix="samzapy-chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    plan = Plan(
        given.seed, given.minutes, folder, f"chaos-{secrets.token_hex(3)}", given.servers, given.brokers or None,
        None if given.local else (int(workers), int(cores)), given.tasks or 2 * given.containers, given.containers, given.rate or 360.0,
        given.keys, given.calm or 0.6, 0.35 if given.impatient is None else given.impatient,
        given.lease, given.commit_interval, given.guarantee, kinds, sets=given.set,
    )  # fmt: skip
    say(f"seed {plan.seed}, folder {folder}")
    try:
        report = conduct_chaos(plan, say)
    except AssertionError as failure:
        print(failure)
        return 1
    print(report)
    print(f"seed {plan.seed}: {report.result}")
    return report.exit_code


def trial_of(given: argparse.Namespace, folder: Path, kinds: tuple[str, ...], cluster: LocalSpark | None) -> FaultRun:
    master = cluster.url if cluster else given.master
    where = ("--local",) if master is None else ("--master", master)
    return FaultRun.of(
        given.servers, folder, f"trial-{secrets.token_hex(4)}", given.tasks or 2 * given.containers, given.containers,
        (*where, *(word for pair in given.set for word in ("--set", pair))), given.rate or 500.0, given.keys, given.seed,
        {
            "commit": {"interval": given.commit_interval, "guarantee": given.guarantee},
            "containers": {
                "count": given.containers, "lease": f"{given.lease}ms", "heartbeat": f"{given.lease // 6}ms",
                "max_restarts": 100_000, "restart_window": "10s", "standby": given.standby,
            },
            **({"spark": {"conf": {"spark.executor.memory": "512m"}}} if cluster else {}),
        },
        cluster, links=bool({*kinds} & {*OF_LINKS}),
    )  # fmt: skip


def conduct(fault_run: FaultRun, given: argparse.Namespace, kinds: tuple[str, ...]) -> int:
    """The trial from start to report. What breaks it off is told with the faults up to then."""
    try:
        with fault_run:
            end = time.monotonic() + 60 * given.minutes
            script = steps(given.seed, kinds, given.calm or 3.0, 0.2 if given.impatient is None else given.impatient)
            play(fault_run, script, lambda: time.monotonic() >= end, given.lease / 1000, say)
            report = fault_run.finish()
    except AssertionError as failure:
        for number, fault in enumerate(fault_run.faults, 1):
            print(f"{number}: {fault}")
        print(f"BROKEN OFF, seed {given.seed}: {failure}")
        return 1
    print(report)
    print(f"seed {given.seed}: {'CLEAN' if report.clean else 'NOT CLEAN'}")
    return 0 if report.clean else 1


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.recovery.run", description="A long trial of recovery with seeded faults.")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--master", help="Spark's master; containers on its executors")
    where.add_argument("--standalone", metavar="WxC", help="a Spark of its own with W workers of C cores, on hosts 127.0.0.2 and on")
    where.add_argument("--local", action="store_true", help="containers as child processes")
    parser.add_argument("--chaos", action="store_true", help="hit everything, over brokers of its own")
    parser.add_argument(
        "--brokers", type=int, default=3, help="how many brokers --chaos starts; 0: it uses --servers (default: %(default)s)"
    )
    servers = os.environ.get("SAMZAPY_TEST_KAFKA") or os.environ.get("KAFKA_BOOTSTRAP", "localhost:9092")
    parser.add_argument("--servers", default=servers, help="Kafka's bootstrap servers (default: %(default)s)")
    parser.add_argument("--containers", type=int, default=3)
    parser.add_argument("--tasks", type=int, help="how many partitions (default: two per container)")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to hit; the end takes some more (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--rate", type=float, help="records a second (default: 500, with --chaos 360)")
    parser.add_argument("--calm", type=float, help="seconds between recovery and the next fault, on average (default: 3, with --chaos 0.6)")
    parser.add_argument("--impatient", type=float, help="share of faults during a recovery (default: 0.2, with --chaos 0.35)")
    parser.add_argument("--standby", type=int, default=0, help="warm copies of each task (default: %(default)s)")
    parser.add_argument("--kinds", help=f"comma-separated, of: {', '.join(WEIGHTS)}")
    parser.add_argument("--guarantee", choices=("exactly_once", "at_least_once"), default="exactly_once")
    parser.add_argument("--commit-interval", default="200ms")
    parser.add_argument("--lease", type=int, default=3000, help="milliseconds; heartbeats come six times as often (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as of `samzapy run`; may be repeated")
    parser.add_argument("--folder", help="where the job's files, state and log are kept (default: a new one in the temporary directory)")
    return parser


def is_without_executors(given: argparse.Namespace) -> bool:
    """No Spark, or Spark in one process."""
    master = given.master
    return given.local or (master is not None and master.startswith("local") and not master.startswith("local-cluster"))


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
