from samzapy import IncomingMessageEnvelope, KeyValueStore, MessageCollector, StreamTask, TaskContext, TaskCoordinator


class Dedup(StreamTask[str, bytes]):
    """Passes each payment once, if its repeats come within seven days."""

    def init(self, context: TaskContext) -> None:
        self.seen: KeyValueStore[str, int] = context.get_store("seen")

    def process(self, envelope: IncomingMessageEnvelope[str, bytes], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        if envelope.key not in self.seen:
            self.seen[envelope.key] = 1
            collector.send("payments-once", envelope.message, key=envelope.key)
