"""Internal topics in a program's source: what is sent there, and what is read there in the following stage.

A record goes with its own time as its Kafka timestamp. Kafka's clients cannot write times before 2 ms after 1970: those are in a header, which is
looked for only where the timestamp is `EARLIEST`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samzapy.streams.graph import Reader, Repartition
from samzapy.streams.partition_choice import BROADCAST, PARTIAL_KEY, ROUND_ROBIN, partition_argument

EARLIEST = 1
PLAIN_KEYS = {"string": "str", "bytes": "bytes", "integer": "int"}  # serdes of keys of which equal ones of this type are the same key
TIME_HEADER = "samzapy-time"
Headers = Sequence[tuple[str, bytes | None]]


def near_sums_line(node: Repartition) -> str:
    """What waits of the last record's slice."""
    n = node.number
    return f"from{n}, until{n}, sums{n}, hook{n} = combine_near{n}()"


def writer_lines(
    node: Repartition, value: str, called: str, needs_headers: bool, is_combined: bool, counts_in_place: bool, is_written_with_time: bool
) -> list[str]:
    """What a record comes to. `called`: the call of the operator's function, if it has one; `is_combined`: it may be summed up first;
    `counts_in_place`: and is only counted, mostly without a call."""
    n = node.number
    headers = "h and without_partial(h)" if needs_headers else "None"
    key, partition, lines, indent = "k", partition_argument(node, called), [], ""
    if node.how == "key_by":
        lines, key = [f"x = {called}", f"if x is None: no_new_key({n})"], "x"
    elif node.how == BROADCAST:
        lines, indent = [f"for x in each{n}:"], "    "
    elif not partition or node.how == PARTIAL_KEY:
        lines = [f"if k is None: no_key({n})"]
    if is_combined:
        lines += [f"if t < 0: before_1970({n}, t)"] if is_written_with_time else []
    if counts_in_place:
        lines += [
            f"e = sums{n}.get({key}) if from{n} <= t < until{n} and type({key}) is {PLAIN_KEYS[node.key.serde]} else None",
            "if e is not None:",
            f"    if e.hook != hook{n}: remember{n}((e, e.records)); e.hook = hook{n}",
            "    e.records += 1",
            "    e.sum += 1",
            f"elif combine{n} is not None:",
            f"    combine{n}({key}, {value}, t)",
            f"    {near_sums_line(node)}",
        ]
    elif is_combined:
        lines += [f"if combine{n} is not None: combine{n}({key}, {value}, t)"]
    return [
        *lines,
        f"{indent}{'el' if is_combined else ''}if t > {EARLIEST}: send(topic{n}, {value}, {key}{partition}, timestamp=t, headers={headers})",
        f"{indent}else: send(topic{n}, {value}, {key}{partition}, timestamp={EARLIEST}, headers=early({headers}, t))",
    ]


def writer_names(node: Repartition, is_combined: bool, counts_in_place: bool) -> list[str]:
    """The names that these lines need."""
    n = node.number
    own = {"key_by": ["no_new_key"], ROUND_ROBIN: [f"in_turn{n}"], BROADCAST: [f"each{n}"], "repartition": ["no_key"],
           PARTIAL_KEY: [f"among{n}", "no_key"]}.get(node.how, [])  # fmt: skip
    return [f"topic{n}", "early", "without_partial", *own, *((f"combine{n}", "before_1970") if is_combined else ()),
            *((f"combine_near{n}", f"remember{n}") if counts_in_place else ())]  # fmt: skip


def reader_lines(node: Reader, late: int | None) -> list[str]:
    """What a record is that was read: a mark of how far somebody is; the sum of several records, for the window that takes them, or key, value, time
    and headers. `late`: where that window counts what is too late; None: there is no such window."""
    n = node.number
    return [
        "x = r.key()",
        "if x == marks_key:",
        "    if heard(r.value()): break",
        "    continue",
        f"n{n} += 1",
        f"k = None if x is None else key{n}(x)",
        "t = r.timestamp()[1]",
        "h = headers_of(r)",
        f"if t <= {EARLIEST}: t, h = early_time(t, h)",
        "if h and h[0][0] == partial:",
        *([f"    no_partial({n})"] if late is None else [f"    counts[{late}] += joined{n}(k, r.value(), t, h)", "    continue"]),
        "x = r.value()",
        f"v{n} = None if x is None else value{n}(x)",
    ]


def reader_names(node: Reader, late: int | None) -> list[str]:
    """The names that these lines need."""
    n = node.number
    return ["marks_key", "heard", "headers_of", "early_time", f"key{n}", f"value{n}", "partial", "no_partial" if late is None else f"joined{n}"]


def early(headers: Headers | None, time: int) -> list[tuple[str, bytes | None]]:
    """The headers of a record whose time cannot be its timestamp."""
    return [*(one for one in headers or () if one[0] != TIME_HEADER), (TIME_HEADER, str(time).encode())]


def early_time(timestamp: int, headers: Headers | None) -> tuple[int, Any]:
    """The record's own time and headers, of what `early` made of them."""
    times = [value for name, value in headers or () if name == TIME_HEADER and value is not None]
    rest = [one for one in headers or () if one[0] != TIME_HEADER]
    return (int(times[-1]) if times else timestamp), (rest or None)
