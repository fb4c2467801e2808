"""What is missing for a run, and the command that fixes it: facts in, checks out.

Nothing here looks at the machine: whoever asks brings the facts (`cli/doctor.py`), so each rule is a row of values in a test. `fail` is what
keeps a job from running or would break a promise; `warn` is what works, and will hurt one day. A check that is not `ok` has a remedy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from samzapy.api.errors import ConfigurationError
from samzapy.config.extras import install_line, line_for
from samzapy.config.units import format_duration
from samzapy.config.web_check import is_loopback
from samzapy.plan.transaction_timeout import LIMIT, too_long
from samzapy.spark.settings import is_local

GIB, MIB = 1 << 30, 1 << 20
LEAST_FREE, LOW_FREE = 64 * MIB, GIB
OTHER_FILES = 512  # sockets, libraries, logs: beside the stores'
WANTED_EXTRAS = ("spark",)  # `run` needs it; `run --local` does not
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*\(?(?P<bounds>[^;()]*)\)?\s*(?:;\s*(?P<marker>.*))?")
_BOUND = re.compile(r"(>=|<=|==|!=|<|>)\s*([0-9][0-9.]*)")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_DEFAULT = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:\s]\s*(.*?)\s*")


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its result, and the command that fixes it."""

    name: str
    state: State
    found: str
    remedy: str = ""


def has_failed(checks: Iterable[Check]) -> bool:
    return any(check.state is State.FAIL for check in checks)


def _of(name: str, is_fine: bool, found: str, remedy: str, otherwise: State = State.FAIL) -> Check:
    return Check(name, State.OK, found) if is_fine else Check(name, otherwise, found, remedy)


# -- this machine ----------------------------------------------------------------------------------------------------------------


def check_python(version: tuple[int, ...], needed: str, executable: str) -> Check:
    """`needed`: bounds, as `>=3.11`."""
    summary = ".".join(map(str, version))
    return _of("python", is_within(summary, needed), f"{summary} ({executable})", f"Use Python {needed}.")


def check_packages(requirements: Iterable[str], installed: Mapping[str, str]) -> list[Check]:
    """One check for what samzapy itself needs, one for each extra. `installed`: version by normalised name."""
    wrong: dict[str, list[str]] = {}
    right: dict[str, list[str]] = {}
    mend: dict[str, list[str]] = {}
    for line in requirements:
        found = _REQUIREMENT.fullmatch(line.strip())
        if found is None:
            continue
        extra = _EXTRA.search(found["marker"] or "")
        group, name, bounds = extra[1] if extra else "", normalised(found["name"]), found["bounds"].strip()
        version = installed.get(name)
        if version is None:
            wrong.setdefault(group, []).append(f"{name} is not installed")
            mend.setdefault(group, []).append(line)
        elif not is_within(version, bounds):
            wrong.setdefault(group, []).append(f"{name} {version} is not {bounds}")
            mend.setdefault(group, []).append(line)
        else:
            right.setdefault(group, []).append(f"{name} {version}")
    groups = sorted({"", *wrong, *right})
    return [_packages(group, right.get(group, []), wrong.get(group, []), install_line(mend.get(group, []))) for group in groups]


def _packages(extra: str, right: list[str], wrong: list[str], remedy: str) -> Check:
    summary = "; ".join([*wrong, *right])
    if not extra:
        return _of("packages", not wrong, summary, remedy)
    is_absent = not right and all(words.endswith("is not installed") for words in wrong)
    if is_absent and extra not in WANTED_EXTRAS:
        return Check(f"extra {extra}", State.OK, f"{summary}; needed only for this option")
    return _of(f"extra {extra}", not wrong, summary, remedy, State.WARN)


def check_native(why_not: str) -> Check:
    """The native part (samzapy.native). `why_not`: why it is not used; "": it is."""
    remedy = "Install a C compiler and Python's header files (on Debian: apt-get install gcc python3-dev), then install samzapy again."
    return _of("native part", not why_not, why_not or "in use", remedy, State.WARN)


def check_java(version: int | None, where: str, oldest: int) -> Check:
    """Only Spark and `samzapy dev` need one. `version` None: there is none, or it does not say; `where` has the words."""
    if version is None:
        return Check("java", State.WARN, f"{where}; only Spark and samzapy dev need one", line_for("java"))
    return _of("java", version >= oldest, f"{version} ({where})", line_for("java"), State.WARN)


