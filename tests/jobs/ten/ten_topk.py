import heapq

from samzapy import IncomingMessageEnvelope, KeyValueStore, MessageCollector, StreamTask, TaskContext, TaskCoordinator


class TopPages(StreamTask[str, str]):
    """The three pages with most views, each ten seconds."""

    def init(self, context: TaskContext) -> None:
        self.views: KeyValueStore[str, int] = context.get_store("views")

    def process(self, envelope: IncomingMessageEnvelope[str, str], collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        self.views.update_with(envelope.message, lambda n: n + 1, 0)

    def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        best = heapq.nlargest(3, self.views.all(), key=lambda entry: entry[1])
        collector.send("top-pages", [page for page, _ in best], key="top")
