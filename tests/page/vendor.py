"""`python -m tests.page.vendor FOLDER`: takes the page's libraries out of npm's packages (`npm pack …` in FOLDER), as they are, but for the
one bare import, so that neither an import map nor a build is needed. The page's tests compare the hashes."""

from __future__ import annotations

import hashlib
import json
import sys
import tarfile
from pathlib import Path

VENDOR = Path(__file__).parents[2] / "samzapy" / "web" / "page" / "vendor"
# package, version, licence, {file in the package: file here}
PACKAGES = (
    ("preact", "11.2.0", "MIT", {"dist/preact.mjs": "preact.js", "hooks/dist/hooks.mjs": "hooks.js", "LICENSE": "preact.LICENSE"}),
    ("htm", "3.1.1", "Apache-2.0", {"dist/htm.module.js": "htm.js", "LICENSE": "htm.LICENSE"}),
    ("uplot", "1.6.32", "MIT", {"dist/uPlot.iife.min.js": "uPlot.js", "dist/uPlot.min.css": "uPlot.css", "LICENSE": "uplot.LICENSE"}),
)


def rewritten(text: str) -> str:
    """With the import of a file, and without the name of a source map that is not here."""
    lines = [line for line in text.splitlines() if not line.startswith("//# sourceMappingURL=")]
    return "\n".join(lines).replace('from"preact"', 'from"./preact.js"') + "\n"


def main(folder: Path) -> None:
    VENDOR.mkdir(parents=True, exist_ok=True)
    made = []
    for name, version, licence, files in PACKAGES:
        with tarfile.open(folder / f"{name}-{version}.tgz") as archive:
            for inside, here in files.items():
                member = archive.extractfile(f"package/{inside}")
                assert member is not None, inside
                (VENDOR / here).write_text(rewritten(member.read().decode()))
        hashes = {here: hashlib.sha256((VENDOR / here).read_bytes()).hexdigest() for here in sorted(files.values())}
        made.append({"name": name, "version": version, "licence": licence, "sha256": hashes})
    (VENDOR / "VENDOR.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
