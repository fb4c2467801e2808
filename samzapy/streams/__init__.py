"""Programs of streams and tables: what a person imports to write one."""

from samzapy.streams import agg
from samzapy.streams.agg import Aggregate
from samzapy.streams.app import App
from samzapy.streams.stream import Stream
from samzapy.streams.table import Table

__all__ = ["Aggregate", "App", "Stream", "Table", "agg"]
