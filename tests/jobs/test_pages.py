"""The pages below docs and the tutorial: their files are run, their commands are commands, their links lead somewhere, and README is short."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from samzapy.config.load import load_job
from tests.commands import parse

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "jobs" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FILE = re.compile(r"^`(?P<name>[\w.-]+)`[^\n]*:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
IN_TEXT = re.compile(r"`(samzapy [a-z][^`\n]*)`")
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")
LONGEST_README = 150
LONGEST_JOB = 40  # lines of a task with its job file


def files_of(page: Path) -> dict[str, str]:
    return {found["name"]: found["text"] for found in FILE.finditer(page.read_text())}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


WITH_FILES = [page for page in PAGES if files_of(page)]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= LONGEST_README


def test_there_are_jobs_in_the_pages() -> None:
    assert len(WITH_FILES) >= 6


def test_each_job_of_a_page_is_valid_and_passes_its_test(tmp_path: Path) -> None:
    """In one process: the modules of different pages have different names."""
    for page in WITH_FILES:
        folder = tmp_path / page.stem
        folder.mkdir()
        for name, text in files_of(page).items():
            (folder / name).write_text(text)
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef _here(request, monkeypatch):\n    monkeypatch.chdir(request.path.parent)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "--import-mode=importlib", "--rootdir", str(tmp_path), "."]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, env=environment)
    tests = sum(name.startswith("test_") for page in WITH_FILES for name in files_of(page))
    assert re.search(rf"^{tests} passed", done.stdout, re.MULTILINE), done.stdout + done.stderr


@pytest.mark.parametrize("page", WITH_FILES, ids=name_of)
def test_each_job_file_is_valid_and_short(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = files_of(page)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    job_files = [name for name in files if name.endswith(".yaml")]
    assert job_files
    for name in job_files:
        load_job([tmp_path / name], [], {})
    code = [text for name, text in files.items() if not name.startswith("test_")]
    assert sum(len([line for line in text.splitlines() if line.strip()]) for text in code) <= LONGEST_JOB * len(job_files)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_command_is_one(page: Path) -> None:
    text = page.read_text()
    lines = [line.split("   #")[0].strip() for found in SHELL.finditer(text) for line in found["text"].splitlines()]
    for command in {*IN_TEXT.findall(text), *(line for line in lines if line.startswith("samzapy "))}:
        words = [word.strip("\"'") for word in re.split(r"\s+", command.replace('"convert string"', "x"))]
        assert parse(words[1:]), command


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [] == [link for link in links if not (page.parent / link).exists()]


def test_each_page_is_in_the_site() -> None:
    listed = set(re.findall(r"^(?:\.\./)?([\w./-]+)$", (ROOT / "docs" / "site.md").read_text(), re.MULTILINE))
    there = {page.relative_to(ROOT / "docs").with_suffix("").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert {"site"} == there - listed


@pytest.mark.prove
def test_the_site_is_built_with_every_page_a_search_and_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(ROOT / "docs" / "build.py"), str(tmp_path)], capture_output=True, text=True, timeout=380)
    assert (0, "") == (done.returncode, done.stderr)
    site = tmp_path / "site"
    for page in PAGES:
        assert (site / page.relative_to(ROOT).with_suffix(".html")).is_file()
    assert "class samzapy.api.task.StreamTask" in re.sub("<[^>]+>", "", (site / "docs" / "api.html").read_text()).replace("\n", " ")
    assert (site / "searchindex.js").stat().st_size > 10_000
    for page in (site / "docs").rglob("*.html"):
        assert [] == re.findall(r"(?:src|<link[^>]*href)=\"https?:[^\"]*", page.read_text())
