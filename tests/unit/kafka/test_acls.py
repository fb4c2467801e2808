"""ACLs are set for all that a job may need."""

from __future__ import annotations

import pytest

from samzapy.api.errors import InternalError
from samzapy.kafka.acls import _acls
from samzapy.model.acls import OPERATIONS, TOPIC, Access


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_that_a_job_may_need_can_be_granted(operation: str) -> None:
    [acl] = _acls("User:ada", [Access(TOPIC, "t", (operation,), "reads it")])
    assert operation.lower() == str(acl[5].name).replace("_", "").lower()
    assert ("t", "User:ada") == (acl[1], acl[3])


def test_no_other_operation_is_asked_for() -> None:
    with pytest.raises(InternalError, match="are Kafka"):
        Access(TOPIC, "t", ("Remove",), "")
