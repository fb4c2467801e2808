"""The small protocols between decisions and hands: what the running part (`container`, `coordinator`) knows of the outside world.

Each has a real and, where tests need one, an in-memory implementation; log and stores pass the same suite on both (tests/contract).
"""

from samzapy.ports.clock import Clock, Joinable, Spawn
from samzapy.ports.control import Assignment, Control, Instructions, Supervision
from samzapy.ports.launching import ContainerHandle, Launcher
from samzapy.ports.log import (
    START_ITS_BROKER,
    Admin,
    Closing,
    Consumer,
    Fetch,
    Log,
    Message,
    TopicFacts,
    TopicOutline,
    TopicSpec,
    assigned_already,
    gives_times,
    no_leader,
)
from samzapy.ports.producers import Delivered, Outgoing, PlainProducer, TransactionalProducer
from samzapy.ports.schemas import MAX_SCHEMA_NUMBER, RegisteredSchema, SchemaRegistry
from samzapy.ports.stores import Change, Claim, HeldValues, Scan, StoreDirectory, StoreEngine, TaskStore

__all__ = [
    "MAX_SCHEMA_NUMBER",
    "START_ITS_BROKER",
    "Admin",
    "Assignment",
    "Change",
    "Claim",
    "Clock",
    "Closing",
    "Consumer",
    "ContainerHandle",
    "Control",
    "Delivered",
    "Fetch",
    "HeldValues",
    "Instructions",
    "Joinable",
    "Launcher",
    "Log",
    "Message",
    "Outgoing",
    "PlainProducer",
    "RegisteredSchema",
    "Scan",
    "SchemaRegistry",
    "Spawn",
    "StoreDirectory",
    "StoreEngine",
    "Supervision",
    "TaskStore",
    "TopicFacts",
    "TopicOutline",
    "TopicSpec",
    "TransactionalProducer",
    "assigned_already",
    "gives_times",
    "no_leader",
]
