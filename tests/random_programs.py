"""Programs drawn at random, and what must come of their records by plain loops: for the harness, the simulation and real processes.

A program reads texts that begin with a number, which is their time and what is counted; nothing it makes depends on the order in which records of
different partitions come, so one model serves them all. A job's folder gets a copy of this file: it imports nothing of the tests.

    app = drawn(7).app("in", "job-out-")
    drawn(7).problems(records, found, tasks=3)         # [] if what was found is what the records come to
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from samzapy.streams import FINAL, App, Stream, agg, hopping, tumbling, updates

BASE, STEP_MS = 1_600_041_600_000, 100
DELAY = 40  # numbers that a record may be behind one before it of its partition
Record = tuple[Any, int, int]  # key, number, time
Model = Callable[[list[Record]], list[Record]]
Found = Mapping[str, Sequence[tuple[Any, Any]]]  # by the end of a topic's name, in the order of each key: key, value


def at(text: str) -> int:
    """The time of a record."""
    return BASE + number(text) * STEP_MS


def is_second(key: str) -> bool:
    """Whether the records of a key come in the second input, where the harness or a job reads two."""
    return int(key.removeprefix("key-")) % 3 == 0


def added(key: str) -> int:
    """What is added to the numbers of a key where a program looks that up: what the table has of it."""
    return 7 * int(key.removeprefix("key-"))


def number(text: str) -> int:
    return int(text.partition("/")[0])


@dataclass(slots=True)
class Place:
    """An operator: what it adds to a stream, what it makes of a list of records, and what follows it. `output`: what it sends, if it does."""

    title: str
    build: Callable[[Stream[Any, Any], str], Stream[Any, Any]]
    model: Model
    then: list[Place] = field(default_factory=list)
    output: Output | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A topic: of records, of a table's updates, or of windows (`size`, `every` in milliseconds; `sums`: only sums are the same however often a
    window is closed). `everywhere`: it comes once from each task."""

    topic: str
    what: str
    size: int = 0
    every: int = 0
    sums: bool = False
    everywhere: bool = False


def drawn(seed: int, *, placed: bool = True) -> Program:
    """A program. `placed`: a key's records are all in one partition of the input."""
    return Program(seed, placed)


