"""Sums that are right or refused: what `agg.sum` and `agg.mean` add up, and exact sums of whole numbers and floats.

An exact sum is kept as a list: first all that is whole, as one whole number (as text where it has more than 64 bits); then, if any of the values was a
float, what is left of them, as Shewchuk's partial sums: floats that do not overlap. What older versions kept is read: floats, or a whole number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from samzapy.api.errors import TaskError
from samzapy.serde.basic import shown

LEAST, MOST = -(1 << 63), (1 << 64) - 1  # whole numbers that a store can hold as JSON
EXACTLY = 1 << 53  # whole numbers up to here are floats without rounding
EXACT = "Use agg.sum(…, exact=True), which has no such limit while it adds"


def plus(total: Any, value: Any) -> Any:
    """A sum.

    Raises:
        TaskError: it is a whole number of more than 64 bits, or more than a float holds; or the value is no number that is kept.
    """
    new = total + value
    if type(new) is int:
        if not LEAST <= new <= MOST:
            raise TaskError(
                f"agg.sum gives {shown(new)}; a whole number in a store has 64 bits.",
                f"{EXACT}, and write its result as text, str(…); or sum floats: agg.sum(lambda value: float(…)).",
            )
    elif type(new) is float and not math.isfinite(new):
        _refuse_not_finite(value)
        raise TaskError("agg.sum gives more than a float holds (1.8e308).", f"{EXACT}; or sum smaller units.")
    return new


def plus_for_mean(total: Any, value: Any) -> Any:
    """The sum that a mean is made of: a float where a whole number would have more than 64 bits."""
    new = total + value
    return float(new) if type(new) is int and not LEAST <= new <= MOST else new


def exactly(parts: list[Any], value: Any) -> list[Any]:
    """An exact sum, and one value more."""
    _refuse_not_finite(value)
    return _kept(*_added_up([*parts, value]))


def both(a: list[Any], b: list[Any]) -> list[Any]:
    """Two exact sums as one."""
    return _kept(*_added_up([*a, *b]))


def result_of(parts: list[Any]) -> int | float:
    """What an exact sum is: a whole number of whole numbers, else a float, rounded once.

    Raises:
        TaskError: it is more than a float holds.
    """
    whole, rest, has_floats = _added_up(parts)
    if not has_floats:
        return whole
    try:
        return math.fsum([whole, *rest]) if abs(whole) <= EXACTLY else float(sum(map(Fraction, rest), Fraction(whole)))
    except OverflowError:
        raise TaskError("agg.sum gives more than a float holds (1.8e308).", "Sum smaller units.") from None


def _added_up(parts: Iterable[Any]) -> tuple[int, list[float], bool]:
    """What is whole; the partial sums of the rest; whether there is a float among them."""
    whole, rest, has_floats = 0, list[float](), False
    for part in parts:
        if isinstance(part, int | str):
            whole += int(part)
            continue
        has_floats = True
        if isinstance(part, float) and part.is_integer():  # as all large floats are, so partial sums never overflow
            whole += int(part)
        else:
            rest = _with(rest, part)
    return whole, rest, has_floats


def _kept(whole: int, rest: list[float], has_floats: bool) -> list[Any]:
    return [whole if LEAST <= whole <= MOST else str(whole), *((rest or [0.0]) if has_floats else ())]


def _with(parts: list[float], value: float) -> list[float]:
    """Shewchuk's partial sums: floats that do not overlap and add up to the exact sum."""
    kept = []
    for part in parts:
        if abs(value) < abs(part):
            value, part = part, value
        high = value + part
        low = part - (high - value)
        if low:
            kept.append(low)
        value = high
    return [*kept, value]


def _refuse_not_finite(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise TaskError(f"agg.sum is given {value}, which no store holds.", "Drop such values earlier: .filter(…).")
