"""Which settings a session gets, and which a job file may not set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.config.document import settings_from_document
from samzapy.config.spark_keys import NAMED_ELSEWHERE, OWNED
from samzapy.spark.settings import DEFAULTS, JAVA_OPTIONS, is_local, master_addresses, properties_text, session_settings


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local", True), ("local[2]", True), ("local[*]", True), ("local-cluster[2,1,512]", False), ("spark://a:1", False)],
)
def test_a_local_master(master: str, expected: bool) -> None:
    assert expected == is_local(master)


def test_the_users_settings_win_over_defaults() -> None:
    assert "false" == session_settings("local[2]", {}, "a", 5.0)["spark.ui.enabled"]
    assert "true" == session_settings("local[2]", {"spark.ui.enabled": "true"}, "a", 5.0)["spark.ui.enabled"]


@pytest.mark.parametrize("key", [*OWNED, *NAMED_ELSEWHERE, "executor.memory"])
def test_what_is_ours_is_refused_by_name_by_the_session_and_by_the_loader(key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'{key}'"):
        session_settings("local[2]", {key: "1"}, "a", 5.0)
    document = {
        "job": "j", "task": "m:C", "kafka": {"bootstrap.servers": "k:1"}, "inputs": [{"topic": "t", "value": "string"}],
        "spark": {"conf": {key: "1"}},
    }  # fmt: skip
    with pytest.raises(ConfigurationError, match=f"'{key}'"):
        settings_from_document(document, {})


def test_the_three_that_only_run_refused_are_refused_by_the_loader() -> None:
    assert {"spark.task.cpus", "spark.scheduler.mode", "spark.locality.wait"} <= {*OWNED, *NAMED_ELSEWHERE}


@pytest.mark.parametrize("master", ["spark://a:99999", "spark://a:7077,b:0", "local[0]", "local[0,2]"])
def test_a_master_that_no_run_could_use_is_refused_by_the_loader(master: str) -> None:
    document = {
        "job": "j", "task": "m:C", "kafka": {"bootstrap.servers": "k:1"}, "inputs": [{"topic": "t", "value": "string"}],
        "spark": {"master": master},
    }  # fmt: skip
    with pytest.raises(ConfigurationError, match=r"spark\.master"):
        settings_from_document(document, {})
    assert "spark://[::1]:7077" == settings_from_document({**document, "spark": {"master": "spark://[::1]:7077"}}, {}).spark.master


def test_every_wrong_key_is_named_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        session_settings("local[2]", {"spark.speculation": "true", "executor.memory": "1g"}, "a", 5.0)

    assert "spark.conf: 'executor.memory' is not a property of Spark: did you mean 'spark.executor.memory'?; " in caught.value.message
    assert "'spark.speculation' is always false with samzapy: A container must not run twice" in caught.value.message


def test_the_locality_wait_is_the_affinity_time() -> None:
    assert "7500ms" == session_settings("local[2]", {}, "a", 7.5)["spark.locality.wait"]


def test_own_java_options_stay_and_our_log_settings_give_way() -> None:
    assert session_settings("local[2]", {JAVA_OPTIONS: "-Da=b"}, "a", 5.0)[JAVA_OPTIONS].endswith(" -Da=b")
    assert "-XX:+UseG1GC" == session_settings("local[2]", {JAVA_OPTIONS: "-XX:+UseG1GC -Dlog4j2.configurationFile=x"}, "a", 5.0)[
        JAVA_OPTIONS
    ].replace(" -Dlog4j2.configurationFile=x", "")


@pytest.mark.parametrize(
    ("master", "host"),
    [("local[2]", "127.0.0.1"), ("spark://127.0.0.1:7077", "127.0.0.1"), ("spark://example.org:7077", None), ("k8s://https://a", None)],
)
def test_the_driver_keeps_to_the_loopback_where_all_is_here(master: str, host: str | None) -> None:
    assert host == session_settings(master, {}, "a", 5.0).get("spark.driver.host")


def test_the_addresses_of_masters() -> None:
    assert [("a", 7077), ("b", 7078)] == master_addresses("spark://a:7077,b:7078")
    assert [("::1", 7077)] == master_addresses("spark://[::1]:7077")
    assert [] == master_addresses("local[2]")
    for wrong in ("spark://a", "spark://a:port", "spark://:7077"):
        with pytest.raises(ConfigurationError, match="host and port"):
            master_addresses(wrong)


def test_a_properties_file_escapes_what_java_would_read_otherwise() -> None:
    assert "a\\ b\\=c\\:d=e\\\\f\\ng=h:i\nj=\\ k\n" == properties_text({"a b=c:d": "e\\f\ng=h:i", "j": " k"})


def test_the_page_on_clusters_says_of_settings_what_they_are() -> None:
    ours = {**DEFAULTS, **{key: value for key, (value, _) in OWNED.items()}}
    text = Path(__file__).parents[3].joinpath("samzapy", "CLUSTERS.md").read_text()
    told = {key: value for key, value in re.findall(r"`(spark\.[\w.]+)=([\w]+)`", text) if key in ours}

    assert {"spark.dynamicAllocation.enabled", "spark.speculation", "spark.task.maxFailures", "spark.task.reaper.enabled"} <= set(told)
    assert {"spark.decommission.enabled", "spark.executor.maxNumFailures"} <= set(told)
    assert {key: ours[key] for key in told} == told
