"""The repository as a whole: what may not be in it, and what its pages promise."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.source import text_of, tree_of

ROOT = Path(__file__).parents[2]
MAKE_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def lines_with(pattern: str, files: list[Path]) -> list[str]:
    found = []
    for path in files:
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if re.search(pattern, line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    return found


def test_no_package_registry_is_named() -> None:
    hosts = ["py" + "pi.org", "python" + "hosted.org", "maven" + ".org", "maven" + ".apache.org", "repo1" + ".", "index" + "-url="]

    assert [] == lines_with("|".join(map(re.escape, hosts)), tracked())


def test_no_path_of_somebodys_machine_is_written_down() -> None:
    assert [] == lines_with(r"(?<![\w.$}/-])/(home|root|Users|work|workspace)/\w", tracked())


def test_no_mark_of_a_merge_is_left() -> None:
    assert [] == lines_with("^(<{7}|={7}|>{7})( |$)", [path for path in tracked() if path.suffix not in {".txt", ".jsonl"}])


def test_the_locks_hold_versions_and_hashes_only() -> None:
    for name in ("requirements.lock", "requirements-dev.lock", "requirements-java.lock"):
        for line in (ROOT / name).read_text().splitlines():
            assert re.fullmatch(r"[a-z0-9-]+==[\w.]+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), f"{name}: {line}"


# Which groups of pyproject.toml a lock answers, beside the project's own requirements and the extra `spark`.
LOCKS = {"requirements.lock": ("base",), "requirements-dev.lock": ("base", "dev")}


def asked_for(lock: str) -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    own, extras, groups = project["project"]["dependencies"], project["project"]["optional-dependencies"], project["dependency-groups"]
    return [Requirement(line) for line in [*own, *extras["spark"], *chain(*(groups[name] for name in LOCKS[lock]))]]


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_pins_everything_that_is_asked_for(lock: str) -> None:
    assert set() == {canonicalize_name(r.name) for r in asked_for(lock)} - pins(lock).keys()


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_pins_nothing_that_nobody_asks_for(lock: str) -> None:
    """Of every pinned package there is a way to it from a requirement of pyproject.toml, by what the installed packages require."""
    wanted, waiting = set[str](), asked_for(lock)
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name in wanted and not one.extras:
            continue
        wanted.add(name)
        try:
            needs = [Requirement(line) for line in importlib.metadata.requires(name) or ()]
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform
        waiting += [r for r in needs if r.marker is None or any(r.marker.evaluate({"extra": extra}) for extra in ("", *one.extras))]

    assert set() == pins(lock).keys() - wanted


def test_tests_run_with_the_versions_that_a_job_runs_with() -> None:
    assert pins("requirements.lock").items() <= pins("requirements-dev.lock").items()


def test_what_is_asked_for_is_imported() -> None:
    """Each requirement of samzapy's own, and of each extra, is imported somewhere in it, or its files are looked for by its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {canonicalize_name(Requirement(r).name) for r in [*project["dependencies"], *chain(*project["optional-dependencies"].values())]}
    code = [path.read_text() for path in tracked() if path.suffix == ".py" and path.is_relative_to(ROOT / "samzapy")]
    roots = {root for text in code for root in re.findall(r"(?:^\s*(?:from|import) |find_spec\(\")(\w+)", text, re.MULTILINE)}
    names = importlib.metadata.packages_distributions()

    assert set() == asked - {canonicalize_name(name) for root in roots for name in names.get(root, [root])}


def test_every_room_is_a_package() -> None:
    """A directory without `__init__.py` is passed over by import-linter and by the wheel."""
    rooms = {path.parent for path in tracked() if path.suffix == ".py" and path.is_relative_to(ROOT / "samzapy")}

    assert set() == {str(room.relative_to(ROOT)) for room in rooms if not (room / "__init__.py").is_file()}


def test_every_module_opens_with_what_it_is_for() -> None:
    modules = [path for path in tracked() if path.suffix == ".py" and path.is_relative_to(ROOT / "samzapy")]

    silent = [
        str(path.relative_to(ROOT)) for path in modules if text_of(path).strip() and not ast.get_docstring(tree_of(path))
    ]
    assert [] == silent


def test_what_only_tests_use_is_with_the_tests() -> None:
    """Every module of samzapy is named in another one: what nothing else uses belongs into `tests`."""
    modules = {path: path.read_text() for path in tracked() if path.suffix == ".py" and path.is_relative_to(ROOT / "samzapy")}
    entry_points = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]")[2].partition("\n# --")[0]

    def is_used(path: Path) -> bool:
        room, name = ".".join(path.relative_to(ROOT).parent.parts), path.stem
        word = re.compile(rf"{room}.{name}\b|from {room} import [^\n]*\b{name}\b|\"{name}[\":]")
        return any(word.search(text) for other, text in {**modules, ROOT / "pyproject.toml": entry_points}.items() if other != path)

    unused = [str(path.relative_to(ROOT)) for path in modules if path.stem not in ("__init__", "__main__") and not is_used(path)]
    assert [] == unused


def test_no_test_sleeps() -> None:
    tests = [path for path in tracked() if path.suffix == ".py" and path.is_relative_to(ROOT / "tests")]

    assert [] == lines_with(r"\btime\.sleep\(|\bfrom time import .*\bsleep\b", [path for path in tests if path != Path(__file__)])


def test_the_readme_names_only_targets_that_the_makefile_has() -> None:
    targets = set(MAKE_TARGET.findall((ROOT / "Makefile").read_text()))
    named = set(re.findall(r"(?:^|`)\s*make ([a-z][a-z-]*)", (ROOT / "README.md").read_text(), re.MULTILINE))

    assert {"demo", "test"} <= named
    assert set() == named - targets


def test_ci_does_what_a_developer_does() -> None:
    script = ROOT / ".ci" / "run"

    assert script.stat().st_mode & 0o111
    assert "make test" in script.read_text().splitlines()
