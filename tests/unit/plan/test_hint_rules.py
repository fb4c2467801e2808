"""Hints: each rule by a row of values that raises it, and silence where all is well or facts are missing."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import pytest

from samzapy.model.offsets import TopicPartition
from samzapy.model.process_end import ProcessEnd, exited, killed_by
from samzapy.plan.duration import duration
from samzapy.plan.finding import KNOW, Finding
from samzapy.plan.hint_rules import diagnose
from samzapy.plan.job_facts import ContainerFacts, JobFacts, TaskFacts
from samzapy.plan.killed_for_memory import MIB, killed_for_memory
from samzapy.plan.lasting_hints import PATIENT, Hints
from samzapy.plan.open_transaction import OpenTransaction


def loop(process: float = 0.4, **more: float) -> dict[str, float]:
    shares = {"process": process, "commit": 0.05, "wait_output": 0.0, "restore": 0.0, "other": 0.0, **more}
    return {**shares, "wait_input": round(1 - sum(shares.values()), 6)}


def tasks(n: int = 4, **more: Any) -> list[TaskFacts]:
    facts: dict[str, Any] = {"lag": 0, "rate": 100.0, "arriving": 100.0, "us": 200.0, **more}
    return [TaskFacts(name=f"Partition {i}", container=i % 2, **facts) for i in range(n)]


def containers(*loops: dict[str, float], **more: Any) -> list[ContainerFacts]:
    return [ContainerFacts(number=n, host=f"host-{n}", tasks=2, loop=one, decide_s=0.02, **more) for n, one in enumerate(loops or (loop(), loop()))]


def job(**more: Any) -> JobFacts:
    return JobFacts(**{"tasks": tasks(), "containers": containers(), "lag": 0, "behind_s": 0.0, **more})


def died(end: ProcessEnd) -> dict[str, Any]:
    """What the facts of a container say of its last death."""
    return end.to_json()



def with_one(facts: list[Any], index: int, **more: Any) -> list[Any]:
    return [replace(one, **more) if i == index else one for i, one in enumerate(facts)]


HEALTHY = job()
HUNG = died(replace(exited(5), said="SZ200: it hung"))
CROWDED = with_one(tasks(), 1, arriving=900.0, rate=500.0)
FLAPPING = job(containers=with_one(containers(), 1, deaths=3, **died(killed_by(signal.SIGKILL))))
STUCK = job(containers=with_one(containers(), 1, silent_s=43.0, at="pay.py:31 in charge: sleep(60)", record=" on record orders[1]@55"))
OPEN = OpenTransaction(TopicPartition("orders", 2), 912)
STRANGER = job(tasks=with_one(tasks(), 2, reason=str(OPEN), strangers=OPEN.partition))
SKEWED = job(tasks=CROWDED, containers=containers(loop(0.3), loop(0.92)), lag=9000, lag_rate=400.0)
ONE_KEY = job(tasks=with_one(CROWDED, 1, hottest=0.44), containers=containers(loop(0.3), loop(0.92)), lag=9000, lag_rate=400.0)
SLOW_HOST = job(tasks=[replace(t, us=640.0 if t.container else 310.0) for t in tasks()])
SLOW_TASK = job(tasks=with_one(tasks(rate=400.0), 3, us=840.0))
TOO_FEW = job(tasks=tasks(8, rate=300.0, arriving=450.0), containers=containers(loop(0.9), loop(0.92)), lag=5000, lag_rate=1200.0)
FULL = job(tasks=tasks(2, rate=300.0, arriving=450.0), containers=containers(loop(0.9), loop(0.92)), lag=5000, lag_rate=300.0)
HELD = job(containers=with_one(containers(), 1, held_s=5.0, held_at="pay.py:9 in check: re.match(SLOW, text)", deaths=3, why="its lease was over"))
COPIES = [replace(t, copy_lag=12_000 + i, copy_host="host-2") for i, t in enumerate(tasks(2))]
MISSED = [{"topic": "users", "partition": f"users[{i}]", "sentence": f"Partition {i} may have missed deletions.", "remedy": "Fill it again."} for i in range(4)]
CASES = [
    ("interpreter-held", HELD, "Code of container 1 held Python's lock for more than 5.0 s, at pay.py:9 in check: re.match(SLOW, text)"),
    ("memory", job(containers=with_one(containers(), 1, memory_mib=1300.0, grows_mib=38.0)), "The memory of container 1 grows by 38 MiB a minute; it takes 1,300"),
    ("far-restore", job(tasks=[replace(t, rebuilt_s=4.0) for t in tasks()]), "4 of 4 tasks were rebuilt from their changelogs after a death, 16 s in all."),
    ("standby-behind", job(tasks=COPIES), "The warm copy of Partition 1 on host-2 is 12,001 changes behind. So are those of one other task."),
    ("unread-deletions", job(tasks=[replace(t, unread_deletions=[m]) for t, m in zip(tasks(), MISSED, strict=True)]),
     "Partition 0 may have missed deletions. The same holds for users[1], users[2], users[3]."),
    ("flapping", FLAPPING, "Container 1 died 3 times in 10 minutes, the last time: killed by SIGKILL."),
    ("stuck-hook", STUCK, "Code of the job in container 1 on record orders[1]@55 has not returned for 43 s; it is at pay.py:31 in charge: sleep(60)."),
    ("stranger", STRANGER, "Partition 2 waits: orders[2]: another application's transaction is open at offset 912; the task waits for the records after it."),
    ("searching", job(containers=with_one(containers(loop(), loop(0.95)), 1, is_searching=True)), "Container 1 ended without a known reason"),
    ("searching", job(containers=with_one(containers(), 1, is_searching=True, **HUNG)), "Container 1 ended: SZ200: it hung, and was started again. For"),
    ("broker-slow", job(containers=[replace(c, decide_s=0.8) for c in containers()]), "Commits wait 0.8 s for the brokers to complete their transactions, in 2"),
    ("skew", SKEWED, "Partition 1 gets 75 % of the records; container 1 is busy 97 % of its time, the others 35 % at most."),
    ("hot-key", ONE_KEY, "One key makes 44 % of the records of Partition 1, which gets 75 % of all; container 1 is busy 97 %"),
    ("slow-host", SLOW_HOST, "host-1 needs 640 µs a record, the other hosts 310 µs."),
    ("slow-task", SLOW_TASK, "Partition 3 needs 840 µs a record, the others 200 µs."),
    ("under-provisioned", TOO_FEW, "All 2 containers are busy 96 % of the time, and the job's lag grows by 1,200 records a second."),
    ("over-provisioned", job(containers=containers(loop(0.1), loop(0.1))), "2 containers are busy 15 % of the time at most; 1 would be enough."),
    ("commit-heavy", job(containers=containers(loop(0.4, commit=0.31), loop())), "31 % of container 0's time goes into commits."),
    ("held-back", job(containers=containers(loop(0.4, wait_output=0.18), loop())), "Container 0's queue to the brokers is full 18 % of the time"),
    ("dead-letters", job(set_aside_s=0.5), "30 records a minute fail and are set aside as dead letters."),
    ("idle-containers", job(containers=with_one(containers(), 1, tasks=0)), "Container 1 has no tasks: there are 4 tasks for 2 containers."),
]  # fmt: skip


@pytest.mark.parametrize(("code", "facts", "sentence"), CASES, ids=[case[0] for case in CASES])
def test_each_cause_has_its_hint_and_no_other(code: str, facts: JobFacts, sentence: str) -> None:
    found = diagnose(facts)

    assert [code] == [finding.code for finding in found]
    assert found[0].sentence.startswith(sentence)
    assert found[0].remedy or found[0].severity == KNOW, "what somebody is to look at says what to do"


def test_a_healthy_job_is_left_alone() -> None:
    assert [] == diagnose(HEALTHY)
    assert [] == diagnose(job(containers=containers(loop(0.93), loop(0.93)))), "busy, and keeps up"
    assert [] == diagnose(job(containers=containers(loop(0.1, commit=0.31), loop()))), "commits take long, but there is time"
    assert [] == diagnose(job(lag=5000, lag_rate=900.0)), "behind, but not for want of time"
    assert [] == diagnose(job(tasks=tasks(hottest=0.9))), "one key has most records of a partition that is no larger than others"


@pytest.mark.parametrize(("behind_s", "lag", "is_told"), [(0.9, 5000, True), (2.3, 3, True), (2.3, 5000, False)])
def test_a_few_records_that_wait_are_no_reason_to_keep_containers_that_have_nothing_to_do(behind_s: float, lag: int, is_told: bool) -> None:
    idle = job(containers=containers(loop(0.1), loop(0.1)), behind_s=behind_s, lag=lag)
    assert (["over-provisioned"] if is_told else []) == [finding.code for finding in diagnose(idle)]


def test_a_task_that_would_fill_more_than_a_container_is_skew_however_busy_the_others_are() -> None:
    crowded = with_one(tasks(us=800.0), 1, arriving=1900.0, rate=1200.0)
    assert ["skew"] == [finding.code for finding in diagnose(job(tasks=crowded, containers=containers(loop(0.85), loop(0.93)), lag=9000, lag_rate=700.0))]


def test_a_job_that_falls_behind_for_its_commits_is_not_told_to_grow() -> None:
    busy = containers(loop(0.2, commit=0.75), loop(0.2, commit=0.75))
    found = diagnose(job(tasks=tasks(8, rate=300.0, arriving=450.0), containers=busy, lag=5000, lag_rate=1200.0))
    assert {"commit-heavy"} == {finding.code for finding in found}


def test_of_a_paused_job_only_what_hangs_or_dies_is_told() -> None:
    assert [] == diagnose(replace(SKEWED, is_paused=True))
    assert ["stuck-hook"] == [finding.code for finding in diagnose(replace(STUCK, set_aside_s=0.5, is_paused=True))]


def test_what_died_often_but_lives_now_is_left_alone() -> None:
    assert [] == diagnose(job(containers=with_one(containers(), 1, deaths=4, **died(killed_by(signal.SIGKILL)), is_dying=False)))


def test_what_is_not_known_is_no_reason_for_a_hint() -> None:
    unknown = [TaskFacts(name=f"Partition {i}", container=0) for i in range(4)]
    assert [] == diagnose(JobFacts(tasks=unknown, containers=[ContainerFacts(number=0), ContainerFacts(number=1)]))
    assert [] == diagnose(JobFacts(tasks=[], containers=[]))


def test_the_number_that_is_proposed_keeps_up() -> None:
    (finding,) = diagnose(TOO_FEW)
    each = 8 * 300.0 / (0.95 + 0.97)
    wanted = int(finding.remedy.split()[-1])

    assert finding.remedy.startswith("samzapy scale JOB.yaml --containers ")
    assert wanted * each * 0.8 >= 8 * 450.0 > (wanted - 1) * each * 0.8


def test_more_containers_than_tasks_are_never_proposed() -> None:
    (finding,) = diagnose(FULL)
    assert "There are only 2 tasks" in finding.remedy
    assert "samzapy scale" not in finding.remedy


def test_a_cause_hides_what_follows_from_it() -> None:
    both = replace(TOO_FEW, containers=with_one(list(TOO_FEW.containers), 1, deaths=4, why="out of memory"))
    assert ["flapping"] == [finding.code for finding in diagnose(both)]


def one(facts: JobFacts) -> Finding:
    (finding,) = diagnose(facts)
    return finding


def dying(end: ProcessEnd) -> Finding:
    return one(job(containers=with_one(containers(), 1, deaths=3, dying_s=125.0, **died(end))))


def test_warm_copies_are_told_of_where_they_would_help() -> None:
    rebuilt = [replace(t, rebuilt_s=4.0) for t in tasks()]
    assert ["far-restore"] == [finding.code for finding in diagnose(job(tasks=rebuilt))]
    assert [] == diagnose(job(tasks=rebuilt, containers=[replace(c, host="localhost") for c in containers()])), "all on one host"
    assert [] == diagnose(job(tasks=[replace(t, copy_host="host-1") for t in rebuilt])), "there are copies"


def test_of_a_hook_that_has_no_record_it_is_not_said_that_on_error_applies() -> None:
    [hint] = diagnose(replace(STUCK, containers=[replace(c, record="") for c in STUCK.containers]))
    assert "ends after `containers.max_restarts` restarts. `on_error` does not apply" in hint.remedy
    [hint] = diagnose(STUCK)
    assert "if that hangs too, `on_error` of the job file applies" in hint.remedy


def test_who_dies_for_want_of_memory_is_told_so_first_and_what_to_set() -> None:
    finding = dying(killed_for_memory(killed_by(signal.SIGKILL), 500 * MIB, 512 * MIB, 0.4, False))
    assert finding.sentence.startswith("Container 1 is probably out of memory: it died 3 times in 10 minutes")
    memory = "it had 500 MiB of memory when it was last heard of, 0.4 s before; containers.memory is 512 MiB"
    assert f"{memory}; the kernel or the cluster may have killed it for its memory)." in finding.sentence
    assert "Set `containers.memory` in the job file lower, to at most half of what the host has for the container" in finding.remedy
    assert "Then `samzapy stop JOB.yaml`, and run it again." in finding.remedy
    assert 125.0 == finding.for_s, "since the first death"


@pytest.mark.parametrize(
    ("end", "remedy"),
    [
        (replace(killed_by(signal.SIGKILL), memory="its memory was 90 MiB"), "Find out who sends SIGKILL"),
        (exited(3), "wrote before it ended"),
    ],
)
def test_who_dies_of_something_else_is_not_told_to_save_memory(end: ProcessEnd, remedy: str) -> None:
    finding = dying(end)
    assert remedy in finding.remedy
    assert "memory:" not in finding.sentence
    assert "containers.memory" not in finding.remedy


def test_code_that_hangs_is_told_with_what_happens_next() -> None:
    finding = one(STUCK)
    assert "`samzapy debug stack JOB.yaml --container 1`" in finding.remedy
    for words in ("When it returns", "After `commit.timeout` (60 s)", "`on_error` of the job file applies", "unless set, the job ends"):
        assert words in finding.remedy
    assert 43.0 == finding.for_s
    assert "After `commit.timeout` (10 min)" in one(replace(STUCK, hang_s=600.0)).remedy


def test_what_becomes_of_records_that_fail_is_what_the_job_does_with_them() -> None:
    assert "30 records a minute fail and are skipped." == one(job(skipped_s=0.5)).sentence
    assert "dlq" not in one(job(skipped_s=0.5)).remedy
    assert "90 records a minute fail: 60 are set aside as dead letters, 30 are skipped." == one(job(set_aside_s=1.0, skipped_s=0.5)).sentence


def test_numbers_beside_a_sentence_are_words_too() -> None:
    assert "it gets 900 records/s, the median of the 4 tasks is 100 records/s" == one(SKEWED).detail
    assert "`retention.ms`" in one(SKEWED).remedy, "how urgent that is"


@pytest.mark.parametrize(
    ("s", "words"), [(0.0, "0 s"), (0.0301, "30 ms"), (9.96, "10.0 s"), (43.4, "43 s"), (114.0, "114 s"), (130.0, "2 min"), (9000.0, "2.5 h"), (200_000.0, "2 days")]
)
def test_durations_are_told_as_on_the_page(s: float, words: str) -> None:
    assert words == duration(s)


def test_a_hint_is_told_since_its_cause_began() -> None:
    hints = Hints()
    hints.look([replace(DEAD, for_s=125.0)], 200_000)
    hints.look([replace(DEAD, for_s=135.0)], 210_000)
    assert [75_000] == [told["since_ms"] for told in hints.to_json()]


FOUND = Finding("skew", "act", "first numbers", {}, "", "Partition 3")
LATER = replace(FOUND, sentence="later numbers")
DEAD = Finding("flapping", "act", "Container 1 died", {}, "", "container 1")


def test_a_finding_is_told_when_it_lasts_with_the_numbers_of_that_moment() -> None:
    hints = Hints()
    assert [[], [], [LATER], []] == [hints.look([one], 1000) for one in (FOUND, FOUND, LATER, FOUND)]
    assert [("skew", "later numbers", 1000)] == [(told["code"], told["sentence"], told["since_ms"]) for told in hints.to_json()]


def test_what_comes_and_goes_is_not_told() -> None:
    hints = Hints()
    for found in ([FOUND], [FOUND], [], [FOUND], [FOUND], []):
        assert [] == hints.look(found, 1000)
    assert [] == hints.to_json()


IDLE = Finding("over-provisioned", "know", "2 containers are busy 4 % of the time at most", {})


@pytest.mark.parametrize(("gap", "is_told"), [(0, True), (1, True), (2, True), (3, False)])
def test_what_is_to_last_for_long_may_be_missing_for_a_moment_and_not_for_half_a_minute(gap: int, is_told: bool) -> None:
    hints = Hints()
    told = []
    for n in range(PATIENT[IDLE.code]):
        for _ in range(gap if n in (50, 150) else 0):
            told += hints.look([], 1000)
        told += hints.look([IDLE], 1000)
    assert told == ([IDLE] if is_told else [])


def test_a_hint_goes_when_its_cause_has_been_gone_for_a_minute() -> None:
    hints = Hints()
    for _ in range(3):
        hints.look([FOUND], 1000)
    for _ in range(5):
        hints.look([], 2000)
    assert 1 == len(hints.to_json())
    hints.look([], 2000)
    assert [] == hints.to_json()


def test_a_death_is_told_at_once_and_first() -> None:
    hints = Hints()
    for _ in range(3):
        hints.look([FOUND], 1000)
    assert [DEAD] == hints.look([FOUND, DEAD], 2000)
    assert ["skew", "flapping"] == [told["code"] for told in hints.to_json()]
