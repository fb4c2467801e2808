"""`make docs`: all pages as a static site, with the reference of the Python API and a search. It needs no network, neither to build nor to read.

    python docs/build.py [FOLDER]     FOLDER: .docs by default; the site is FOLDER/site, and begins at index.html
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("README.md", "docs", "jobs", "config", "samzapy", "tests", "docker")  # the pages, and what they link to
BEGIN = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/site.html"><a href="docs/site.html">samzapy</a>\n'


def build(folder: Path) -> int:
    """Build the site into `folder`/site; the exit code."""
    source, site = folder / "source", folder / "site"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            shutil.copy(ROOT / part, source / part)
    code = sphinx(["-q", "-W", "--keep-going", "-b", "html", "-c", str(ROOT / "docs"), "-d", str(folder / "trees"), str(source), str(site)])
    if code == 0:
        (site / "index.html").write_text(BEGIN)
        sys.stdout.write(f"{site / 'index.html'}\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".docs")))
