"""`samzapy state drop` of a store that the job has."""

from __future__ import annotations

from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.cli.forget import drop

FILE = """
job: job
task: tests.recovery.chain_task:ChainTask
kafka: {bootstrap.servers: "127.0.0.1:1"}
inputs: [{topic: in}]
stores: {s: {key: string, value: string}}
"""


def test_a_store_that_is_in_the_job_file_is_not_dropped(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(FILE)
    with pytest.raises(ConfigurationError, match="store 's' is in the job file"):
        drop(file, "s", execute=True)
