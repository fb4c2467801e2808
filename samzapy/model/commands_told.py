"""Commands that several messages tell, each in one form."""

from __future__ import annotations


def find_program(topic: str, partition: int) -> str:
    """How to find the program whose transaction is open: two commands of Kafka's own tools, the second for what the first does not say."""
    tool = "kafka-transactions.sh --bootstrap-server BROKER"
    return (
        f"`{tool} describe-producers --topic {topic} --partition {partition}` gives the ProducerId of the open transaction, and `{tool} list` the "
        "transactional id that belongs to a ProducerId: it names the program"
    )


def choose_offset(topic: str, partition: int | None = None) -> str:
    """How to set where one partition of a topic continues, or all of them."""
    which = topic if partition is None else f"{topic} --partition {partition}"
    return (
        f"`samzapy checkpoint set JOB.yaml --topic {which} --to-earliest --keep-state` (or `--to-datetime`, `--to-offset`), which shows what it would do; "
        "then add `--execute`."
    )
