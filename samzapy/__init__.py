"""samzapy: stream processing in Python on Kafka, RocksDB and Spark, in Apache Samza's model."""

from samzapy.api.context import RequestScope, TaskContext, TaskCoordinator
from samzapy.api.envelope import IncomingMessageEnvelope, OutgoingMessageEnvelope, SystemStream, SystemStreamPartition
from samzapy.api.errors import ConfigurationError, SamzapyError, SerdeError, TaskError
from samzapy.api.serde import Serde
from samzapy.api.store import KeyValueStore
from samzapy.api.task import StreamTask

__version__ = "0.1.0"

__all__ = [
    "ConfigurationError",
    "IncomingMessageEnvelope",
    "KeyValueStore",
    "OutgoingMessageEnvelope",
    "RequestScope",
    "SamzapyError",
    "Serde",
    "SerdeError",
    "StreamTask",
    "SystemStream",
    "SystemStreamPartition",
    "TaskContext",
    "TaskCoordinator",
    "TaskError",
]
