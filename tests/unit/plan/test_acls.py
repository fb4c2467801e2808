"""The least that a job must be allowed to do, and the lines of Kafka's own tool that allow it."""

from __future__ import annotations

from samzapy.model.acls import Access, grant_command
from samzapy.model.names import Job
from samzapy.plan.acls import needed_access

JOB = Job("visits", "1")


def operations(**other: object) -> dict[str, set[str]]:
    values: dict[str, object] = {
        "inputs": ["in"], "outputs": [("out", False)], "changelogs": ["visits-1-s-changelog"], "has_dead_letters": False, "is_bound": True,
    } | other  # fmt: skip
    return {a.name: set(a.operations) for a in needed_access(JOB, **values)}  # type: ignore[arg-type]


def test_a_job_with_state_reads_its_inputs_writes_its_outputs_and_owns_its_own_topics() -> None:
    own = {"Read", "Write", "DescribeConfigs", "Create"}
    assert {
        "in": {"Read", "DescribeConfigs"},
        "out": {"Write", "DescribeConfigs"},
        "visits-1-s-changelog": own,
        "__samza_checkpoint_visits_1": own,
        "__samza_coordinator_visits_1": own,
        "visits-1": {"Read"},
        "visits-1-": {"Write"},
    } == operations()


def test_only_what_may_be_created_or_grows_asks_for_it() -> None:
    assert "Create" in operations(outputs=[("out", True)])["out"]
    stateless = operations(changelogs=[], is_bound=False, has_dead_letters=True)
    assert {"__samza_checkpoint_visits_1", "visits-1-dead-letter"} == {name for name, those in stateless.items() if "Alter" in those}


def test_what_was_read_between_two_stages_may_be_deleted() -> None:
    assert {"Read", "Write", "DescribeConfigs", "Create", "Delete"} == operations(between=["visits-1-by-page"])["visits-1-by-page"]


def test_a_topic_that_is_input_and_output_is_told_once_with_both() -> None:
    both = [a for a in needed_access(JOB, ["t"], [("t", False)], [], False, True) if a.name == "t"]
    assert [("Read", "Write", "DescribeConfigs")] == [a.operations for a in both]
    assert ["input, output"] == [a.purpose for a in both]


def test_the_line_of_kafkas_tool_names_principal_operations_resource_and_pattern() -> None:
    access = Access("transactional-id", "visits-1-", ("Write",), "", is_prefix=True)
    line = grant_command(access, "h:9", "User:me")
    assert line.startswith("kafka-acls.sh --bootstrap-server h:9 ")
    assert line.endswith("--allow-principal 'User:me' --operation Write --transactional-id visits-1- --resource-pattern-type prefixed")
