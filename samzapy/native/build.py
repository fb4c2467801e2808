"""Compile hot_path.c for this Python, beside its source: `python -m samzapy.native.build`. Also called when samzapy is installed (hatch_build.py).

Only the C compiler that Python itself names is used, and Python's own header files. Without them samzapy runs on its Python functions.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

COMPILE_S = 300


def build(source: Path, fingerprint: str, more: Sequence[str] = ()) -> tuple[Path | None, str]:
    """The native module, beside `source`; or None and why there is none. `more`: options of the compiler."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        return None, f"there is no C compiler ({compiler[0]})"
    headers = sysconfig.get_path("include")
    if not (Path(headers) / "Python.h").is_file():
        return None, f"{headers} has no Python.h: on Debian, install python3-dev"
    target = source.with_name("_hot_path" + (sysconfig.get_config_var("EXT_SUFFIX") or ".so"))
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:  # on the same disk: another process sees the old file or the new one
        made = Path(folder) / target.name
        options = ["-O3", "-fPIC", "-shared", "-fwrapv", "-fno-strict-aliasing", "-fvisibility=hidden", f'-DSOURCE="{fingerprint}"', f"-I{headers}", *more]
        if sys.platform == "darwin":
            options += ["-undefined", "dynamic_lookup"]
        try:
            done = subprocess.run(
                [*compiler, *options, str(source), "-o", str(made)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=COMPILE_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, f"{compiler[0]} failed: {error}"
        if done.returncode:
            return None, f"{compiler[0]} failed:\n{done.stderr.strip()[-2000:]}"
        made.replace(target)
    return target, ""


if __name__ == "__main__":
    from samzapy.native.source import SOURCE, fingerprint

    found, why = build(SOURCE, fingerprint())
    if found is None:
        sys.exit(f"samzapy's native part was not built: {why}. samzapy runs without it, more slowly.")
    print(f"compiled {found.name}")  # noqa: T201
