"""How a container learns what Spark calls its host."""

from __future__ import annotations

import pytest

from samzapy.spark.executor import hostname_argument

BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@pytest.mark.parametrize(
    ("arguments", "host"),
    [
        (["java", "-cp", "x", BACKEND, "--executor-id", "0", "--hostname", "127.0.0.2", "--cores", "1"], "127.0.0.2"),
        (["java", BACKEND, "--hostname", "[::1]"], "::1"),
        (["java", BACKEND, "--hostname"], None),
        (["ssh", "--hostname", "elsewhere"], None),
        ([], None),
    ],
)
def test_the_host_on_an_executors_command_line(arguments: list[str], host: str | None) -> None:
    assert host == hostname_argument(arguments)
