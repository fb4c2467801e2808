from dataclasses import dataclass

from samzapy import IncomingMessageEnvelope, KeyValueStore, MessageCollector, StreamTask, TaskContext, TaskCoordinator

Fields = dict[str, str]


@dataclass
class User:
    name: str
    country: str


class Enrich(StreamTask[str, Fields | None]):
    """Adds the user's country to each order; users are a table that is read first."""

    def init(self, context: TaskContext) -> None:
        self.users: KeyValueStore[str, User] = context.get_store("users")

    def process(self, envelope: IncomingMessageEnvelope[str, Fields | None], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        fields = envelope.message
        if envelope.topic == "users":
            self.users.put(envelope.key, None if fields is None else User(**fields))
        elif fields is not None:
            user = self.users.get(envelope.key)
            collector.send("orders-of-countries", {**fields, "country": user.country if user else "?"}, key=envelope.key)
