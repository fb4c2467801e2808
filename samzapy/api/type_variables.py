"""The types of keys and values: each is Any where a class is named without them (PEP 696)."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)
K_co = TypeVar("K_co", default=Any, covariant=True)
V_co = TypeVar("V_co", default=Any, covariant=True)
Default = TypeVar("Default", default=Any)
