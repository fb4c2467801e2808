"""Names of topics, groups, ids and directories, all derived from the job's name and id."""

from __future__ import annotations

import re
from dataclasses import dataclass

JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
JOB_ID = re.compile(r"[0-9A-Za-z]+")
TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class Job:
    """A job's identity: name and id."""

    name: str
    id: str

    def __str__(self) -> str:
        return f"{self.name}-{self.id}"

    @property
    def checkpoint_topic(self) -> str:
        return f"__samza_checkpoint_{self.name}_{self.id}"

    @property
    def coordinator_topic(self) -> str:
        return f"__samza_coordinator_{self.name}_{self.id}"

    @property
    def dead_letter_topic(self) -> str:
        return f"{self}-dead-letter"

    @property
    def group_id(self) -> str:
        return str(self)

    @property
    def coordinator_transactional_id(self) -> str:
        return f"{self}-coordinator"

    def container_transactional_id(self, container: int) -> str:
        return f"{self}-container-{container}"

    def changelog_topic(self, store: str) -> str:
        return f"{self}-{store}-changelog"


def task_name(partition: int) -> str:
    """Samza's name of the task that reads partition `partition` of every input."""
    return f"Partition {partition}"
