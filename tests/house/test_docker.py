"""The image and the cluster of docker/, as far as they can be checked without pulling an image."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"


def compose() -> dict[str, Any]:
    return dict(YAML(typ="safe").load((DOCKER / "compose.yaml").read_text()))


def services() -> dict[str, dict[str, Any]]:
    return dict(compose()["services"])


def instructions(name: str) -> list[str]:
    """The arguments of every instruction of this name, lines joined."""
    text = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith(name + " ")]


def test_what_the_image_copies_is_in_the_repository_and_not_ignored() -> None:
    let_through = {line[1:] for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")}

    copied = {source for copy in instructions("COPY") for source in copy.split()[:-1]}

    assert set() == {source for source in copied if not (ROOT / source).exists()}
    assert copied == let_through


def test_the_image_installs_what_the_lock_pins_and_nothing_unpinned() -> None:
    installs = [line for line in instructions("RUN") if "pip install" in line]

    assert 2 == len(installs)
    assert "--require-hashes -r requirements.lock" in installs[0]
    assert "--no-deps ." in installs[1]


def test_the_image_runs_as_somebody_who_is_not_root() -> None:
    assert ["samzapy"] == instructions("USER")


def test_every_service_waited_for_and_every_volume_mounted_exists() -> None:
    known = services()
    for name, service in known.items():
        assert set(service.get("depends_on", [])) <= known.keys(), name
        named = {mount.split(":")[0] for mount in service.get("volumes", [])}
        assert named <= compose()["volumes"].keys(), name
    for name, service in known.items():
        waits = service.get("depends_on", {})
        for other, how in waits.items() if isinstance(waits, dict) else ():
            assert how["condition"] != "service_healthy" or "healthcheck" in known[other], f"{name} waits for the health of {other}"


def test_no_two_hosts_share_state() -> None:
    mounts = [mount.split(":")[0] for service in services().values() for mount in service.get("volumes", [])]

    assert sorted(set(mounts)) == sorted(mounts)


def test_every_port_is_open_on_this_machine_only() -> None:
    published = [port for service in services().values() for port in service.get("ports", [])]

    assert published
    assert [] == [port for port in published if not port.startswith("127.0.0.1:")]


def test_every_address_names_a_service() -> None:
    text = (DOCKER / "compose.yaml").read_text() + (DOCKER / "cluster.yaml").read_text()
    named = set(re.findall(r"(?:[/@ \"])([a-z][a-z0-9-]*):(?:9092|9093|7077)\b", text))

    assert {"kafka", "spark-master"} == named
    assert named <= services().keys()
    for name, service in services().items():
        assert name == service.get("hostname", name)


def test_kafka_is_the_version_that_dev_kafka_starts() -> None:
    from samzapy.dev.jars import KAFKA_VERSION

    images = {service["image"] for service in services().values() if "kafka" in service["image"]}
    assert {f"apache/kafka:{KAFKA_VERSION}"} == images


def test_the_spark_master_takes_nothing_from_strangers() -> None:
    from samzapy.dev.spark_settings import MASTER_SETTINGS

    options = services()["spark-master"]["environment"]["SPARK_MASTER_OPTS"].split()
    for key in ("spark.master.rest.enabled", "spark.ui.killEnabled", "spark.master.ui.decommission.allow.mode"):
        assert f"-D{key}={MASTER_SETTINGS[key]}" in options


def test_images_are_named_by_their_whole_version() -> None:
    bases = [line.split(":", 1)[1] for line in instructions("ARG") if line.startswith("PYTHON=")]
    tags = [*bases, *(s["image"].split(":")[1] for s in services().values() if not s["image"].startswith("samzapy:"))]

    assert len(tags) > 1
    assert [] == [tag for tag in tags if not re.match(r"\d+\.\d+\.\d+(-|$)", tag)]
    assert ["${PYTHON}"] == instructions("FROM"), "so that a build can name it by digest"


def test_the_driver_runs_a_job_that_is_valid_there_and_fits_the_cluster() -> None:
    from samzapy.config.load import load_job

    samzapy, run, job, option, overlay = services()["driver"]["command"]
    assert ("samzapy", "run", "-f") == (samzapy, run, option)

    settings = load_job([ROOT / job, ROOT / overlay], []).settings

    cores = sum(int(s["command"][s["command"].index("--cores") + 1]) for s in services().values() if "--cores" in s.get("command", []))
    assert "spark://spark-master:7077" == settings.spark.master
    assert settings.containers.count <= cores
    created = services()["topics"]["command"][0]
    for stream in (*settings.inputs, *settings.outputs):
        assert stream.topic in created


def test_compose_accepts_the_file() -> None:
    if shutil.which("docker") is None or subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("docker compose is not installed")

    answer = subprocess.run(
        ["docker", "compose", "-f", DOCKER / "compose.yaml", "config", "--quiet"], capture_output=True, text=True, check=False
    )

    assert 0 == answer.returncode, answer.stderr
