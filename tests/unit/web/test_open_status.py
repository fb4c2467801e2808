"""What is told without a token quotes no record."""

from __future__ import annotations

from typing import Any

import pytest

from samzapy.container.retry_notice import BEFORE_ERROR
from samzapy.web.open_status import HIDDEN, open_status

ERROR = "Partition 0: process failed on record in[0]@0: ValueError: SECRET 4711"


def status(container: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    whole = {"id": 0, "reason": "", "last_error": None, "last_restart": None, **container}
    return {"reason": "", "containers": [whole], "tasks": [{"name": "Partition 0", "reason": reason}], "hints": [], "state": "RUNNING", **more}


@pytest.mark.parametrize(
    ("container", "shown"),
    [
        ({"reason": f"SZ200: {ERROR}"}, {"reason": f"SZ200: {HIDDEN}"}),
        ({"reason": ERROR, "last_error": ERROR}, {"reason": HIDDEN, "last_error": HIDDEN}),
        ({"last_restart": {"at_ms": 1, "process": "7", "reason": ERROR}}, {"last_restart": {"at_ms": 1, "process": "7", "reason": HIDDEN}}),
        ({"reason": "waits for the other containers"}, {"reason": "waits for the other containers"}),
    ],
)
def test_of_a_container_the_code_of_its_error_is_told(container: dict[str, Any], shown: dict[str, Any]) -> None:
    given = status(container)
    found = open_status(given)
    assert "SECRET" not in str(found)
    assert {**given["containers"][0], **shown} == found["containers"][0]


def test_a_record_that_is_tried_again_is_told_without_its_error() -> None:
    reason = f"record in[0]@5 failed 3 times in 7 s, and its container waits: it is tried again up to 9{BEFORE_ERROR}ValueError: SECRET"
    assert f"{reason.partition(BEFORE_ERROR)[0]}{BEFORE_ERROR}{HIDDEN}" == open_status(status({}, reason))["tasks"][0]["reason"]
    assert open_status(status({}, "waits for the table names"))["tasks"][0]["reason"] == "waits for the table names"
    assert open_status(status({}))["tasks"][0]["reason"] is None


def test_hints_and_the_last_run_are_told_without_errors() -> None:
    hint = {"code": "not-running", "sentence": f"its last run failed at noon: SZ200: {ERROR}", "detail": f"error[SZ200]: {ERROR}", "remedy": "x"}
    found = open_status(status({}, hints=[hint], last_run={"outcome": "FAILED", "error": f"SZ200: {ERROR}"}))
    assert "SECRET" not in str(found)
    assert found["hints"][0]["sentence"] == f"its last run failed at noon: SZ200: {HIDDEN}"
    assert found["hints"][0]["detail"] == f"error[SZ200]: {HIDDEN}"
    assert ("FAILED", f"SZ200: {HIDDEN}") == (found["last_run"]["outcome"], found["last_run"]["error"])
