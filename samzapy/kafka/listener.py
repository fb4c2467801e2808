"""What librdkafka says of transactions in its own log only: how brokers answered to EndTxn, and why a transaction failed."""

from __future__ import annotations

import re
from typing import Any

from samzapy.kafka.client import LIBRARY_LOG
from samzapy.kafka.errors import FORBIDDEN_NAMES, REJECTED_NAMES, topic_in

END_TXN_ANSWER = re.compile(r"\bEndTxn returned (\w+)")
TXN_FAILED = re.compile(r"\bCurrent transaction failed in state \w+: (?P<why>.*) \((?P<name>\w+)(?:, requires epoch bump)?\)")


class Listener:
    """A logger for librdkafka that notes what brokers answered to EndTxn, and a record that they refused (debug context `eos`: some 40 lines
    a transaction, none a record)."""

    def __init__(self) -> None:
        self.end_txn: list[str] = []
        self.next_transaction()

    def next_transaction(self) -> None:
        """Forget what was said of the one before."""
        self.rejected = ""
        self.rejected_topic = ""  # "" too if the library does not name it
        self.rejected_name = ""  # Kafka's, of the refusal
        self.forbidden = ""
        self.failed = ""  # why the transaction has: the library sends no more of it, and only an abort ends that

    def log(self, level: int, text: str, *args: Any) -> None:
        line = text % args if args else text
        answer = END_TXN_ANSWER.search(line)
        if answer is not None:
            self.end_txn.append(answer[1])
        failed = TXN_FAILED.search(line)
        if failed is not None:
            self.failed = self.failed or f"{failed['why']} ({failed['name']})"
        if failed is not None and failed["name"] in REJECTED_NAMES and not self.rejected:
            self.rejected = f"{failed['why']} ({failed['name']})."
            self.rejected_topic, self.rejected_name = topic_in(failed["why"]), failed["name"]
        if failed is not None and failed["name"] in FORBIDDEN_NAMES:
            self.forbidden = self.forbidden or f"{failed['why']} ({failed['name']})."
        LIBRARY_LOG.log(level, "%s", line)
