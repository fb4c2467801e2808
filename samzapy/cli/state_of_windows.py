"""What `samzapy state get|scan|export` shows of a window's store: its slices, by the keys of the records."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from samzapy.cli.common import print_json
from samzapy.config.load import LoadedJob
from samzapy.model.event_time import as_utc
from samzapy.model.names import task_name
from samzapy.ops.exact_json import exact
from samzapy.ops.inspection import changelog_of
from samzapy.ops.shown import read, text_of
from samzapy.serde.registry import NamedSerde
from samzapy.streams.operators.rows import SliceRow, slice_row
from samzapy.streams.window_nodes import WindowAggregate
from samzapy.wiring.program import graph_of
from samzapy.wiring.serdes import KEY, VALUE, Serdes

Entry = tuple[int, bytes, bytes]  # partition, key, value


def window_of(loaded: LoadedJob, store: str) -> WindowAggregate | None:
    """The window that a store of a program keeps; None: it keeps something else."""
    if loaded.settings.app is None:
        return None
    graph, _ = graph_of(loaded.settings, loaded.folders)
    return next((node for node in graph if isinstance(node, WindowAggregate) and node.name == store), None)


class WindowStore:
    """A window's store."""

    def __init__(self, loaded: LoadedJob, node: WindowAggregate) -> None:
        topic = changelog_of(loaded.settings, node.name)
        serdes = Serdes(loaded.settings, [Path(folder) for folder in loaded.folders])
        self.key: NamedSerde = serdes.of(node.key.serde, topic, KEY)
        self.key_serde = node.key.serde
        self._sum = serdes.of(node.kept.serde, topic, VALUE)
        self._every_ms = node.window.every_ms

    def rows(self, entries: Iterable[Entry], wanted: Callable[[bytes], bool]) -> list[tuple[SliceRow, int]]:
        """Slices with the partitions of their tasks, in the order of time and then of keys. `wanted`: whether a key is to be shown."""
        found = [(row, partition) for partition, key, value in entries if (row := slice_row(key, value, self._every_ms)) and wanted(row.key)]
        return sorted(found, key=lambda each: (each[0].end, each[0].key, each[1]))

    def show(self, rows: Iterable[tuple[SliceRow, int]], as_json: bool) -> None:
        """Write them to stdout, one a line."""
        for row, partition in rows:
            key, sum_, task = read(self.key, row.key), read(self._sum, row.sum_), task_name(partition)
            if as_json:
                told = {"start": row.start, "end": row.end, "records": row.records, "task": task, "partition": partition}
                print_json({**exact("key", row.key, key), **exact("value", row.sum_, sum_), **told})
            else:
                span = f"{as_utc(row.start)} to {as_utc(row.end)}"
                sys.stdout.write(f"{text_of(key)}\t{span}\t{row.records} record{'' if row.records == 1 else 's'}\t{text_of(sum_)}\t{task}\n")
