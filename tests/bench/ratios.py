"""What rounds of side-by-side runs say: medians, ratios of the same round, and whether a ratio is the recorded one. Pure.

A ratio says how good a side is against another one, whichever way the figure goes: 0.5 is half as good (half the records a second, or
twice the processor time), 1 the same. It is formed within a round, so that what disturbs a round disturbs both.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Figures = Mapping[str, float]
Round = Mapping[str, Figures]  # by side
Ratios = dict[str, dict[str, dict[str, float]]]  # by pair ("side / other side"), figure, and "median", "lowest", "highest"

MORE_IS_BETTER = frozenset({"records_per_s"})  # of every other figure less is better

NOISE = {"cpu_us_per_record": 0.35, "records_per_s": 0.35, "other": 0.6}  # the part by which a median may differ from the recorded one


def ratio(figure: str, ours: float, other: float) -> float:
    """How good `ours` is against `other`; inf or nan never: a side that measured nothing is an error.

    Raises:
        ValueError: a figure is zero or negative.
    """
    if ours <= 0 or other <= 0:
        raise ValueError(f"{figure}: {ours:g} against {other:g}: both must be more than zero; measure with more records")
    return ours / other if figure in MORE_IS_BETTER else other / ours


def ratios(rounds: Sequence[Round], pairs: Sequence[tuple[str, str]]) -> Ratios:
    """Of each pair of sides, every figure that both have: the median over the rounds, and how far it strayed."""
    found: Ratios = {}
    for ours, other in pairs:
        of_pair: dict[str, dict[str, float]] = {}
        for figure in rounds[0][ours]:
            if figure in rounds[0][other]:
                values = [ratio(figure, one[ours][figure], one[other][figure]) for one in rounds]
                of_pair[figure] = {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}
        found[f"{ours} / {other}"] = of_pair
    return found


def medians(rounds: Sequence[Round]) -> dict[str, dict[str, float]]:
    """By side and figure."""
    return {side: {f: statistics.median(one[side][f] for one in rounds) for f in figures} for side, figures in rounds[0].items()}


def table(name: str, rounds: Sequence[Round], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """What a person reads: a line for each side, then one for each pair."""
    lines = [f"{name}: medians of {len(rounds)} rounds"]
    for side, figures in medians(rounds).items():
        lines.append(f"  {side:<36}" + "  ".join(f"{_shown(value):>10} {figure}" for figure, value in figures.items()))
    for pair, of_pair in ratios(rounds, pairs).items():
        for figure, value in of_pair.items():
            lines.append(f"  {pair}: {value['median']:.2f} by {figure} ({value['lowest']:.2f} to {value['highest']:.2f})")
    return lines


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def middle_rate(times_ms: Sequence[int], records: int) -> float:
    """Input records a second, from the times at which the broker wrote their outputs: over the middle 80 % of these.

    Args:
        times_ms: of all outputs, in any order.
        records: how many input records they are of.

    Raises:
        ValueError: the outputs were written within a few milliseconds, which says nothing.
    """
    ordered = sorted(times_ms)
    first, last = ordered[len(ordered) // 10], ordered[len(ordered) - 1 - len(ordered) // 10]
    if last - first < 10:
        raise ValueError(f"the middle of {len(ordered)} outputs was written within {last - first} ms: measure with more records")
    return records * 0.8 / ((last - first) / 1000)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that `percent` of 100 are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def differences(recorded: Mapping[str, Any], result: Mapping[str, Any]) -> list[str]:
    """The ratios of `result` that are outside the noise band around the recorded ones, as sentences; only what both have is compared.

    Args:
        recorded: {"noise": {figure: part, "other": part}, "yardsticks": {name: {"records": n, "ratios": Ratios}}}.
        result: {"yardsticks": {name: {"records": n, "ratios": Ratios}}}.
    """
    found = []
    for name, was in recorded["yardsticks"].items():
        now = result["yardsticks"].get(name)
        if now is None:
            continue
        if now["records"] != was["records"]:
            found.append(f"{name}: {now['records']:,} records now, {was['records']:,} when recorded: not comparable")
            continue
        for pair, figures in was["ratios"].items():
            for figure, value in figures.items():
                band = recorded["noise"].get(figure, recorded["noise"]["other"])
                measured = now["ratios"].get(pair, {}).get(figure)
                if measured is None:
                    found.append(f"{name}, {pair}: {figure} is recorded, but was not measured")
                elif not 1 - band <= measured["median"] / value["median"] <= 1 / (1 - band):
                    word = "worse" if measured["median"] < value["median"] else "better"
                    found.append(
                        f"{name}, {pair}: {measured['median']:.2f} by {figure} is {word} than the recorded {value['median']:.2f} "
                        f"by more than the noise ({band:.0%})"
                    )
    return found


def compared(recorded: Mapping[str, Any], result: Mapping[str, Any]) -> int:
    """How many recorded ratios `result` has."""
    return sum(
        figure in result["yardsticks"].get(name, {}).get("ratios", {}).get(pair, {})
        for name, was in recorded["yardsticks"].items() for pair, figures in was["ratios"].items() for figure in figures
    )  # fmt: skip


def with_recorded(recorded: Mapping[str, Any], result: Mapping[str, Any], figures: Sequence[str] = ()) -> dict[str, Any]:
    """What is recorded, with the yardsticks of `result` in place of what was; of these only `figures`, or all."""
    fresh = {
        name: {
            "records": one["records"],
            "ratios": {
                pair: {f: {"median": round(v["median"], 3)} for f, v in of_pair.items() if not figures or f in figures}
                for pair, of_pair in one["ratios"].items()
            },
        }
        for name, one in result["yardsticks"].items()
    }
    where = {key: result[key] for key in ("commit", "started", "machine", "versions")}
    return {**where, "noise": recorded["noise"], "yardsticks": {**recorded["yardsticks"], **fresh}}