class Program:
    """A program drawn by a seed. Its outputs are made by `app`, and named by `topics`."""

    def __init__(self, seed: int, placed: bool) -> None:
        self._draw = random.Random(f"{seed}/program")
        self._names = self._outputs = 0
        first = [self._plain() for _ in range(self._draw.randint(0, 2))]
        follows = placed and self._draw.random() < 0.3
        self.places = chain([*first, *([] if follows else [self._through()])], self._forks(depth=0))
        self.outputs = [place.output for place in self._all(self.places) if place.output is not None]
        self.of_two = self._draw.random() < 0.5  # whether it can read two inputs: some of the keys come in the second
        self.looks_up = self._draw.random() < 0.4  # whether it can look up, in a table, what is added to the numbers of a key

    @property
    def topics(self) -> list[str]:
        return [output.topic for output in self.outputs]

    def __str__(self) -> str:
        return "\n".join(self._lines(self.places, 0))

    def app(self, topic: str, prefix: str = "", second: str = "", table: str = "", **time: Any) -> App:
        """The program, which reads `topic` and writes to topics that begin with `prefix`. `second`: another input, which is read together with the first; the
        first alone feeds a window besides, so that a task has stages with a common input. `table`: the topic of what is added, by key (`added`), for
        a program that looks it up."""
        app = App()
        time = {"watermark_delay": f"{DELAY * STEP_MS}ms", "idle_timeout": None, **time}
        numbers = app.stream(topic, key=str, value=str, time=at, **time).map(number, value=int)
        if second:
            numbers.window(tumbling("1m")).count("alone")
            numbers = numbers.merge(app.stream(second, key=str, value=str, time=at, **time).map(number, value=int))
        if table:
            both = numbers.lookup(app.table(table, key=str, value=str, broadcast=True), how="inner")
            numbers = both.map(lambda pair: pair[0] + int(pair[1]), value=int)
        self._build(self.places, numbers, prefix)
        return app

    def problems(self, given: Iterable[tuple[str, str]], found: Found, tasks: int, *, strict: bool = True, doubles: bool = False, adds: bool = False) -> list[str]:
        """What is wrong with what was found in the topics. `given`: keys and texts; `strict`: every window was closed once, by time or by one bounded
        run; `doubles`: records of outputs may come again (at_least_once); `adds`: it had a table."""
        records: list[Record] = [(key, number(text) + (added(key) if adds else 0), at(text)) for key, text in given]
        return [problem for output, part in self._expected(self.places, records) for problem in judged(output, part, found[output.topic], tasks, strict, doubles)]

    # -- drawing -----------------------------------------------------------------------------------------------------------------------

    def _name(self) -> str:
        self._names += 1
        return f"s{self._names}"

    def _topic(self, what: str) -> str:
        self._outputs += 1
        return f"{what}{self._outputs}"

    def _plain(self) -> Place:
        """An operator without state."""
        draw = self._draw
        a, m = draw.randint(2, 9), draw.randint(2, 5)
        kind = draw.choice(("map", "filter", "filter_map", "flat_map", "diamond", "peek"))
        if kind == "map":
            return Place(f"map {a}n+{m}", lambda s, _: s.map(lambda n: n * a + m, value=int), lambda rs: [(k, n * a + m, t) for k, n, t in rs])
        if kind == "filter":
            return Place(f"filter n%{m + 1}", lambda s, _: s.filter(lambda n: n % (m + 1) != 0), lambda rs: [r for r in rs if r[1] % (m + 1)])
        if kind == "filter_map":
            return Place(
                f"filter_map n%{m + 1}", lambda s, _: s.filter_map(lambda n: n + a if n % (m + 1) else None, value=int),
                lambda rs: [(k, n + a, t) for k, n, t in rs if n % (m + 1)],
            )  # fmt: skip
        if kind == "flat_map":
            return Place(
                f"flat_map n%{m}", lambda s, _: s.flat_map(lambda n: range(n, n + n % m), value=int),
                lambda rs: [(k, i, t) for k, n, t in rs for i in range(n, n + n % m)],
            )  # fmt: skip
        if kind == "peek":
            return Place("peek", lambda s, _: s.peek(lambda n, key: None), list)
        return Place(f"branch n%{m} and merge", lambda s, _: _diamond(s, a, m), lambda rs: [(k, n + a * (n % m == 0), t) for k, n, t in rs])

    def _through(self) -> Place:
        """An internal topic."""
        draw, name = self._draw, self._name()
        m, partitions, combine = draw.randint(2, 12), draw.choice((None, None, 1, 2, 3)), draw.random() < 0.7
        kind = draw.choice(("of numbers", "of texts", "repartition"))
        title = f"{name}: key_by {kind} {m}, partitions={partitions}, combine={combine}"
        if kind == "of numbers":
            return Place(
                title, lambda s, _: s.key_by(lambda n: n % m, name, key=int, partitions=partitions, combine=combine),
                lambda rs: [(n % m, n, t) for _, n, t in rs],
            )  # fmt: skip
        if kind == "of texts":
            return Place(
                title, lambda s, _: s.key_by(lambda n, key: f"{str(key)[-1:]}{n % m}", name, key=str, partitions=partitions, combine=combine),
                lambda rs: [(f"{str(k)[-1:]}{n % m}", n, t) for k, n, t in rs],
            )  # fmt: skip
        return Place(f"{name}: repartition, partitions={partitions}", lambda s, _: s.repartition(name, partitions=partitions), list)

    def _forks(self, depth: int) -> list[Place]:
        return [self._fork(depth) for _ in range(self._draw.randint(1, 3 if depth == 0 else 2))]

    def _fork(self, depth: int) -> Place:
        """Operators, and what they end in."""
        draw = self._draw
        before = [self._plain() for _ in range(draw.randint(0, 2))]
        kind = draw.choices(("send", "table", "windows", "on", "everywhere"), (1, 2, 4, 2 if depth < 2 else 0, 1))[0]
        if kind == "on":
            return chain([*before, self._through()], self._forks(depth + 1))[0]
        if kind == "everywhere":
            name = self._name()
            everywhere = Place(f"{name}: broadcast", lambda s, _: s.broadcast(name), list)
            return chain([*before, everywhere], [self._windows(everywhere=True) if draw.random() < 0.5 else self._table(everywhere=True)])[0]
        end = self._send() if kind == "send" else self._table() if kind == "table" else self._windows()
        return chain(before, [end])[0]

    def _send(self) -> Place:
        output = Output(self._topic("sent"), "records")
        return Place(f"to {output.topic}", lambda s, prefix: _sent(s, prefix + output.topic), list, [], output)

    def _table(self, *, everywhere: bool = False) -> Place:
        name, output = self._name(), Output(self._topic("table"), "table", everywhere=everywhere)
        return Place(
            f"{name}: aggregate to {output.topic}",
            lambda s, prefix: _table(s, name, prefix + output.topic), list, [], output,
        )  # fmt: skip

    def _windows(self, *, everywhere: bool = False, inner: Output | None = None) -> Place:
        """Windows, and perhaps larger ones of their panes, in a stage of their own."""
        draw, name = self._draw, self._name()
        every = draw.choice((1_000, 2_500, 10_000)) if inner is None else inner.size * draw.choice((1, 2))
        size = every * draw.choice((1, 1, 2, 3))
        output = Output(self._topic("windows"), "windows", size, every, inner is not None, everywhere)
        lateness, each = draw.choice(("0s", "0s", "20s")), draw.random() < 0.2
        goes_on = not everywhere and inner is None and lateness == "0s" and not each and draw.random() < 0.4
        place = Place(
            f"{name}: windows of {size} every {every} ms, lateness {lateness}{', updates' * each} to {output.topic}",
            lambda s, prefix: _windows(s, name, prefix + output.topic, output, lateness, each), lambda rs: totals(output, rs), [], output,
        )  # fmt: skip
        if goes_on:
            between, m, partitions = self._name(), draw.randint(1, 4), draw.choice((None, 1))
            by_key = Place(
                f"{between}: key_by of keys", lambda s, _: _of_panes(s).key_by(lambda n, key: len(str(key)) % m, between, key=int, partitions=partitions),
                lambda rs: [(len(str(k)) % m, n, t) for k, n, t in rs],
            )  # fmt: skip
            place.then = chain([by_key], [self._windows(inner=output)])
        return place

    # -- carrying out ------------------------------------------------------------------------------------------------------------------

    def _build(self, places: Sequence[Place], stream: Stream[Any, Any], prefix: str) -> None:
        for place in places:
            self._build(place.then, place.build(stream, prefix), prefix)

    def _expected(self, places: Sequence[Place], records: list[Record]) -> Iterable[tuple[Output, list[Record]]]:
        for place in places:
            if place.output is not None:
                yield place.output, records
            yield from self._expected(place.then, place.model(records))

    def _all(self, places: Sequence[Place]) -> Iterable[Place]:
        for place in places:
            yield place
            yield from self._all(place.then)

    def _lines(self, places: Sequence[Place], depth: int) -> Iterable[str]:
        for place in places:
            yield "  " * depth + place.title
            yield from self._lines(place.then, depth + 1)


