"""A job with a Schema Registry on a real broker, by the real command: a registry that is away at the start, away in between, and what shows the login."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker import admin, create_topic, produce
from tests.integration.processes import until
from tests.registry import Registry

pytestmark = [pytest.mark.kafka, pytest.mark.prove]
LOGIN = "ada:a-long-password"
BUY = {"type": "record", "name": "Buy", "fields": [{"name": "cents", "type": "long"}]}
BUY_2 = {"type": "record", "name": "Buy", "fields": [{"name": "cents", "type": "long"}, {"name": "coupon", "type": "string", "default": ""}]}
TASK = """
from samzapy import StreamTask

class Totals(StreamTask):
    def init(self, context):
        self.totals = context.get_store("totals")

    def process(self, envelope, collector, coordinator):
        total = self.totals.get(envelope.key, {"cents": 0})["cents"] + envelope.message["cents"]
        self.totals.put(envelope.key, {"cents": total})
        collector.send(TOPIC, {"cents": total}, key=envelope.key)
"""


def test_a_job_with_a_registry_waits_for_it_and_counts_each_record_once(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"shop-{secrets.token_hex(4)}"
    buys, totals, file = f"buys-{name}", f"totals-{name}", tmp_path / "shop.yaml"
    (tmp_path / f"task_{name[5:]}.py").write_text(TASK.replace("TOPIC", repr(totals)))
    (tmp_path / "buy.avsc").write_text(json.dumps(BUY))
    create_topic(kafka, buys, 1)
    create_topic(kafka, totals, 1)

    def samzapy(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "samzapy", *words], cwd=tmp_path, capture_output=True, text=True, timeout=120)

    with Registry(LOGIN) as registry:
        monkeypatch.setenv("REGISTRY_LOGIN", LOGIN)
        old, new = registry.add(f"{buys}-value", BUY), registry.add(f"{buys}-value", BUY_2)
        file.write_text(
            json.dumps(
                {
                    "job": name, "task": f"task_{name[5:]}:Totals", "kafka": {"bootstrap.servers": kafka},
                    "schema_registry": {"url": registry.url, "conf": {"basic.auth.user.info": "${REGISTRY_LOGIN}"}, "register": True},
                    "inputs": [{"topic": buys, "key": "string", "value": "registry"}],
                    "outputs": [{"topic": totals, "key": "string", "value": "registry:buy.avsc"}],
                    "stores": {"totals": {"key": "string", "value": "registry:buy.avsc"}},
                    "on_error": {"then": "dead_letter"}, "state": {"dir": str(tmp_path / "state")},
                }
            )
        )  # fmt: skip
        registry.answers = False
        refused = samzapy("run", str(file), "--local", "--until-end")
        assert (4, True) == (refused.returncode, "SZ308" in refused.stderr), refused.stderr
        assert [4, 4] == [samzapy(*words).returncode for words in (("validate", str(file), "--connect"), ("plan", str(file), "--local"))]
        assert [] == [topic for topic in admin(kafka).list_topics(timeout=10).topics if f"{name}_1" in topic or f"{name}-1-" in topic], "it made none"
        registry.answers = True

        produce(kafka, buys, [(b"ada", b"\0" + old.to_bytes(4, "big") + b"\x0a")])
        log = (tmp_path / "log").open("w")
        run = subprocess.Popen([sys.executable, "-m", "samzapy", "run", str(file), "--local"], cwd=tmp_path, stdout=log, stderr=log)
        try:
            seen = lambda: samzapy("tail", totals, "--job", str(file), "--from-beginning").stdout  # noqa: E731
            until(lambda: '{"cents": 5}' in seen(), "the first total")
            registry.answers = False
            produce(kafka, buys, [(b"ada", b"\0" + new.to_bytes(4, "big") + b"\x0c\x02X")])
            until(lambda: "SZ308" in (tmp_path / "log").read_text(), "the outage in the log")
            until(lambda: "the Schema Registry at" in samzapy("status", str(file), "--json").stdout, "the outage in the status")
            assert "{" not in samzapy("dlq", "list", str(file), "--json").stdout
            registry.answers = True
            until(lambda: '{"cents": 11}' in seen(), "the second total")
        finally:
            run.terminate()
            assert run.wait(60) == 0, (tmp_path / "log").read_text()
        assert samzapy("state", "get", str(file), "totals", "ada").stdout.split("\t")[1] == '{"cents": 11}'
        assert [line.split("\t")[-1] for line in seen().splitlines()] == ['{"cents": 5}', '{"cents": 11}']
        said = (tmp_path / "log").read_text() + refused.stderr
        assert "a-long-password" not in said
        assert [line for line in registry.asked if "/versions" in line and line.startswith("POST")].count(f"POST /subjects/{totals}-value/versions") == 1
