"""samzapy: stream processing in Python on Kafka, RocksDB and Spark, in Apache Samza's model.

A name's module is imported at the first access to the name: the `samzapy` command imports this file before it can handle Ctrl-C, so it must be quick.
"""

TYPE_CHECKING = False  # a type checker takes it for true; the module `typing` would be most of the time before the handler is there

if TYPE_CHECKING:
    from samzapy.api.context import MessageCollector, RequestScope, TaskContext, TaskCoordinator
    from samzapy.api.envelope import IncomingMessageEnvelope, OutgoingMessageEnvelope, SystemStream, SystemStreamPartition
    from samzapy.api.errors import ConfigurationError, RecordTooLarge, SamzapyError, SerdeError, StoreClosed, TaskError, UnknownOutput
    from samzapy.api.serde import Serde
    from samzapy.api.store import KeyValueStore
    from samzapy.api.task import StreamTask

__version__ = "0.1.0"

__all__ = [
    "ConfigurationError",
    "IncomingMessageEnvelope",
    "KeyValueStore",
    "MessageCollector",
    "OutgoingMessageEnvelope",
    "RecordTooLarge",
    "RequestScope",
    "SamzapyError",
    "Serde",
    "SerdeError",
    "StoreClosed",
    "StreamTask",
    "SystemStream",
    "SystemStreamPartition",
    "TaskContext",
    "TaskCoordinator",
    "TaskError",
    "UnknownOutput",
]

_MODULES = {
    "samzapy.api.context": ("MessageCollector", "RequestScope", "TaskContext", "TaskCoordinator"),
    "samzapy.api.envelope": ("IncomingMessageEnvelope", "OutgoingMessageEnvelope", "SystemStream", "SystemStreamPartition"),
    "samzapy.api.errors": (
        "ConfigurationError",
        "RecordTooLarge",
        "SamzapyError",
        "SerdeError",
        "StoreClosed",
        "TaskError",
        "UnknownOutput",
    ),
    "samzapy.api.serde": ("Serde",),
    "samzapy.api.store": ("KeyValueStore",),
    "samzapy.api.task": ("StreamTask",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # a type checker that saw this would accept every misspelt name

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
