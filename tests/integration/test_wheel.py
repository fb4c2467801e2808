"""A wheel is built, installed into an empty environment, and the README's steps are run from there: nothing of this checkout is importable."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.jobs.test_readme import FILES

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(1800)]
ROOT = Path(__file__).parents[2]
VISITS = b"ada\t/home\nbob\t/home\nada\t/cart\n"


def test_the_readmes_steps_run_from_a_wheel_in_an_empty_environment(kafka: str, tmp_path: Path) -> None:
    dist, home, job = tmp_path / "dist", tmp_path / "venv", tmp_path / "job"
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(dist), str(ROOT)], check=True, timeout=380)
    (wheel,) = dist.glob("samzapy-*.whl")
    venv.create(home)
    job.mkdir()
    for name, text in FILES.items():
        (job / name).write_text(text)
    environment = {"PATH": f"{home / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "KAFKA_BOOTSTRAP": kafka, "LANG": "C.UTF-8"}

    def run(*words: str, given: bytes = b"") -> str:
        done = subprocess.run([home / "bin" / words[0], *words[1:]], cwd=job, env=environment, input=given, capture_output=True, timeout=380)
        assert done.returncode == 0, (words, done.stdout.decode()[-3000:], done.stderr.decode()[-3000:])
        return (done.stdout or done.stderr).decode()

    install = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install", "--quiet", str(wheel), "pytest"]
    subprocess.run(install, check=True, timeout=800)
    assert str(home) in run("python", "-c", "import samzapy; print(samzapy.__file__)")
    assert "1 passed" in run("pytest", "-q", "test_visits.py")
    assert "valid" in run("samzapy", "validate", "visits.yaml")
    run("samzapy", "send", "visits", "--key", "--partitions", "4", given=VISITS)
    assert "visit-counts" in run("samzapy", "topics", "visits.yaml", "--create")
    run("samzapy", "run", "visits.yaml", "--local", "--until-end")
    scanned = run("samzapy", "state", "scan", "visits.yaml", "counts")
    assert {("ada", "2"), ("bob", "1")} == {tuple(line.split("\t")[:2]) for line in scanned.splitlines()}  # type: ignore[misc]
    assert run("samzapy", "state", "get", "visits.yaml", "counts", "ada").startswith("ada\t2")
    run("samzapy", "init", "my-job")
    assert " passed" in run("pytest", "-q", "my-job")
