from samzapy import IncomingMessageEnvelope, KeyValueStore, MessageCollector, StreamTask, TaskContext, TaskCoordinator


class Words(StreamTask[str, str]):
    """The first job: a record for each word, under the word."""

    def process(self, envelope: IncomingMessageEnvelope[str, str], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        for word in envelope.message.split():
            collector.send("words", 1, key=word)


class Counts(StreamTask[str, int]):
    """The second job, which reads what the first one sends."""

    def init(self, context: TaskContext) -> None:
        self.counts: KeyValueStore[str, int] = context.get_store("counts")

    def process(self, envelope: IncomingMessageEnvelope[str, int], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        collector.send("counts", self.counts.update_with(envelope.key, lambda n: n + 1, 0), key=envelope.key)
