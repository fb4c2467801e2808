"""How a process ended: values and their words."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from samzapy.model.process_end import ProcessEnd, ended_with, executor_lost, exited, killed_by, killed_or_crashed, other, silent
from samzapy.plan.deadly_record_search import Proof, proof_of


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exit code 0"), (70, "exit code 70"), (-9, "killed by SIGKILL"), (-15, "killed by SIGTERM"), (-63, "killed by signal 63")],
)
def test_a_return_code_in_words(code: int, words: str) -> None:
    assert words == str(ended_with(code))


def test_the_words_of_an_end_with_all_that_is_known() -> None:
    end = replace(killed_by(signal.SIGKILL), memory="its memory was 90 MiB", lacks_memory=True, said="SZ200: it hung")
    likely = ": too little memory is the likely cause. Give the host more memory, or set containers.memory lower"
    assert f"killed by SIGKILL (its memory was 90 MiB{likely}): SZ200: it hung" == str(end)
    told = {"why": "killed by SIGKILL (its memory was 90 MiB): SZ200: it hung", "signal": "SIGKILL", "lacks_memory": True, "said": "SZ200: it hung"}
    assert told == end.to_json()
    assert str(replace(exited(1), is_watchdogs=True)).startswith("exit code 1 in samzapy's watchdog over threads, after the process had been suspended, or ")


@pytest.mark.parametrize(
    ("end", "proof", "is_sudden"),
    [
        (exited(1), Proof.OWN_DOING, False),
        (replace(exited(5), said="SZ200: it hung"), Proof.OWN_DOING, False),
        (killed_by(signal.SIGSEGV), Proof.OWN_DOING, False),
        (replace(killed_by(signal.SIGSEGV), said="SZ200: it hung"), Proof.NONE, False),
        (replace(killed_by(signal.SIGSEGV), is_watchdogs=True), Proof.NONE, False),
        (killed_by(signal.SIGKILL), Proof.NONE, True),
        (killed_by(63), Proof.NONE, False),
        (killed_or_crashed("x"), Proof.IF_PLACED, True),
        (executor_lost(": x"), Proof.NONE, True),
        (silent(9.0, 8.0), Proof.IF_PLACED, False),
        (other("exit code 1, said somebody"), Proof.NONE, False),
    ],
    ids=str,
)
def test_what_an_end_proves_follows_from_its_kind_and_not_from_its_words(end: ProcessEnd, proof: Proof, is_sudden: bool) -> None:
    assert (proof, is_sudden) == (proof_of(end), end.is_sudden)
    assert (proof, is_sudden) == (proof_of(replace(end, words="?")), replace(end, words="?").is_sudden)
