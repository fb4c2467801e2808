"""The user's functions: which parts of a record each of them takes, read once when the program is defined.

A function gets the value. To get more, it has parameters without default named `key`, `time` or `headers`: `lambda edit, key: …`, `def f(view, time, headers)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from samzapy.api.envelope import Headers
from samzapy.streams.places import refused

NAMES = ("key", "time", "headers")
Asked = tuple[str, ...]

V_in = TypeVar("V_in", contravariant=True)
K_in = TypeVar("K_in", contravariant=True)
W_out = TypeVar("W_out", covariant=True)


class OfKey(Protocol[V_in, K_in, W_out]):
    """A function of value and key."""

    def __call__(self, value: V_in, /, key: K_in) -> W_out: ...


class OfTime(Protocol[V_in, W_out]):
    """A function of value and time, in milliseconds since 1970."""

    def __call__(self, value: V_in, /, time: int) -> W_out: ...


class OfBoth(Protocol[V_in, K_in, W_out]):
    """A function of value, key and time."""

    def __call__(self, value: V_in, /, key: K_in, time: int) -> W_out: ...


class OfHeaders(Protocol[V_in, W_out]):
    """A function of value and headers."""

    def __call__(self, value: V_in, /, headers: Headers) -> W_out: ...


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A function of the user's.

    Attributes:
        call: the function.
        asks: which of key, time, headers it gets by name, besides the value.
        where: file and line of the operator.
    """

    call: Callable[..., Any]
    asks: Asked
    where: str


def function(given: Any, what: str, where: str, *, names: Sequence[str] = NAMES, values: int = 1, may_yield: bool = False) -> Function:
    """A function as an operator calls it.

    Args:
        given: what the program gave.
        what, where: the operator, and its file and line, for errors.
        names: the parameters that it may have besides its `values` first ones.
        may_yield: it may be a generator.

    Raises:
        ConfigurationError: it takes no value, has a parameter of another name, or is a coroutine or generator, which would not run when it is called.
    """
    refuse_no_function(given, what, where)
    if inspect.iscoroutinefunction(given) or inspect.isasyncgenfunction(given):
        raise refused(f"{what}: {_name(given)} is a coroutine: nobody awaits it", "Define it without `async`.", where)
    if not may_yield and inspect.isgeneratorfunction(given):
        raise refused(f"{what}: {_name(given)} is a generator: none of its code would run", "Use flat_map, or no `yield`.", where)
    return Function(given, () if inspect.isclass(given) else _asked(given, what, where, names, values), where)


def refuse_no_function(given: Any, what: str, where: str) -> None:
    """Refuse what cannot be called. The name of a field may have been meant as a function that gets it."""
    if not callable(given):
        of_field = f"Write a function of the value: lambda value: value.{given}; of a dict: lambda value: value[{given!r}]."
        is_field = isinstance(given, str) and given.isidentifier()
        raise refused(f"{what} takes a function, not {type(given).__name__}", of_field if is_field else "", where)


def _asked(given: Any, what: str, where: str, names: Sequence[str], values: int) -> Asked:
    try:
        parameters = list(inspect.signature(given).parameters.values())
    except (ValueError, TypeError):  # a builtin without a signature
        return ()
    kinds = {p.kind for p in parameters}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return ()
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(by_place) < values and inspect.Parameter.VAR_POSITIONAL not in kinds:
        takes = "takes no value" if values == 1 else f"takes {len(by_place)} values"
        raise refused(f"{what}: {_name(given)} {takes}", f"It is called with {'the value' if values == 1 else f'{values} values'}.", where)
    needed = [p for p in parameters if p not in by_place[:values] and p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    for parameter in needed:
        if parameter.name not in names:
            known = ", ".join(names)
            raise refused(
                f"{what}: {_name(given)} asks for {parameter.name!r}",
                f"Besides the value it may name: {known}." if known else "Give its other parameters a default: it gets values only.",
                where,
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise refused(f"{what}: {_name(given)} takes {parameter.name!r} as a positional-only parameter", "Remove the `/` after it.", where)
    return tuple(name for name in names if name in {p.name for p in needed})


def _name(given: Any) -> str:
    name = getattr(given, "__name__", type(given).__name__)
    return "its function" if name == "<lambda>" else str(name)
