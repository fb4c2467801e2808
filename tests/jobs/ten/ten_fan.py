from samzapy import IncomingMessageEnvelope, MessageCollector, StreamTask, TaskCoordinator


class FanOut(StreamTask[str, str]):
    """Each order to the topics of its warehouse and of the books; with a header that says where it came from."""

    def process(self, envelope: IncomingMessageEnvelope[str, str], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        warehouse = "north" if envelope.key < "m" else "south"
        origin = {"origin": f"{envelope.topic}@{envelope.offset}".encode()}
        collector.send(f"orders-{warehouse}", envelope.message, key=envelope.key, headers=origin)
        collector.send("books", envelope.message, key=envelope.key, headers=origin)
