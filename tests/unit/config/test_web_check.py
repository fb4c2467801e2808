"""A web listener that other machines reach needs TLS: `validate` says so as `run` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from samzapy.config.web_check import check_web
from tests.unit.config.test_load import HEAD, loaded, problems

BEYOND = ["0.0.0.0", "::", "10.0.0.1", "driver.example"]


@pytest.mark.parametrize("host", BEYOND)
def test_beyond_loopback_without_tls_it_is_refused_with_what_to_do(host: str) -> None:
    (finding,) = check_web({"web": {"host": host}})
    assert (("web", "host"), True, True) == (finding.path, host in finding.message, "tls: {cert: FILE, key: FILE}" in finding.hint)


@pytest.mark.parametrize("host", BEYOND)
@pytest.mark.parametrize("more", [{"proxy": True}, {"proxy": "true"}, {"tls": {"cert": "c", "key": "k"}}])
def test_what_encrypts_makes_it_right(host: str, more: dict[str, Any]) -> None:
    assert [] == list(check_web({"web": {"host": host, **more}}))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9", " LOCALHOST "])
def test_on_loopback_it_is_not_needed(host: str) -> None:
    assert [] == list(check_web({"web": {"host": host}}))


@pytest.mark.parametrize("web", [None, "text", {}, {"host": None}, {"host": 7}, {"port": 1}])
def test_what_is_not_well_formed_is_left_to_the_types(web: Any) -> None:
    assert [] == list(check_web({"web": web}))


def test_a_job_file_is_refused_at_its_line(folder: Path) -> None:
    said = problems(folder, HEAD + "web: {host: 0.0.0.0, proxy: false}\n")
    assert "web.host" in said
    assert "others on the network can read the tokens" in said
    assert "proxy: true" in said


def test_the_environment_can_say_that_a_proxy_encrypts(folder: Path) -> None:
    file = "web: {host: 0.0.0.0, proxy: '${PROXY}'}\n"
    assert loaded(folder, HEAD + file, PROXY="true").settings.web.proxy
    assert "web.host" in problems(folder, HEAD + file, PROXY="false")
