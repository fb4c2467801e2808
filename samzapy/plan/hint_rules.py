"""Which hints are shown: what is wrong with a running job; facts in, findings out. A table of rules, each of which is silent where it lacks facts.

A cause hides what follows from it: who is told that one partition gets most records need not be told that the job is too small. One hint is no rule of
this table: that of the client certificate (certificate_hint.py), which is shown without a look, because the coordinator may be waiting for Kafka then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import median

from samzapy.model.commands_told import find_program
from samzapy.plan.duration import duration
from samzapy.plan.finding import ACT, KNOW, LOOK, Finding, also
from samzapy.plan.job_facts import JobFacts
from samzapy.plan.late_records_hint import too_late
from samzapy.plan.moves import WARM_RECORDS
from samzapy.plan.pace import BUSY, HELD_BACK
from samzapy.plan.seconds_hint import times_in_seconds
from samzapy.plan.unread_deletions import by_topic

FREE, LITTLE, COMMIT_HEAVY = 0.6, 0.2, 0.25  # shares of a container's time
STUCK_S, SLOW_DECIDE_S = 10.0, 0.5
TIMES, TIMES_HOST, HOT = 3.0, 1.7, 0.2
LEAST_RATE = 20.0  # records a second, below which costs and shares say nothing
FLAPS = 3
GROWS_MIB, FAR_S = 10.0, 5.0
ROOM = 0.8  # of a container's time that a job of the right size takes
WHEN_IT_RETURNS = (
    "When it returns, the container goes on by itself. After `commit.timeout` ({hang}) the container is ended and "
    "started again, and the record is processed again; if that hangs too, `on_error` of the job file applies: unless set, the job ends and names the record."
)
NO_HURRY = "Meanwhile its records are processed late, and none is lost as long as Kafka keeps them (the topic's `retention.ms`)."
NO_RECORD_THEN = (
    "When it returns, the container goes on by itself. After `commit.timeout` ({hang}) the container is ended and started again; if it hangs each time, the job "
    "ends after `containers.max_restarts` restarts. `on_error` does not apply, because no record is being processed."
)
LESS_OFTEN = (
    "set a longer `interval` under `commit:` in the job file (three times the interval must be shorter than `commit.timeout`); then `samzapy stop JOB.yaml`, "
    "and run it again."
)
LOOK_AT_BROKERS = "Find out whether a broker is down, or whether its disk or network is busy."
MORE_MEMORY = (
    "`containers.memory` is only what stores and caches take; Python and the job's code come on top, and all of it has to fit into the host's memory. Set "
    "`containers.memory` in the job file lower, to at most half of what the host has for the container, or give the host more (Spark: "
    "`spark.executor.memoryOverhead`). "
    "Then `samzapy stop JOB.yaml`, and run it again. More containers with fewer tasks each help if they start on other hosts."
)
KILLED = "Find out who sends SIGKILL: the kernel, for lack of memory (`journalctl -k` on its host), the cluster, or a person."
SEE_ITS_LOG = "See what its process wrote before it ended: in the output of `samzapy run JOB.yaml`, with Spark also in the executor's stderr."
_HOLD_WHEN_PAUSED = ("flapping", "stuck-hook", "interpreter-held")  # of a job that stands because people want it to, only these are told

Rule = Callable[[JobFacts], Iterator[Finding]]


def _interpreter_held(job: JobFacts) -> Iterator[Finding]:
    for c in job.containers:
        if c.held_at:
            long = f" for more than {c.held_s:.1f} s" if c.held_s else ""
            yield Finding(
                "interpreter-held", ACT, f"Code of container {c.number} held Python's lock{long}, at {c.held_at}: meanwhile it sends no heartbeats.",
                {"deaths": c.deaths},
                "A container without heartbeats for `containers.lease` is ended. Make that call shorter, or let it release the lock. Or set a longer lease, below "
                "`commit.timeout`, in the job file; then `samzapy stop JOB.yaml`, and run it again.",
                f"container {c.number}",
            )  # fmt: skip


def _flapping(job: JobFacts) -> Iterator[Finding]:
    for c in job.containers:
        if c.deaths >= FLAPS and c.is_dying:
            cause = f"Container {c.number} is probably out of memory: it" if c.lacks_memory else f"Container {c.number}"
            yield Finding(
                "flapping", ACT, f"{cause} died {c.deaths} times in 10 minutes, the last time: {c.why}.",
                {}, MORE_MEMORY if c.lacks_memory else KILLED if c.signal == "SIGKILL" else SEE_ITS_LOG, f"container {c.number}", for_s=c.dying_s,
            )  # fmt: skip


def _stuck_hook(job: JobFacts) -> Iterator[Finding]:
    for c in job.containers:
        if c.silent_s >= STUCK_S and c.at:
            then = (WHEN_IT_RETURNS if c.record else NO_RECORD_THEN).format(hang=duration(job.hang_s))
            yield Finding(
                "stuck-hook", ACT, f"Code of the job in container {c.number}{c.record} has not returned for {duration(c.silent_s)}; it is at {c.at}.",
                {}, f"See what it waits for: `samzapy debug stack JOB.yaml --container {c.number}`. {then}", f"container {c.number}", for_s=c.silent_s,
            )  # fmt: skip


def _stranger(job: JobFacts) -> Iterator[Finding]:
    held = [t for t in job.tasks if t.strangers is not None]
    if held and (place := held[0].strangers):
        yield Finding(
            "stranger", ACT, f"{held[0].name} waits: {held[0].reason}." + also("So do", len(held) - 1),
            {"tasks": len(held)},
            f"Find the program that has it open: {find_program(place.topic, place.partition)}. Let that program end its transaction, or stop it: Kafka then "
            "aborts the transaction after its timeout.",
        )  # fmt: skip


def _searching(job: JobFacts) -> Iterator[Finding]:
    for c in job.containers:
        if c.is_searching:
            how = f": {c.said}" if c.said else f" ({c.why})" if c.why else " without a known reason"
            yield Finding(
                "searching", KNOW,
                f"Container {c.number} ended{how}, and was started again. For a while it takes small batches, to find out whether a record ended it.",
                {}, "", f"container {c.number}",
            )  # fmt: skip


def _broker_slow(job: JobFacts) -> Iterator[Finding]:
    known = [c.decide_s for c in job.containers if c.decide_s is not None]
    slow = [s for s in known if s >= SLOW_DECIDE_S]
    if known and len(slow) >= 0.8 * len(known):
        yield Finding(
            "broker-slow", LOOK, f"Commits wait {median(slow):.1f} s for the brokers to complete their transactions, in {len(slow)} of {len(known)} containers.",
            {"decide_s": round(median(slow), 2)},
            f"{LOOK_AT_BROKERS} Until they answer sooner, commit less often, so that less time is spent on waiting: {LESS_OFTEN}",
        )  # fmt: skip


def _skew(job: JobFacts) -> Iterator[Finding]:
    known = [t for t in job.tasks if t.arriving is not None and t.container is not None]
    by_number = {c.number: c for c in job.containers if c.busy is not None}
    whole = sum(t.arriving or 0.0 for t in known)
    if len(known) < 3 or len(by_number) < 2 or whole < LEAST_RATE:
        return
    usual = median(t.arriving or 0.0 for t in known)
    top = max(known, key=lambda t: t.arriving or 0.0)
    own = by_number.get(top.container or 0)
    others = [c.busy or 0.0 for n, c in by_number.items() if n != top.container]
    alone = (top.arriving or 0.0) * (top.us or 0.0) / 1e6  # containers that it would fill, were it divisible
    if own is None or (top.arriving or 0.0) < TIMES * max(usual, 1e-9) or (own.busy or 0.0) < BUSY:
        return
    if max(others) < FREE or alone >= BUSY:
        share = 100 * (top.arriving or 0.0) / whole
        busy = f"container {own.number} is busy {100 * (own.busy or 0.0):.0f} % of its time, the others {100 * max(others):.0f} % at most"
        rates = {"its_records_per_second": round(top.arriving or 0.0), "usual_per_second": round(usual), "tasks": len(known)}
        detail = f"it gets {top.arriving or 0.0:,.0f} records/s, the median of the {len(known)} tasks is {usual:,.0f} records/s"
        which = f'Which keys {top.name} gets: `samzapy debug trace JOB.yaml "{top.name}" --records 100`. {NO_HURRY}'
        if top.hottest >= HOT:
            key = f"One key makes {100 * top.hottest:.0f} % of the records of {top.name}, which gets {share:.0f} % of all; {busy}."
            remedy = f"Split that key, or sum its records up earlier; more containers do not help. {which}"
            yield Finding("hot-key", ACT, key, rates, remedy, top.name, detail)
        else:
            spread = f"Let the program that writes the input use a key that fills the partitions more evenly; more containers do not help. {which}"
            yield Finding("skew", ACT, f"{top.name} gets {share:.0f} % of the records; {busy}.", rates, spread, top.name, detail)


def _slow_host(job: JobFacts) -> Iterator[Finding]:
    host_of = {c.number: c.host for c in job.containers}
    costs: dict[str, list[float]] = {}
    for t in job.tasks:
        if t.us is not None and (t.rate or 0.0) >= LEAST_RATE and host_of.get(t.container if t.container is not None else -1):
            costs.setdefault(host_of[t.container], []).append(t.us)  # type: ignore[index]
    if len(costs) < 2:
        return
    by_host = {host: median(us) for host, us in costs.items()}
    worst = max(by_host, key=lambda host: by_host[host])
    others = median(us for host, us in by_host.items() if host != worst)
    if min(costs[worst]) >= TIMES_HOST * others:
        sentence = f"{worst} needs {by_host[worst]:,.0f} µs a record, the other hosts {others:,.0f} µs."
        remedy = (
            f"See on {worst} what else takes the processor (`top`), and whether it is a weaker machine than the others. If that cannot be helped, stop "
            "Spark's worker there: its containers start on the other hosts, where these have room."
        )
        yield Finding("slow-host", LOOK, sentence, {"host": worst}, remedy, worst)


def _slow_task(job: JobFacts) -> Iterator[Finding]:
    known = [t for t in job.tasks if t.us is not None and (t.rate or 0.0) >= LEAST_RATE]
    if len(known) < 3:
        return
    usual, worst = median(t.us or 0.0 for t in known), max(known, key=lambda t: t.us or 0.0)
    if (worst.us or 0.0) >= TIMES * usual and (worst.us or 0.0) * (worst.rate or 0.0) / 1e6 >= LITTLE:
        yield Finding(
            "slow-task", LOOK, f"{worst.name} needs {worst.us:,.0f} µs a record, the others {usual:,.0f} µs.",
            {"records_per_second": round(worst.rate or 0.0), "container": worst.container},
            f"Where its time goes: `samzapy debug profile JOB.yaml --container {worst.container} -o profile.svg`",
            worst.name, f"at {worst.rate or 0.0:,.0f} records/s, in container {worst.container}",
        )  # fmt: skip


def _under_provisioned(job: JobFacts) -> Iterator[Finding]:
    known = [c for c in job.containers if c.busy is not None and c.tasks]
    busy = [c for c in known if (c.busy or 0.0) >= BUSY]
    rate, arriving = sum(t.rate or 0.0 for t in job.tasks), sum(t.arriving or 0.0 for t in job.tasks)
    if not known or len(busy) < 0.8 * len(known) or job.lag_rate <= 0.01 * rate or rate <= 0.0 or not job.lag:
        return
    if sum(c.loop["commit"] for c in known) > sum(c.loop["process"] for c in known):
        return  # commits are the matter, and are told of
    each = rate / sum(c.busy or 0.0 for c in known)  # what a container gets done that does nothing else
    wanted = math.ceil(max(arriving, rate + job.lag_rate) / (each * ROOM))
    most = len(job.tasks)
    mean = 100 * sum(c.busy or 0.0 for c in known) / len(known)
    whose = f"All {len(known)} containers are" if len(known) > 1 else "The only container is"
    sentence = f"{whose} busy {mean:.0f} % of the time, and the job's lag grows by {job.lag_rate:,.0f} records a second."
    if len(known) >= most:
        remedy = (
            f"There are only {most} tasks, as many as the input with the most partitions has: more containers do not help. Do less work per record, or use more "
            "partitions; a job with stores then needs a new `id`, and reads its inputs again."
        )
    else:
        remedy = f"samzapy scale JOB.yaml --containers {min(wanted, most)}"
    evidence = {"a_container_does_per_second": round(each), "arriving_per_second": round(max(arriving, rate + job.lag_rate))}
    detail = f"a container that is always busy does {each:,.0f} records/s, {evidence['arriving_per_second']:,} arrive"
    yield Finding("under-provisioned", ACT, sentence, evidence, remedy, detail=detail)


def _over_provisioned(job: JobFacts) -> Iterator[Finding]:
    known = [c for c in job.containers if c.busy is not None and c.tasks]
    # Or less than a second's records wait: the last report may be seconds old, where a machine has much to do.
    keeps_up = (job.behind_s or 0.0) <= 1.0 or (job.lag or 0) <= sum(t.rate or 0.0 for t in job.tasks)
    if len(known) > 1 and len(known) == len(job.containers) and all((c.busy or 0.0) <= LITTLE for c in known) and keeps_up:
        whole = sum(c.busy or 0.0 for c in known)
        wanted = max(1, math.ceil(whole / 0.5))
        if wanted < len(known):
            most = 100 * max(c.busy or 0.0 for c in known)
            yield Finding(
                "over-provisioned", KNOW, f"{len(known)} containers are busy {most:.0f} % of the time at most; {wanted} would be enough.",
                {"busy": round(whole, 2)}, f"samzapy scale JOB.yaml --containers {wanted}",
            )  # fmt: skip


def _commit_heavy(job: JobFacts) -> Iterator[Finding]:
    for c in job.containers:
        if c.loop and c.loop["commit"] >= COMMIT_HEAVY and c.loop["wait_input"] < 0.5:  # with time to spare it does not matter
            sentence, remedy = f"{100 * c.loop['commit']:.0f} % of container {c.number}'s time goes into commits.", f"Commit less often: {LESS_OFTEN}"
            yield Finding("commit-heavy", LOOK, sentence, {"decide_s": c.decide_s}, remedy, f"container {c.number}")


def _memory(job: JobFacts) -> Iterator[Finding]:
    for c in job.containers:
        if c.grows_mib >= GROWS_MIB:
            yield Finding(
                "memory", LOOK, f"The memory of container {c.number} grows by {c.grows_mib:.0f} MiB a minute; it takes {c.memory_mib:,.0f} MiB.",
                {}, "See what the task keeps in attributes of `self`: only a restart frees it. `samzapy restart JOB.yaml` helps for a while.",
                f"container {c.number}",
            )  # fmt: skip


def _far_restore(job: JobFacts) -> Iterator[Finding]:
    rebuilt = [t for t in job.tasks if t.rebuilt_s > 0.0]
    whole = sum(t.rebuilt_s for t in rebuilt)
    can_be_elsewhere = len({c.host for c in job.containers}) > 1 and not any(t.copy_host for t in job.tasks)  # warm copies, and there are none
    if len(rebuilt) >= 2 and whole >= FAR_S and can_be_elsewhere:
        yield Finding(
            "far-restore", KNOW, f"{len(rebuilt)} of {len(job.tasks)} tasks were rebuilt from their changelogs after a death, {whole:.0f} s in all.",
            {}, "Warm copies on other hosts make that quicker: set `standby: 1` under `containers:` in the job file; then `samzapy stop JOB.yaml`, and run it "
            "again.",
        )  # fmt: skip


def _standby_behind(job: JobFacts) -> Iterator[Finding]:
    far = [t for t in job.tasks if t.copy_lag >= WARM_RECORDS]
    if far:
        worst = max(far, key=lambda t: t.copy_lag)
        yield Finding(
            "standby-behind", LOOK, f"The warm copy of {worst.name} on {worst.copy_host} is {worst.copy_lag:,} changes behind."
            + also("So are those of", len(far) - 1), {"copies_behind": len(far)},
            f"See on {worst.copy_host} whether processor, disk or network are busy: there the copy is written. "
            "Until it has caught up, it does not make a restart quick.",
        )  # fmt: skip


def _unread_deletions(job: JobFacts) -> Iterator[Finding]:
    for told in by_topic(unread for t in job.tasks for unread in t.unread_deletions):
        yield Finding("unread-deletions", LOOK, told["sentence"], {}, told["remedy"], told["topic"])


def _held_back(job: JobFacts) -> Iterator[Finding]:
    for c in job.containers:
        if c.loop and c.loop["wait_output"] >= HELD_BACK:
            yield Finding(
                "held-back", LOOK, f"Container {c.number}'s queue to the brokers is full {100 * c.loop['wait_output']:.0f} % of the time: they are slow to accept.",
                {}, LOOK_AT_BROKERS, f"container {c.number}",
            )  # fmt: skip


def _set_aside(job: JobFacts) -> Iterator[Finding]:
    aside, skipped = job.set_aside_s > 0.0, job.skipped_s > 0.0
    whole = f"{60 * (job.set_aside_s + job.skipped_s):,.0f} records a minute fail"
    if aside and skipped:
        end = f": {60 * job.set_aside_s:,.0f} are set aside as dead letters, {60 * job.skipped_s:,.0f} are skipped."
    else:
        end = " and are set aside as dead letters." if aside else " and are skipped."
    if aside or skipped:
        logged = "The log of the run names the first ones that each task skipped, and why."
        listed = "The dead letters, and why they failed: `samzapy dlq list JOB.yaml`"
        remedy = f"{listed}. {logged}" if aside and skipped else listed if aside else logged
        yield Finding("dead-letters", KNOW, whole + end, {}, remedy)


def _idle_containers(job: JobFacts) -> Iterator[Finding]:
    idle = [str(c.number) for c in job.containers if not c.tasks]
    if idle and len(idle) < len(job.containers):
        these = f"Container {idle[0]} has" if len(idle) == 1 else f"Containers {', '.join(idle)} have"
        yield Finding("idle-containers", KNOW, f"{these} no tasks: there are {len(job.tasks)} tasks for {len(job.containers)} containers.", {})


# In the order in which they are told; the codes that each hides. A code that is hidden hides on.
LAG = frozenset({"hot-key", "skew", "under-provisioned", "over-provisioned"})
RULES: tuple[tuple[Rule, frozenset[str]], ...] = (
    (_interpreter_held, LAG | {"flapping", "slow-task", "slow-host", "stuck-hook"}),
    (_flapping, LAG | {"slow-task", "slow-host", "stuck-hook"}),
    (_stuck_hook, LAG),
    (_stranger, LAG),
    (_searching, LAG | {"slow-task", "slow-host", "commit-heavy"}),
    (_broker_slow, frozenset({"commit-heavy", "held-back"})),
    (_skew, frozenset({"under-provisioned"})),
    (_slow_host, frozenset({"slow-task"})),
    (_slow_task, frozenset()),
    (_under_provisioned, frozenset()),
    (_over_provisioned, frozenset()),
    (_commit_heavy, frozenset()),
    (_held_back, frozenset()),
    (_memory, frozenset()),
    (_far_restore, frozenset()),
    (_standby_behind, frozenset()),
    (_unread_deletions, frozenset()),
    (_set_aside, frozenset()),
    (_idle_containers, frozenset()),
    (too_late, frozenset()),
    (times_in_seconds, frozenset()),
)


def diagnose(job: JobFacts) -> list[Finding]:
    """All that holds now, causes before what follows from them, which is left out."""
    found: list[Finding] = []
    hidden: set[str] = set()
    for rule, hides in RULES:
        new = [finding for finding in rule(job) if finding.code not in hidden]
        if new:
            hidden |= hides
        found += new
    return [finding for finding in found if not job.is_paused or finding.code in _HOLD_WHEN_PAUSED]
