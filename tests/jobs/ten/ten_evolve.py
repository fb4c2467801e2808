from dataclasses import dataclass
from typing import Any

from samzapy import IncomingMessageEnvelope, KeyValueStore, MessageCollector, StreamTask, TaskContext, TaskCoordinator


@dataclass
class Order:
    """The second version: `cents` was `euros` before, and the shop was not known."""

    cents: int
    shop: str = "web"

    @classmethod
    def upgrade(cls, old: dict[str, Any]) -> dict[str, Any]:
        return {"cents": round(old["euros"] * 100)}


class Evolve(StreamTask[str, Order]):
    def init(self, context: TaskContext) -> None:
        self.last: KeyValueStore[str, Order] = context.get_store("last")

    def process(self, envelope: IncomingMessageEnvelope[str, Order], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        self.last.put(envelope.key, envelope.message)
        collector.send("orders-2", envelope.message, key=envelope.key)
