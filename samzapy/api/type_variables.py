"""The type variables of keys and values. A class that is named without them has Any for each (type variables with a default: PEP 696)."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)
K_co = TypeVar("K_co", default=Any, covariant=True)
V_co = TypeVar("V_co", default=Any, covariant=True)
Default = TypeVar("Default", default=Any)
