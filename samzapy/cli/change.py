"""`samzapy stop`, `samzapy scale` and `samzapy restart`: what changes a running job, through its coordinator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from samzapy.api import exit_codes
from samzapy.api.errors import ClusterUnreachable, ConfigurationError
from samzapy.cli.begun import Begun
from samzapy.cli.common import AsJson, JobFile, MoreFiles, Sets, print_json, say
from samzapy.cli.coordinator_http import HTTP_TIMEOUT_S, http_json
from samzapy.cli.importing import ends_within
from samzapy.cli.inspect import last_run
from samzapy.cli.job import SILENT_REMEDY, Job
from samzapy.cli.restart_refusals import refuse_new_code
from samzapy.cli.time_limit import Timeout, within
from samzapy.coordinator.token import read_token, token_path
from samzapy.model.states import ContainerState, JobState

TokenFile = Annotated[
    Path | None,
    typer.Option(help="File with the run's token. Needed only if the run was started on another machine or with another `state.dir`.", show_default=False),
]
AT_WORK = (ContainerState.RUNNING, ContainerState.STOPPED)  # stopped: all its tasks asked for shutdown()
NOTHING = "nothing was changed"
LOOK_S = 0.2
SHORTEST_S = 1.0
NO_DIGITS = str.maketrans("", "", "0123456789")


def stop(
    file: JobFile, more: MoreFiles = None, sets: Sets = None, timeout: Timeout = 60.0, token_file: TokenFile = None, as_json: AsJson = False
) -> int:
    """Stop the running job after a final commit; exit code 3 if it is not running."""
    known = ["the job was not asked to stop"]
    job, left = loaded_job(file, more, sets, timeout, known[0])
    code = within(left, lambda: _stop(job, left, token_file, known), _servers(job), lambda: known[-1])
    return done(job, "stop", code, as_json)


def _stop(job: Job, timeout: float, token_file: Path | None, known: list[str]) -> int:
    """`known`: how far it came; added to."""
    deadline = time.monotonic() + timeout
    with job:
        run = Running.of(job, token_file, deadline)
        if isinstance(run, int):
            return run
        run.post("stop", {}, _left(deadline))
        known.append("the job was asked to stop; whether it has stopped is not known")
        while time.monotonic() < deadline:
            if run.is_over(deadline):
                say("stopped")
                return 0
            if (lease := job.killed(run.status["run_id"], _left(deadline))) is not None:
                say(f"{job} was killed while it was stopping. Nothing committed is lost: the next run continues from the last commit; {last_run(lease)}")
                return 1
            time.sleep(LOOK_S)
    say(f"the job is still stopping after {timeout:.0f} s, and goes on with that: `samzapy status JOB.yaml` shows which containers still run")
    return 1


def scale(
    file: JobFile,
    containers: Annotated[int, typer.Option(min=1, help="The new number of containers.", show_default=False)],
    more: MoreFiles = None,
    sets: Sets = None,
    timeout: Timeout = 300.0,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> int:
    """Change the number of containers; only tasks that have to move are moved. The job file keeps its number for the next run.

    Exit code 2 if a later request for another number replaced this one."""
    job, left = loaded_job(file, more, sets, timeout, NOTHING)
    return done(job, "scale", _scale(job, containers, left, token_file), as_json)


def _scale(job: Job, containers: int, timeout: float, token_file: Path | None) -> int:
    deadline = time.monotonic() + timeout
    run = found_run(job, token_file, timeout)
    if isinstance(run, int):
        return run
    before = {task["name"]: task.get("last_move") for task in run.status["tasks"]}
    answer = run.post("scale", {"containers": containers})
    wanted = int(answer["containers"])
    if wanted < containers:
        say(f"{answer['tasks']} tasks fill {wanted} containers; more would be idle")

    after = run.follow("moving", timeout, deadline, lambda status: has_scaled(status, wanted))
    if after is None:
        return 1
    for task in after["tasks"]:
        move = task.get("last_move")
        if move and move != before.get(task["name"]) and move["from"] != move["to"]:
            say(f"{task['name']}: container {move['from']} -> {move['to']}, {move['seconds']:.1f} s without an owner")
    say("1 container" if wanted == 1 else f"{wanted} containers")
    return 0


def restart(
    file: JobFile,
    container: Annotated[int | None, typer.Option(min=0, help="Only this one.", show_default=False)] = None,
    more: MoreFiles = None,
    sets: Sets = None,
    timeout: Timeout = 600.0,
    token_file: TokenFile = None,
    as_json: AsJson = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the code, say what a restart would do, and restart nothing.")] = False,
) -> int:
    """Restart the containers, one after the other, each on the host that has its state; new code of the task is loaded.

    Code that cannot be imported is refused before any container is restarted. So is a program with other inputs, outputs or stores, or one that
    cannot take what the running one sends through an internal topic (or the running one what it sends), and a class that cannot read
    what is stored. The job file is not read again: for that, stop the job and run it."""
    job, left = loaded_job(file, more, sets, timeout, NOTHING, classes=True)
    return done(job, "restart", _restart(job, container, left, token_file, dry_run), as_json)


def loaded_job(
    file: Path, more: list[Path] | None, sets: list[str] | None, timeout: float, what_is_known: str, classes: bool = False
) -> tuple[Job, float]:
    """The job, and what is left of the command's time, in seconds."""
    deadline = time.monotonic() + timeout
    with ends_within(timeout, what_is_known):
        job = Job(file, more, sets, classes=classes)
    return job, max(0.0, deadline - time.monotonic())


