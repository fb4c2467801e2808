"""Names of topics, groups, ids and directories, all derived from the job's name and id."""

from __future__ import annotations

import re
from dataclasses import dataclass

JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
JOB_ID = re.compile(r"[0-9A-Za-z]+")
TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
KAFKA = "kafka"
PROBE_ID = "access-check"
LOCALHOST = "localhost"  # how the host of a container is called that runs beside its driver


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

    @property
    def probe_transactional_id(self) -> str:
        """Of what only asks whether transactions are allowed."""
        return f"{self}-{PROBE_ID}"

    def container_transactional_id(self, container: int) -> str:
        return f"{self}-container-{container}"

    def internal_topic(self, name: str) -> str:
        """A topic between two stages of a program."""
        return f"{self}-{name}"

    def changelog_topic(self, store: str) -> str:
        return f"{self}-{store}-changelog"


KAFKAS_OWN = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "__remote_log_metadata"})
_JOBS_OWN = ("__samza_checkpoint_", "__samza_coordinator_")
CHANGELOG, DEAD_LETTER = "-changelog", "-dead-letter"
SUFFIXES = (CHANGELOG, DEAD_LETTER)


def job_of_coordinator_topic(topic: str) -> Job | None:
    """The job whose coordinator topic has this name; None if it is none."""
    name, _, number = topic.removeprefix(_JOBS_OWN[1]).rpartition("_")
    is_one = topic.startswith(_JOBS_OWN[1]) and JOB_NAME.fullmatch(name) and JOB_ID.fullmatch(number)
    return Job(name, number) if is_one else None


def is_a_jobs_own(topic: str) -> bool:
    """Whether a topic is a checkpoint or coordinator topic by its name, of whichever job."""
    return topic.startswith(_JOBS_OWN)


def possible_owners(topic: str) -> list[Job]:
    """The jobs whose changelog, dead-letter or internal topic this may be by its name. Others may have such a name too: `orders-1-eu-changelog`."""
    suffix = next((suffix for suffix in SUFFIXES if topic.endswith(suffix)), "")  # no internal topic's name ends like this
    parts = topic.removesuffix(suffix).split("-")
    ids = range(len(parts) - 1, len(parts)) if suffix == DEAD_LETTER else range(1, len(parts) - 1)
    jobs = [Job("-".join(parts[:at]), parts[at]) for at in ids if at]
    return [job for job in jobs if JOB_NAME.fullmatch(job.name) and JOB_ID.fullmatch(job.id)]


def task_name(partition: int) -> str:
    """Samza's name of the task that reads partition `partition` of every input."""
    return f"Partition {partition}"
