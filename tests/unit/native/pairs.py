"""The native functions beside the Python functions that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from samzapy import native

needs_native = pytest.mark.skipif(native.hot_path is None, reason=f"the native part is not used: {native.why_not}")


def outcome(call: Callable[[], Any]) -> tuple[Any, ...]:
    """What a call returned, with its type, or raised."""
    try:
        returned = call()
    except Exception as error:
        return type(error), str(error), type(error.__cause__)
    return type(returned), repr(returned)


def in_python(method: Any) -> Callable[..., Any]:
    """The Python function that a native one stands for."""
    found: Callable[..., Any] = method.__wrapped__
    return found