def _restart(job: Job, container: int | None, timeout: float, token_file: Path | None, dry_run: bool) -> int:
    deadline = time.monotonic() + timeout
    run = found_run(job, token_file, timeout)
    if isinstance(run, int):
        return run
    within(_left(deadline), lambda: refuse_new_code(job, lambda: run.get("config", _left(deadline))["items"]), _servers(job), lambda: NOTHING)
    before = {c["id"]: c["pid"] for c in run.status["containers"]}
    answer = run.post("restart", {"container": container, "dry_run": dry_run})
    if dry_run:
        say(f"would do: {answer['effect']}")
        return 0
    numbers = answer["containers"]

    def is_done(status: dict[str, Any]) -> bool:
        now = {c["id"]: c["pid"] for c in status["containers"]}
        return all(now.get(n) not in (None, before.get(n)) for n in numbers if n < _target(status, n + 1)) and _is_settled(status)

    after = run.follow("restarting", timeout, deadline, is_done)
    if after is None:
        return 1
    if not numbers:  # it died just before, or its work is done
        if container is None:
            say("no container had a process to stop: each had just ended, or its work is done. All containers with work to do are running")
        else:
            say(f"container {container} had no process to stop: it had just ended. All containers with work to do are running")
        return 0
    gone = [n for n in numbers if n >= _target(after, n + 1)]
    if gone:
        say(f"{_containers(gone)} ended, because meanwhile the job was scaled to {after['target']} containers")
    if gone == numbers:
        raise ConfigurationError("nothing was restarted.", "See `samzapy status JOB.yaml`.")
    say(f"restarted {_containers([n for n in numbers if n not in gone])}")
    return 0


def done(job: Job, command: str, code: int, as_json: bool) -> int:
    """The exit code, said as JSON too if that is wanted."""
    if as_json:
        print_json({"job": job.settings.job, "id": job.settings.id, "command": command, "done": code == 0, "exit_code": code})
    return code


def has_scaled(status: dict[str, Any], wanted: int) -> bool:
    """Whether the job runs in `wanted` containers.

    Raises:
        ConfigurationError: somebody has asked for another number since.
    """
    target = _target(status, wanted)
    if target != wanted:
        raise ConfigurationError(
            f"a later request replaced this one: the job scales to {target}, not to {wanted} containers.",
            f"If it should be {wanted}: `samzapy scale JOB.yaml --containers {wanted}`.",
        )
    return len(status["containers"]) == wanted and _is_settled(status)


def _containers(numbers: list[int]) -> str:
    return ", ".join(f"container {n}" for n in numbers)


def _target(status: dict[str, Any], unknown: int) -> int:
    """How many containers there should be; `unknown` for a coordinator of an earlier version, which does not say."""
    return int(status.get("target", unknown))


def found_run(job: Job, token_file: Path | None, timeout: float) -> Running | int:
    """The running job, as `Running.of`; everything that follows goes to its coordinator and not to Kafka."""
    deadline = time.monotonic() + timeout

    def look() -> Running | int:
        with job:
            return Running.of(job, token_file, deadline)

    return within(timeout, look, _servers(job), lambda: NOTHING)


def _servers(job: Job) -> str:
    return str(job.settings.kafka_client["bootstrap.servers"])


def _left(deadline: float) -> float:
    """Seconds for one request: what is left, but enough that it can be answered at all."""
    return max(SHORTEST_S, min(HTTP_TIMEOUT_S, deadline - time.monotonic()))