def chain(places: Sequence[Place], then: list[Place]) -> list[Place]:
    """One after the other, and then these."""
    for place in reversed(places):
        place.then = then
        then = [place]
    return then


# -- what operators are in a program ---------------------------------------------------------------------------------------------------------


def _diamond(stream: Stream[Any, int], a: int, m: int) -> Stream[Any, int]:
    one, rest = stream.branch(lambda n: n % m == 0)
    return one.map(lambda n: n + a, value=int).merge(rest)


def _sent(stream: Stream[Any, int], topic: str) -> Stream[Any, int]:
    stream.map(lambda n, time: [n, time], value=list).to(topic)
    return stream


def _table(stream: Stream[Any, int], name: str, topic: str) -> Stream[Any, int]:
    stream.aggregate(name, n=agg.count(), total=agg.sum(), most=agg.max()).to(topic)
    return stream


def _windows(stream: Stream[Any, int], name: str, topic: str, output: Output, lateness: str, each: bool) -> Stream[Any, int]:
    size, every = f"{output.size}ms", f"{output.every}ms"
    made = tumbling(size) if output.size == output.every else hopping(size, every=every)
    windows = stream.window(made, allowed_lateness=lateness, emit=updates() if each else FINAL)
    panes = windows.aggregate(name, n=agg.count(), total=agg.sum(), most=agg.max(), least=agg.min(), different=agg.distinct())
    panes.to(topic)
    return panes


def _of_panes(panes: Stream[Any, Any]) -> Stream[Any, int]:
    return panes.map(lambda pane: pane.value["total"], value=int)


# -- what must come of them ------------------------------------------------------------------------------------------------------------------


def spans(output: Output, records: Iterable[Record]) -> dict[tuple[Any, int], list[int]]:
    """The numbers in each window, by key and end."""
    found: dict[tuple[Any, int], list[int]] = {}
    for key, n, time in records:
        first = time // output.every * output.every + output.every
        for end in range(first, first + output.size, output.every):
            found.setdefault((key, end), []).append(n)
    return found


def totals(output: Output, records: Iterable[Record]) -> list[Record]:
    """The panes, as records for what follows."""
    return [(key, sum(numbers), end - 1) for (key, end), numbers in spans(output, records).items()]


