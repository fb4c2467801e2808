"""Programs of streams and tables: the names that a program imports."""

from samzapy.streams import agg
from samzapy.streams.agg import Aggregate
from samzapy.streams.app import App
from samzapy.streams.emit_option import FINAL, updates
from samzapy.streams.stream import Stream
from samzapy.streams.table import Table
from samzapy.streams.window_shapes import Pane, hopping, tumbling
from samzapy.streams.windowed import Panes, Windowed

__all__ = ["FINAL", "Aggregate", "App", "Pane", "Panes", "Stream", "Table", "Windowed", "agg", "hopping", "tumbling", "updates"]
