"""Operators by the names that they have elsewhere: what is said of a name that a stream does not have."""

from __future__ import annotations

import difflib

GROUPED, JOINED = "key_by", "lookup"
ELSEWHERE = {
    "groupby": GROUPED, "group_by": GROUPED, "group_by_key": GROUPED, "partition_by": GROUPED, "select_key": GROUPED, "join": JOINED, "left_join": JOINED,
    "inner_join": JOINED, "foreach": "sink", "for_each": "sink", "select": "map", "map_values": "map", "apply": "map", "where": "filter",
    "through": "repartition", "union": "merge", "explode": "flat_map", "write": "to", "send": "to", "sum": "aggregate", "agg": "aggregate",
    "mean": "aggregate", "min": "aggregate", "max": "aggregate", "tumbling": "window", "hopping": "window",
}  # fmt: skip


def no_operator(stream: object, name: str) -> str:
    """What to say of an attribute that the stream does not have: the operator that is meant, where that can be told."""
    what = type(stream).__name__
    said = f"{what!r} object has no attribute {name!r}"
    operators = [each for each in dir(type(stream)) if not each.startswith("_")]
    near = ELSEWHERE.get(name.lower()) or next(iter(difflib.get_close_matches(name, operators, 1)), "")
    return f"{said}; the operator is called {near!r}" if near in operators else said
