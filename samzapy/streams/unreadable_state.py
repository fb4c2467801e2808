"""State that cannot be read as the program is now: what is told of it, and that no record is at fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from samzapy.api.context import TaskContext
from samzapy.api.errors import SerdeError, shortened, unreadable_state
from samzapy.streams.graph import Graph, Lookup, Rolling


def of_tables(graph: Graph, context: TaskContext) -> dict[str, Callable[..., Any]]:
    """What the code asks of tables of aggregates, for a task."""

    def unreadable(number: int, key: Any, error: SerdeError) -> NoReturn:
        node: Any = graph[number]
        store: Any = context.get_store((node.table if isinstance(node, Lookup) else node).name)
        raise unreadable_state(store.called, f"key {shortened(key)}", error) from error

    def found(number: int, key: Any, state: Any) -> Any:
        """What a table says, of what its store has."""
        node = graph[number]
        result = node.table.result if isinstance(node, Lookup) and isinstance(node.table, Rolling) else None
        try:
            return state if state is None or result is None else result(state)
        except SerdeError as error:
            unreadable(number, key, error)

    return {"found": found, "unreadable": unreadable}
