"""The configuration as the interface tells it: each key with its value and where that comes from, and no secret anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from samzapy.clock import SystemClock
from samzapy.config import secrets
from samzapy.config.load import LoadedJob, load_job
from samzapy.model.run_record import RunRecord
from samzapy.web.about import about_of
from samzapy.web.app import web_app
from samzapy.web.routes import TABLE
from tests.page.staged import OPERATE, TOKEN, J, Stage, contents, get, live

JOB = """job: visits
task: visits:VisitCounter
inputs: [{topic: visits, key: string, value: json}]
outputs: [{topic: visit-counts, key: string, value: integer}]
stores: {counts: {key: string, value: integer}}
commit: {interval: 500ms}
on_error: {then: dead_letter}
containers: {count: 2}
kafka:
  bootstrap.servers: h:1
  sasl.mechanism: PLAIN
  sasl.username: somebody
  sasl.password: planted-1-in-the-file
  ssl.key.password: ${PLANTED_2}
  producer: {ssl.keystore.password: planted-3-of-the-producer}
  consumer: {sasl.oauthbearer.client.secret: "${PLANTED_4}"}
params:
  out: visit-counts
  api_token: planted-5-in-the-file
  deep: [{db_password: planted-6-in-a-list}]
  header: Token planted-5-in-the-file
  hooks: {access_key: "prefix-${PLANTED_7}"}
  private.key: planted-8-in-the-file
spark: {conf: {spark.hadoop.fs.s3a.secret.key: planted-9-of-spark}}
"""
ENVIRONMENT = {f"PLANTED_{n}": f"planted-{n}-of-the-environment" for n in (2, 4, 7)}
PLANTED = [f"planted-{n}" for n in range(1, 10)]
SHOWN = [
    ("job", "visits", "visits.yaml:1"), ("task", "visits:VisitCounter", "visits.yaml:2"),
    ("inputs.0.topic", "visits", "visits.yaml:3"), ("inputs.0.key", "string", "visits.yaml:3"), ("inputs.0.value", "json", "visits.yaml:3"),
    ("outputs.0.topic", "visit-counts", "visits.yaml:4"), ("stores.counts.value", "integer", "visits.yaml:5"),
    ("commit.interval", "700ms", "--set:1"), ("on_error.then", "dead_letter", "visits.yaml:7"), ("containers.count", "2", "visits.yaml:8"),
    ("kafka.bootstrap.servers", "h:1", "visits.yaml:10"), ("kafka.sasl.mechanism", "PLAIN", "visits.yaml:11"),
    ("kafka.sasl.username", "somebody", "visits.yaml:12"), ("kafka.sasl.password", "***", "visits.yaml:13"),
    ("kafka.ssl.key.password", "${PLANTED_2}", "visits.yaml:14"), ("kafka.producer.ssl.keystore.password", "***", "visits.yaml:15"),
    ("params.out", "visit-counts", "visits.yaml:18"), ("params.api_token", "***", "visits.yaml:19"),
    ("params.header", "Token ***", "visits.yaml:21"), ("containers.standby", "0", "default"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_kept_out", set())


def loaded(folder: Path, job: str, *sets: str) -> LoadedJob:
    (folder / "visits.yaml").write_text(job)
    return load_job([folder / "visits.yaml"], sets, ENVIRONMENT)


def test_twenty_keys_are_told_with_their_origin_and_of_nine_secrets_nothing_is_told_anywhere(tmp_path: Path) -> None:
    job = loaded(tmp_path, JOB, "commit.interval=700ms")
    changed = loaded(tmp_path, JOB.replace("count: 2", "count: 3").replace("somebody", "anybody").replace("planted-5", "planted-5-renewed"),
                     "commit.interval=800ms")  # fmt: skip
    stage = Stage(looks_inside=True)
    stage.about = about_of(job)
    stage.beat(lag=3)
    stage.set_aside(2, "ValueError: bad price '1,50'")
    stage.ran("before", 3, config=about_of(changed)["config"])
    facts, made = live(stage), contents(stage, job.settings)
    run = RunRecord(run_id="run-1", began_ms=SystemClock().now_ms(), told_ms=0, started_by="ann@here", how="--local", config=stage.about["config"])
    made.runs._this = lambda: run
    made.runs._file = lambda: about_of(changed)["config"]
    client = TestClient(web_app(facts, facts, made, TOKEN, inside=stage.looking()), base_url="http://127.0.0.1:1")
    rows = [(row["key"], row["value"], row["from"]) for row in get(client, f"{J}/config")["items"]]
    assert 20 == len(SHOWN) == len([row for row in SHOWN if row in rows]), [row for row in SHOWN if row not in rows]
    assert len(rows) == len({key for key, _, _ in rows}), "each key once"

    bodies: dict[str, str] = {}
    names: dict[str, Any] = {"job": "visits", "id": "1", "task": "Partition 1", "container": "1", "which": "0.0", "topic": "visits", "run": "run-1"}
    for path in [*(row.path for row in TABLE if row.method == "GET"), f"{J}/runs/before", "/metrics", "/v1/openapi.json", "/api/v1/status", "/api/v1/job-model"]:
        answer = client.get(path.format(**names), headers={"Authorization": f"Bearer {OPERATE}"})
        assert 200 == answer.status_code, (path, answer.text)
        bodies[path] = answer.text
    found = [(path, secret) for path, text in bodies.items() for secret in PLANTED if secret in text]
    assert [] == found
    assert 2 <= sum("kafka.sasl.password" in text for text in bodies.values()), "they are of this job"

    told = get(client, f"{J}/runs/run-1?against=before")["changes"]
    assert {"commit.interval", "containers.count", "kafka.sasl.username"} == {row["key"] for row in told}
    assert 3 == len(told), "a secret's value is not told, so neither that it is another"
    stage.close()