def check_state_dir(directory: str, is_writable: bool, free_bytes: int, is_here: bool) -> Check:
    """`is_here`: containers run on this very machine, so that this directory is theirs."""
    name, gib = "state.dir", f"{free_bytes / GIB:.1f} GiB free"
    elsewhere = "" if is_here else "; containers run on other hosts, this is the driver's"
    if not is_writable:
        return Check(name, State.FAIL, f"{directory} cannot be written", "Set state: {dir: …} to a directory that can.")
    mend = "Make room, or set state: {dir: …} to a directory on another disk."
    state = State.FAIL if free_bytes < LEAST_FREE else State.WARN if free_bytes < LOW_FREE and is_here else State.OK
    return Check(name, state, f"{directory}, {gib}{elsewhere}", "" if state is State.OK else mend)


def check_open_files(allowed: int, stores: int, files_per_store: int) -> Check:
    """`stores`: how many one container may have open."""
    wanted = OTHER_FILES + stores * files_per_store
    found = f"{allowed} allowed, {wanted} may be needed by a container with {stores} local {'store' if stores == 1 else 'stores'}"
    return _of("open files", allowed >= wanted, found, f"ulimit -n {max(wanted, 65536)}", State.WARN)


# -- Kafka -----------------------------------------------------------------------------------------------------------------------


def check_transaction_timeout(commit_timeout_ms: int, broker_ms: int | None, refused: ConfigurationError | None = None) -> Check:
    """The brokers refuse producers whose transaction timeout is above their limit. `broker_ms` None: they do not show it, and `refused` is what
    they said to one of the job's."""
    name, ours = "commit.timeout", format_duration(commit_timeout_ms)
    if broker_ms is not None and commit_timeout_ms > broker_ms:
        refused = too_long(commit_timeout_ms, broker_ms)
    if refused is not None:
        return Check(name, State.FAIL, refused.message, refused.remedy)
    if broker_ms is None:
        return Check(name, State.OK, f"{ours}; the brokers do not show {LIMIT}, and did not refuse this")
    return Check(name, State.OK, f"{ours}; the brokers' {LIMIT} is {broker_ms}")


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic of the job as `topic_check` sees it: its kind is ok, missing, wrong or absent."""

    kind: str
    topic: str
    role: str
    state: str


def check_topics(rows: Iterable[TopicRow], job_file: str, by_hand: Callable[[str], str]) -> list[Check]:
    """One check for each topic that is wrong, else one for all. `by_hand`: the command that makes a topic."""
    rows = list(rows)
    checks = []
    for row in rows:
        if row.kind == "missing":
            remedy = f"Create it: {by_hand(row.topic)}"
            if row.role == "output":
                remedy += f"; or give its `partitions` under `outputs:` and run `samzapy topics {job_file} --create`"
            checks.append(Check(f"topic {row.topic}", State.FAIL, f"the {row.role} topic is missing", remedy))
        elif row.kind in ("wrong", "leaderless", "lost"):
            fact, _, command = row.state.partition("; ")
            checks.append(Check(f"topic {row.topic}", State.FAIL, fact, command[:1].upper() + command[1:] if command else f"samzapy topics {job_file}"))
    absent = sum(row.kind == "absent" for row in rows)
    summary = f"{len(rows) - absent} correct" + (f", {absent} that run creates" if absent else "")
    return checks or [Check("topics", State.OK, summary)]


def check_access(missing: Iterable[tuple[str, str]]) -> list[Check]:
    """`missing`: each missing permission, with the command that grants it."""
    lacking = [Check("access", State.FAIL, found, command) for found, command in missing]
    return lacking or [Check("access", State.OK, "the job has all permissions that it needs")]


# -- Spark -----------------------------------------------------------------------------------------------------------------------


def read_defaults(text: str) -> dict[str, str]:
    """The settings of a spark-defaults.conf."""
    lines = (_DEFAULT.fullmatch(line) for line in text.splitlines())
    return {found[1]: found[2] for found in lines if found and found[1].startswith("spark.")}


def check_spark_settings(
    conf: Mapping[str, str],
    defaults: Mapping[str, str],
    where: str,
    owned: Mapping[str, tuple[str, str]],
    named_elsewhere: Mapping[str, str],
) -> list[Check]:
    """Spark's settings that containers need, and settings that conflict. `owned`: setting → (value, why); `where`: the file of `defaults`."""
    refused = [f"{key} is always {owned[key][0]}: {owned[key][1]}" for key in sorted(conf) if key in owned]
    refused += [f"{key} is set by {named_elsewhere[key]}" for key in sorted(conf) if key in named_elsewhere]
    keep = f"{len(owned)} settings are samzapy's alone: " + ", ".join(f"{key}={value}" for key, (value, _) in sorted(owned.items()))
    ours = _of("spark.conf", not refused, "; ".join(refused) or keep, "Remove it from the job file.")
    losing = [
        f"{key}={value} (here always {owned[key][0]}: {owned[key][1]})"
        for key, value in sorted(defaults.items())
        if _loses(key, value, owned)
    ]
    if losing:
        return [ours, Check("spark-defaults", State.WARN, f"{where} is overridden in {'; '.join(losing)}", f"Remove it from {where}.")]
    others = sorted(set(defaults) - set(owned))
    summary = f"{where} sets {', '.join(others)}" if others else "nothing is set there" if where else "there is no spark-defaults.conf"
    return [ours, Check("spark-defaults", State.OK, summary)]


