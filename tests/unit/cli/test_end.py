"""How the process of a command ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

# What the C library does at its exit is noted by the exit code: 9, if it comes to that. Clients that still have threads then would end by SIGSEGV.
PROGRAM = """
import atexit, ctypes, os, sys
library = ctypes.CDLL(None)
library.__cxa_atexit(library._exit, ctypes.c_void_p(9), None)
atexit.register(os.write, 2, b"cleaned up")
from samzapy.__main__ import main
main()
"""


@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["status", "no-such-file.yaml"], 2)])
def test_a_process_ends_before_the_libraries_in_it_are_taken_down(arguments: list[str], code: int) -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert code == ended.returncode
    assert ended.stderr.endswith("cleaned up")
