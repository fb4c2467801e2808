"""What runs for each record, in C: `hot_path.c`. Each piece stands for a Python function, which stays the one complete definition, and does only
the common case. Where no C compiler was found when samzapy was installed, the Python functions run: the results are the same, a job needs more
processor time per record.

`SAMZAPY_NATIVE=0` in the environment switches the native part off.
"""

from __future__ import annotations

import os
from typing import Any

from samzapy.native.source import fingerprint

SWITCH = "SAMZAPY_NATIVE"


def _loaded() -> tuple[Any, str]:
    """The native module, or None and why it is not used."""
    if os.environ.get(SWITCH) == "0":
        return None, f"{SWITCH}=0"
    try:
        from samzapy.native import _hot_path  # type: ignore[attr-defined]
    except ImportError:
        return None, "it was not built for this Python: `python -m samzapy.native.build` does that, and needs a C compiler"
    if fingerprint() != _hot_path.SOURCE:
        return None, "it was built from another version of its source: run `python -m samzapy.native.build`"
    return _hot_path, ""


# hot_path: the module, or None. why_not: in words, where it is None.
hot_path, why_not = _loaded()
