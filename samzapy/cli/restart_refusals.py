"""What `samzapy restart` is refused for: code that the containers of the run could not go on with. They would refuse to start, and the job would end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from samzapy.api.errors import ConfigurationError
from samzapy.cli.job import Job
from samzapy.cli.run_refusals import refuse_other_state
from samzapy.config.schema import Settings
from samzapy.model.partial_sums import are_made, are_same
from samzapy.ops.inspection import job_in_kafka

# What a program says: section of the configuration → what it has, in words; and what is not compared there: what the job file says, and sums.
OF_PROGRAM = {"inputs": "inputs", "outputs": "outputs", "stores": "stores", "stages": "internal topics"}
APART = {"inputs": (".start", ".on_out_of_range"), "stores": (".engine",), "stages": (".sums",)}
INTERNAL = "stages.internal."


def refuse_new_code(job: Job, running: Callable[[], Sequence[Mapping[str, Any]]]) -> None:
    """Check the code as it is now. The run's own tasks have written the newest checkpoints, so what these are refused for is the code's.

    Where the job file, which a restart does not read again, has other inputs or stores by now, state is not checked: it is not what the run would go by.

    Args:
        running: asks the coordinator for the configuration of the run.

    Raises:
        ConfigurationError: it is a program with other inputs, outputs or stores. StateMismatch: it cannot go on with what is stored.
    """
    if job.settings.app is None and not job.settings.stores:
        return
    now, then = {one.key: one.value for one in job.loaded.origins}, {str(row["key"]): str(row["value"]) for row in running()}
    refuse_other_program(job.settings, now, then)
    if all(_of_section(section, now) == _of_section(section, then) for section in OF_PROGRAM):
        refuse_other_state(job.loaded, job_in_kafka(job.settings, job.log), job.log, job.clock)


def refuse_other_program(settings: Settings, now: Mapping[str, str], then: Mapping[str, str]) -> None:
    """A program that says something else than the one that runs: its containers would refuse to start, and the job would end.

    Args:
        now: the configuration of the job file and its program, as they are now, by key.
        then: that of the run.

    Raises:
        ConfigurationError: it is such a program, or one with which partial sums would be sent that one of the two cannot take.
    """
    if settings.app is None:
        return
    for section, what in OF_PROGRAM.items():
        is_now, runs = _of_section(section, now), _of_section(section, then)
        if is_now != runs:
            own, theirs = (_names(section, rows) for rows in (is_now, runs))
            if own == theirs:
                what += f" {', '.join(own)} with"
                differ = sorted(key for key in is_now.keys() | runs.keys() if is_now.get(key) != runs.get(key))
                own, theirs = ([f"{key} {rows.get(key) or 'none'}" for key in differ] for rows in (is_now, runs))
            raise ConfigurationError(
                f"the program has the {what} {', '.join(own) or 'none'}, the running one has {', '.join(theirs) or 'none'}.",
                "A restart can only load code that has the same inputs, outputs and stores. To change these: `samzapy stop JOB.yaml`, then `samzapy run JOB.yaml`.",
            )
    for key in sorted(now.keys() & then.keys()):
        if key.startswith(INTERNAL) and key.endswith(APART["stages"]):
            _refuse_other_sums(key.removeprefix(INTERNAL).removesuffix(APART["stages"][0]), now[key], then[key])


def _refuse_other_sums(topic: str, now: str, then: str) -> None:
    """While containers restart one by one, those with the new code read what those with the old code send through an internal topic, and they what the new
    ones send."""
    if are_same(now, then):
        return
    if are_made(then):
        raise ConfigurationError(
            f"the job runs with code that sends partial sums through its internal topic {topic}, and the new code cannot take them.",
            f"In the old code, set `combine=False` in the key_by that sends to {topic}, run `samzapy restart JOB.yaml`, and wait a minute: the job takes the "
            "sums that wait there, and sends no new ones. Then run `samzapy stop JOB.yaml`, and `samzapy run JOB.yaml` with the new code.",
        )
    if are_made(now):
        raise ConfigurationError(
            f"the new code sends partial sums through its internal topic {topic}, and containers that still run the old code could not take them.",
            "During a restart, containers with the old and the new code run together. Instead, run `samzapy stop JOB.yaml`, then `samzapy run JOB.yaml`.",
        )


def _of_section(section: str, rows: Mapping[str, str]) -> dict[str, str]:
    """What the program says there. Left out: what only the job file can say, which a restart does not read again, and sums."""
    return {key: value for key, value in rows.items() if key.startswith(f"{section}.") and not key.endswith(APART.get(section, ()))}


def _names(section: str, rows: Mapping[str, str]) -> list[str]:
    """The names of its topics, or stores."""
    if section == "stores":
        return sorted(key.removeprefix("stores.").removesuffix(".changelog") for key in rows if key.endswith(".changelog"))
    return [value for key, value in rows.items() if key.endswith(".topic")]
