"""What sums records up before an internal topic, of a task: counts, which cannot fail and are changed where they wait, and all other sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from samzapy.api.serde import Serde
from samzapy.model.event_time import NEVER
from samzapy.serde.record_keys import as_key
from samzapy.serde.unreserved import UnreservedKeys
from samzapy.streams.combining import Combiner, PartialSum, Slice, WaitingSums, counts
from samzapy.streams.graph import Node, Repartition
from samzapy.streams.operators.held import KEY_TYPES, Sums
from samzapy.streams.window_nodes import WindowAggregate
from samzapy.streams.window_sums import sums_of


class CountCombiner(Combiner):
    """Counts. A count is changed where it waits: the generated code adds to one that is there without a call, and what a hook changed is remembered
    until it has returned."""

    def __init__(self, topic: str, window: WindowAggregate, sums: Sums, encode_key: Callable[[Any], bytes], waiting: WaitingSums) -> None:
        super().__init__(topic, window, sums, encode_key, waiting)
        self._made: list[tuple[Slice, Any]] = []
        self._changed: list[tuple[PartialSum, int]] = []  # with how many records it had before
        self.remember = self._changed.append

    def near(self) -> tuple[int, int, Slice, int]:
        """Of the last record's slice the times, from and before, and what waits for it; and the number of the hook. A record of these times whose key is
        there only adds one, after `remember((found, found.records))` if its hook is not this one."""
        return (self._end - self._every, self._end, self._near, self._waiting.hook)

    def add(self, key: Any, value: Any, time: int) -> None:
        """A record. What this raises is the record's error."""
        if not self._end - self._every <= time < self._end:
            self._end = self._end_of(time)
            self._near = self._waiting.slices.setdefault(self._end, {})
        place = key if type(key) in KEY_TYPES else (self._encode_key(key),)
        found = self._near.get(place)
        if found is None:
            self._near[place] = PartialSum(1, self._encode_key(key), self._waiting.hook)
            self._made.append((self._near, place))
            self._waiting.held += 1
        else:
            if found.hook != self._waiting.hook:
                self.remember((found, found.records))
                found.hook = self._waiting.hook
            found.records += 1
            found.sum += 1

    def keep(self) -> None:
        self._begin()

    def undo(self) -> None:
        for found, records in self._changed:
            found.records = found.sum = records
        for kept, place in self._made:
            del kept[place]
        self._waiting.held -= len(self._made)
        self._begin()

    def _begin(self) -> None:
        self._made.clear()
        self._changed.clear()
        self._end = NEVER
        self._waiting.hook += 1


def no_counts_near() -> tuple[int, int, Slice, int]:
    """As `CountCombiner.near`, where records go alone."""
    return 0, 0, {}, 0


def combiners_of(
    combined: Mapping[Node, WindowAggregate], topics: Mapping[Node, str], serde: Callable[[str], Serde], together: dict[str, Any], check: bool
) -> dict[Node, Combiner]:
    """Those of a new task, by `key_by`. `combined`: their windows; `topics`: theirs; `together`: what the container's tasks share, by topic;
    `check`: see `sums_of`."""
    found: dict[Node, Combiner] = {}
    for node, window in combined.items():
        if isinstance(node, Repartition):
            encode_key, kind = UnreservedKeys(as_key(serde(node.key.serde))).encode, CountCombiner if counts(window) else Combiner
            found[node] = kind(topics[node], window, sums_of(window, serde, check), encode_key, together.setdefault(topics[node], WaitingSums()))
    return found


def called(combined: Mapping[Node, WindowAggregate], combiners: Mapping[Node, Combiner]) -> dict[str, Any]:
    """What the generated code calls, by its name there; without combiners records go alone."""
    found: dict[str, Any] = {}
    for node in combined:
        combiner, n = combiners.get(node), node.number
        found[f"combine{n}"] = None if combiner is None else combiner.add
        found |= {f"combine_near{n}": no_counts_near, f"remember{n}": _nothing_to_remember}
        if isinstance(combiner, CountCombiner):
            found |= {f"combine_near{n}": combiner.near, f"remember{n}": combiner.remember}
    return found


def _nothing_to_remember(found: tuple[PartialSum, int]) -> NoReturn:
    raise AssertionError("a count of a hook of which none is near")
