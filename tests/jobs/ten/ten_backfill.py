from samzapy import IncomingMessageEnvelope, KeyValueStore, MessageCollector, StreamTask, TaskContext, TaskCoordinator


class Days(StreamTask[str, int]):
    """Sums per day, sent once at the end of a bounded run."""

    def init(self, context: TaskContext) -> None:
        self.days: KeyValueStore[str, int] = context.get_store("days")

    def process(self, envelope: IncomingMessageEnvelope[str, int], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        cents = envelope.message
        self.days.update_with(envelope.key, lambda sum_: sum_ + cents, 0)

    def end_of_stream(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        for day, cents in self.days.all():
            collector.send("days", cents, key=day)
