
from samzapy import IncomingMessageEnvelope, KeyValueStore, MessageCollector, StreamTask, TaskContext, TaskCoordinator


class Absent(StreamTask[str, int]):
    """Says once that a sensor has not been heard for `params.silent_s` seconds. Values are the clock in seconds."""

    def init(self, context: TaskContext) -> None:
        self.heard: KeyValueStore[str, int] = context.get_store("heard")
        self.silent_s: int = context.params["silent_s"]
        self.newest = 0

    def process(self, envelope: IncomingMessageEnvelope[str, int], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        self.heard[envelope.key] = envelope.message
        self.newest = max(self.newest, envelope.message)

    def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        for sensor, at in list(self.heard.all()):
            if self.newest - at >= self.silent_s:
                collector.send("silent", at, key=sensor)
                del self.heard[sensor]
