"""Commands that several messages tell, each in one form."""

from __future__ import annotations

from samzapy.model.offsets import TopicPartition


def find_program(topic: str, partition: int) -> str:
    """How to find the program whose transaction is open: two commands of Kafka's own tools, the second for what the first does not say."""
    tool = "kafka-transactions.sh --bootstrap-server BROKER"
    return (
        f"`{tool} describe-producers --topic {topic} --partition {partition}` gives the ProducerId of the open transaction, and `{tool} list` the "
        "transactional id that belongs to a ProducerId: it names the program"
    )


def choose_offset(partition: TopicPartition) -> str:
    """How to set where one partition continues."""
    return (
        f"`samzapy checkpoint set JOB.yaml --topic {partition.topic} --partition {partition.partition} --to-earliest --keep-state` (or `--to-datetime`, "
        "`--to-offset`), which shows what it would do; then add `--execute`."
    )
