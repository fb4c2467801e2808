"""Spark's account of a failed job, pages of two languages' stacks, in one line of ours."""

from __future__ import annotations

import re

from samzapy.model.process_end import ProcessEnd, executor_lost, killed_or_crashed, other

GIVEN_UP = "Spark gave the application up"
_LONGEST = 300


def how_it_failed(text: str) -> ProcessEnd:
    """How a container ended whose job failed with this text."""
    lost = re.search(r"ExecutorLostFailure.*?Reason: ([^\n]*)", text)
    if lost:
        return executor_lost(f": {lost[1].strip()}")
    if re.search(r"SparkContext (was|has been) (shut down|stopped|shutdown)", text):
        return other(GIVEN_UP)
    if re.search(r"cancelled|TaskKilled|killed intentionally", text) and "Python worker exited" not in text:
        return other("killed: its Spark job was cancelled")
    if re.search(r"Python worker exited unexpectedly|Python worker failed to connect back", text):
        return killed_or_crashed("its Python worker ended without a message")
    if deleted := re.search(r"NoSuchFileException: (/\S*?/blockmgr-[^/\s]*)", text):
        why = "was deleted while Spark ran, perhaps by a cleaner of old files: this run can start no container any more. Run the job again"
        return other(f"Spark's directory {deleted[1]} {why}")
    raised = re.findall(r"^(?:\w+\.)*(\w*(?:Error|Exception): .*)$", text, re.MULTILINE)
    python = [line for line in raised if not line.startswith(("SparkException", "Py4J", "PythonException"))]
    if python:
        return other(str(python[0]).strip())
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith("An error occurred while calling")), "no reason given")
    return other(f"Spark: {first[:_LONGEST]}")