def _loses(key: str, value: str, owned: Mapping[str, tuple[str, str]]) -> bool:
    return key in owned and value.lower() != owned[key][0].lower()


def check_authentication(master: str, settings: Mapping[str, str]) -> Check:
    """`settings`: the user's, from all files. With local[n] nothing listens beyond loopback and no other host takes part."""
    name = "spark.authenticate"
    if is_local(master):
        return Check(name, State.OK, f"not needed with {master}")
    is_on = settings.get(name, "false").lower() == "true"
    secret = ", spark.authenticate.secret: ${file:…}" if master.startswith("spark:") else ""
    mend = f'Set spark: {{conf: {{{name}: "true"{secret}}}}}, and the same for the cluster.'
    return _of(name, is_on, "true" if is_on else "off: everyone who can reach the cluster's ports can use it", mend, State.WARN)


def check_rest(master: str, address: str, answers: bool) -> Check:
    """The standalone master's REST server accepts jobs from everybody. `address`: the one that was checked."""
    found = f"the REST server answers at {address}" if answers else f"no REST server answers at {address}" if address else f"there is none with {master}"
    return _of("spark.master.rest", not answers, found, "Set spark.master.rest.enabled=false for the master, and restart it.", State.WARN)


def check_slots(containers: int, cores: int | None, free: int | None, where: str) -> Check:
    """Each container has a core for itself. None: not known from the master (then `run` checks it)."""
    wanted = f"{containers} {'container' if containers == 1 else 'containers'}"
    if cores is None:
        return Check("containers.count", State.OK, f"{wanted}; the number of cores is known only at the start ({where})")
    if containers > cores:
        mend = f"Set containers: {{count: {cores}}} or less, or give Spark more cores." if cores else "Start workers."
        return Check("containers.count", State.FAIL, f"{wanted}, {cores} cores at {where}: the others would wait for ever", mend)
    if free is not None and containers > free:
        used = f"{wanted}, {cores} cores at {where}, {free} of them free now"
        return Check("containers.count", State.WARN, used, "Stop the applications that use the other cores, unless it is this job.")
    return Check("containers.count", State.OK, f"{wanted}, {cores} cores at {where}")


def check_web_host(host: str) -> Check:
    is_local = is_loopback(host)
    found = host if is_local else f"{host}: everyone who can reach it can read the job's status and metrics"
    return _of("web.host", is_local, found, "Set web: {host: 127.0.0.1}, or restrict access with a firewall.", State.WARN)


# -- versions --------------------------------------------------------------------------------------------------------------------


def normalised(name: str) -> str:
    """A package's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def is_within(version: str, bounds: str) -> bool:
    """Whether the numbers of a version are within bounds such as `>=4.1,<4.4`."""
    return all(_compares(_numbers(version), operator, _numbers(bound)) for operator, bound in _BOUND.findall(bounds))


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _compares(version: tuple[int, ...], operator: str, bound: tuple[int, ...]) -> bool:
    results = {
        ">=": version >= bound, "<=": version <= bound, ">": version > bound, "<": version < bound,
        "==": version == bound, "!=": version != bound,
    }  # fmt: skip
    return results[operator]
