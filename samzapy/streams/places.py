"""Where in the user's program an operator was written, and the errors that say so."""

from __future__ import annotations

import sys
from pathlib import Path

from samzapy.api.errors import ConfigurationError

HERE, OURS = str(Path(__file__).parent), str(Path(__file__).parents[1])


def place() -> str:
    """`file.py:14`: the innermost line that is being executed outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def refused(message: str, remedy: str = "", where: str = "") -> ConfigurationError:
    """The refusal of a line of the program, with its place."""
    return ConfigurationError(f"{where or place()}: {message}.", remedy)
