"""A container that finds no secret on its host: the driver ends the job with the reason, and starts nothing again."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.coordinator.control_app import control_app
from samzapy.coordinator.http import Listener
from samzapy.model.process_end import exited
from samzapy.wiring.container import run_container
from tests.unit.coordinator.test_job_coordinator import Stage

TOKEN = "a-token-of-a-run"
DOCUMENT: dict[str, Any] = {
    "job": "visits", "task": "visits:VisitCounter", "inputs": [{"topic": "visits"}],
    "kafka": {"bootstrap.servers": "h:1", "sasl.password": "${OF_THE_DRIVER_ONLY}", "ssl.key.password": "${file:/not/here}"},
}  # fmt: skip


def test_a_secret_that_is_missing_where_containers_run_ends_the_job_with_its_name_host_and_remedy() -> None:
    with Stage(max_restarts=8) as stage:
        listener = Listener(control_app(stage.roster, TOKEN), "127.0.0.1", 0)
        listener.start()
        number, launch, handle = stage.await_launch(1)
        raised: list[BaseException] = []
        payload = {
            "container": number, "launch_id": launch, "control_url": listener.url, "token": TOKEN, "document": DOCUMENT, "folders": [], "host": "executor-7",
        }  # fmt: skip

        def run() -> None:
            with pytest.raises(ConfigurationError) as caught:
                run_container(payload)
            raised.append(caught.value)
            handle.ended = exited(2)

        container = threading.Thread(target=run)
        container.start()
        # A real thread, for which the stepped clock does not wait: it gets 50 ms of real time for each step.
        stage.clock.until(lambda: container.join(0.05) is None and not container.is_alive(), 300.0, "the end of the container")
        assert stage.await_end() == 2
        listener.stop()
        assert 1 == len(stage.launches), "it is not started again"
        assert stage.roster.failure is not None
        error = stage.roster.failure[1]
        assert "container 0 cannot begin on host executor-7" in error["message"]
        assert "kafka.sasl.password: environment variable OF_THE_DRIVER_ONLY is not set" in error["message"]
        assert "kafka.ssl.key.password: file /not/here" in error["message"]
        assert "spark-env.sh" in error["remedy"]
        assert error["message"] in str(raised[0])