def _is_settled(status: dict[str, Any]) -> bool:
    return status["state"] in (JobState.RUNNING, JobState.PAUSED) and not status["moves"] and all(c["state"] in AT_WORK for c in status["containers"])


class Running:
    """The running job and the right to change it."""

    def __init__(self, job: Job, status: dict[str, Any], token: str) -> None:
        self._job = job
        self._token = token
        self.status = status

    @classmethod
    def of(cls, job: Job, token_file: Path | None, deadline: float) -> Running | int:
        """The running job. One that has begun and cannot be asked yet is waited for.

        The exit code, and the reason is said, if it does not run, or still starts when time is up.
        """
        begun: Begun | None = None
        while True:
            before, begun = begun, job.starting()
            status = job.status(_left(deadline))
            if status is not None:
                break
            if begun is None and (silent := job.silent()):
                raise ClusterUnreachable(f"{job} runs, but does not answer ({silent}).", SILENT_REMEDY)
            if begun is None:
                say(f"{job} is not running; {'it was starting, and has ended' if before else last_run(job.lease())}")
                return exit_codes.NOT_RUNNING
            if time.monotonic() >= deadline:
                say(f"{job} is still starting ({begun}): nothing of it runs yet, and `kill {begun.pid}` ends it")
                return 1
            if before is None:
                say(f"{job} is starting ({begun}); waiting until it can be asked")
            time.sleep(LOOK_S)
        path = token_file or token_path(Path(job.settings.state.dir), job.cluster_id(), str(job.names), status["run_id"])
        return cls(job, status, read_token(path, is_ours=token_file is None))

    def is_over(self, deadline: float) -> bool:
        """Whether this run has ended. Before it has the lease, that is still another run's: then what counts is whether it answers."""
        run_id, lease = self.status["run_id"], self._job.lease()
        if lease is None or lease.run_id == run_id:
            return lease is None or lease.ended
        status = self._job.status(_left(deadline))
        return status is None or status["run_id"] != run_id

    def post(self, verb: str, content: dict[str, Any], timeout_s: float = HTTP_TIMEOUT_S) -> dict[str, Any]:
        return self.post_to(f"api/v1/{verb}", content, timeout_s)

    def get(self, path: str, timeout_s: float) -> dict[str, Any]:
        """What the coordinator tells of the job to those who may look."""
        url = f"{self.status['coordinator']}/v1/jobs/{quote(self.status['job'], safe='')}/{quote(self.status['id'], safe='')}/{path}"
        return http_json("GET", url, self._token, timeout_s=timeout_s)

    def post_to(self, path: str, content: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """The path is quoted where it has to be."""
        return http_json("POST", f"{self.status['coordinator']}/{path}", self._token, content, timeout_s)

    def follow(
        self, doing: str, timeout: float, deadline: float, is_done: Callable[[dict[str, Any]], bool]
    ) -> dict[str, Any] | None:
        """The first status that is done, saying what is waited for; None, and said: not in time, or the job ended meanwhile.

        Args:
            timeout: what the user gave, in seconds, for the message; `deadline`: when that is over.

        Raises:
            ClusterUnreachable: its coordinator does not answer any more, and nothing says that it ended.
        """
        reasons: dict[str, str] = {}
        while time.monotonic() < deadline:
            try:
                status = http_json("GET", f"{self.status['coordinator']}/api/v1/status", self._token, timeout_s=_left(deadline))
            except ClusterUnreachable:
                lease = self._job.lease()
                if lease is None or lease.run_id != self.status["run_id"] or not lease.ended:
                    raise
                say(f"{self._job} ended meanwhile; {last_run(lease)}")
                return None
            if is_done(status):
                return status
            for line in new_waits(status, reasons):
                say(line)
            time.sleep(LOOK_S)
        say(f"still {doing} after {timeout:.0f} s; see `samzapy status JOB.yaml`")
        return None


def new_waits(status: Mapping[str, Any], told: dict[str, str]) -> Iterator[str]:
    """What is waited for and was not told yet; it is told from now on. A reason in which only numbers differ (seconds that pass) is not new."""
    moves = {m["task"]: m["why"].split(":")[0] for m in status["moves"]}
    for what, why in {**moves, **{f"container {c['id']}": c["reason"] for c in status["containers"]}}.items():
        words = why.translate(NO_DIGITS)
        if why and told.get(what) != words:
            told[what] = words
            yield f"{what}: {why}"