def judged(output: Output, records: list[Record], found: Sequence[tuple[Any, Any]], tasks: int, strict: bool, doubles: bool) -> list[str]:
    """What is wrong with an output."""
    times = tasks if output.everywhere else 1
    if output.what == "records":
        return _differences(output, Counter((k, (n, t)) for k, n, t in records), Counter((k, tuple(v)) for k, v in found), doubles)
    if output.what == "table":
        return _of_table(output, records, found, times, doubles)
    return _of_windows(output, records, [(k, v) for k, v in found if v["pane"] == "on_time"], times, strict, doubles)


def _of_table(output: Output, records: list[Record], found: Sequence[tuple[Any, Any]], times: int, doubles: bool) -> list[str]:
    by_key: dict[Any, list[int]] = {}
    for key, n, _ in records:
        by_key.setdefault(key, []).append(n)
    counts = Counter({(key, count): times for key, numbers in by_key.items() for count in range(1, len(numbers) + 1)})
    wrong = _differences(output, counts, Counter((key, value["n"]) for key, value in found), doubles)
    last = {(key, len(numbers), sum(numbers), max(numbers)) for key, numbers in by_key.items()}
    ended = {(key, v["n"], v["total"], v["most"]) for key, v in found if v["n"] == len(by_key.get(key, ()))}
    return wrong or _differences(output, Counter(last), Counter(ended), doubles)


def _of_windows(output: Output, records: list[Record], found: Sequence[tuple[Any, Any]], times: int, strict: bool, doubles: bool) -> list[str]:
    expected = spans(output, records)
    if doubles and not strict:
        return _of_windows_that_may_come_again(output, expected, found, times)
    if strict:
        panes = Counter((k, v["end"], v["end"] - v["start"], v["n"], v["total"], v["most"], v["least"], v["different"]) for k, v in found)
        must = {(k, end, output.size, len(ns), sum(ns), max(ns), min(ns), len(set(ns))): times for (k, end), ns in expected.items()}
        return _differences(output, Counter(must), panes, doubles)
    if output.sums:
        sums: Counter[Any] = Counter()
        for key, v in found:
            sums[key, v["end"]] += v["total"]
        return _differences(output, Counter({place: sum(ns) * times for place, ns in expected.items()}), sums, False)
    merged: dict[tuple[Any, int], list[int]] = {}
    for key, v in found:
        n, total, most, least = merged.get((key, v["end"]), (0, 0, v["most"], v["least"]))
        merged[key, v["end"]] = [n + v["n"], total + v["total"], max(most, v["most"]), min(least, v["least"])]
    wanted = Counter((place, len(ns) * times, sum(ns) * times, max(ns), min(ns)) for place, ns in expected.items())
    return _differences(output, wanted, Counter((place, *parts) for place, parts in merged.items()), False)


def _of_windows_that_may_come_again(output: Output, expected: dict[tuple[Any, int], list[int]], found: Sequence[tuple[Any, Any]], times: int) -> list[str]:
    """No pane has more than there is, and together they have all of it."""
    part = "total" if output.sums else "n"
    whole = {place: sum(ns) if output.sums else len(ns) for place, ns in expected.items()}
    told = [f"{output.topic}: {key}, {v['end']} has {v[part]} of {whole.get((key, v['end']), 0)}" for key, v in found if v[part] > whole.get((key, v["end"]), 0)]
    sums: Counter[Any] = Counter()
    for key, v in found:
        sums[key, v["end"]] += v[part]
    missing = [f"{output.topic}: {place} has {sums[place]} of {n * times}" for place, n in whole.items() if sums[place] < n * times]
    return [*told[:1], *missing[:1]]


def _differences(output: Output, must: Counter[Any], found: Counter[Any], doubles: bool) -> list[str]:
    if doubles:
        must, found = Counter(dict.fromkeys(must, 1)), Counter(dict.fromkeys(found, 1))
    missing, wrong = must - found, found - must
    told = []
    if missing:
        told.append(f"{output.topic}: {missing.total()} of {must.total()} are missing, for example {min(missing, key=str)}")
    if wrong:
        told.append(f"{output.topic}: {wrong.total()} are wrong or come again, for example {min(wrong, key=str)}")
    return told


def key_of(data: bytes) -> Any:
    """A key of an output, of its bytes: a number has eight, and no text of these programs."""
    return int.from_bytes(data, "big", signed=True) if len(data) == 8 else data.decode()


def records_at_random(draw: random.Random, count: int, partitions: int, keys: int = 9) -> list[tuple[int, str, str]]:
    """Records: partition, key and text; out of order within the bound, each key in one partition."""
    now, made = draw.randrange(1000), []
    for n in range(count):
        now += draw.choice((0, 1, 1, 2, 30 if n % 50 == 0 else 3))
        key = draw.randrange(keys)
        made.append((key % partitions, f"key-{key}", f"{max(0, now - draw.randrange(DELAY))}/{n}"))
    return made
