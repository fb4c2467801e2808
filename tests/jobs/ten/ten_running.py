from samzapy import IncomingMessageEnvelope, KeyValueStore, MessageCollector, StreamTask, TaskContext, TaskCoordinator


class Running(StreamTask[str, int]):
    """The balance of each account after each booking."""

    def init(self, context: TaskContext) -> None:
        self.balances: KeyValueStore[str, int] = context.get_store("balances")

    def process(self, envelope: IncomingMessageEnvelope[str, int], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        cents = envelope.message
        collector.send("balances", self.balances.update_with(envelope.key, lambda balance: balance + cents, 0), key=envelope.key)
