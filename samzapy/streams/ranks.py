"""What `min`, `max`, `min_by`, `max_by` and `top` compare: each value in the form in which a store gives it back, so that a new one and one that was
kept compare as they would have at first. What has no such form is refused when it first comes, not when the next one meets it."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from samzapy.api.errors import TaskError

AS_IT_IS = frozenset((int, float, str, bool))


def compared(value: Any, what: str) -> Any:
    """The value as a store gives it back. `what`: the aggregate's name.

    Raises:
        TaskError: the store would give back something else, which does not compare as the value does; or the value is nan, which is in no order: all that
            is merged with it would be lost.
    """
    if type(value) in AS_IT_IS or isinstance(value, int | float | str):
        if value != value:
            raise TaskError(f"agg.{what} cannot compare nan: it is neither less nor more than another number.", "Drop such values earlier: .filter(…).")
        return value
    if isinstance(value, list | tuple):
        return [part if part is None or isinstance(part, dict) else compared(part, what) for part in value]  # equal ones do no harm
    name = "None" if value is None else f"a {type(value).__name__}"
    raise TaskError(f"agg.{what} cannot compare {name}: a store does not keep its order.", _remedy(value))


def is_less(one: Any, other: Any) -> bool:
    """Whether a kept value comes before another one. Values that Python does not compare have an order here too (None, numbers, texts, lists, dicts), so that
    merging what was accepted apart never fails: no record is at fault then."""
    try:
        return bool(one < other)
    except TypeError:
        return bool(_in_order(one) < _in_order(other))


def _in_order(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    if isinstance(value, int | float):
        return 1, value
    if isinstance(value, str):
        return 2, value
    return (3, [_in_order(part) for part in value]) if isinstance(value, list) else (4, repr(value))


def _remedy(value: Any) -> str:
    if value is None:
        return "Use another value in its place, or drop such values earlier: .filter(…)."
    if isinstance(value, datetime):
        return "Use the value's .timestamp()."
    if isinstance(value, date):
        return "Use the value's .toordinal() or .isoformat()."
    return "Give it a number, a text, or a list or tuple of these."
