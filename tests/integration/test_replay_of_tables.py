"""`samzapy dlq replay` of a table's record, over real Kafka."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.broker import create_topic, produce, read_all
from tests.command_server import run_samzapy

LIMIT_S = 120
PROGRAM = """
from samzapy.streams import App

app = App()
users = app.table("NAME-users", key=str, value=int)
app.stream("NAME-in", key=str, value=str).lookup(users).map(str, value=str).to("NAME-out", partitions=1)
"""


def test_a_replay_does_not_put_an_old_value_into_a_table(kafka: str, tmp_path: Path, unique: str) -> None:
    name = unique
    users = f"{name}-users"
    for topic in (users, f"{name}-in", f"{name}-out"):
        create_topic(kafka, topic, 1)
    (tmp_path / "table_of_users.py").write_text(PROGRAM.replace("NAME", name))
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps({
        "job": name, "app": "table_of_users:app", "kafka": {"bootstrap.servers": kafka}, "on_error": {"then": "dead_letter"},
        "state": {"dir": str(tmp_path / "state")},
    }))  # fmt: skip

    def samzapy(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = run_samzapy([*arguments], tmp_path, LIMIT_S)
        assert 0 == done.returncode, done.stderr
        return done

    def table() -> str:
        assert 0 == run_samzapy(["run", str(file), "--local", "--until-end"], tmp_path, LIMIT_S).returncode
        return samzapy("state", "scan", str(file), users).stdout

    produce(kafka, users, [(b"ann", b"no number", 0), (b"bob", b"no number", 0)])
    assert "" == table()
    produce(kafka, users, [(b"ann", (7).to_bytes(8, "big"), 0)])
    assert "ann\t7" in table()

    shown, replayed = samzapy("dlq", "replay", str(file), "--all"), samzapy("dlq", "replay", str(file), "--all", "--execute")
    for told in (shown.stderr, replayed.stderr):
        assert f"{users}[0]@0: {users} has a newer record of its key, at offset 2" in told
        assert f"{users}: every reader gets what is sent back, other jobs, too" in told
    assert "1 record sent back" in replayed.stderr
    assert [b"ann", b"bob", b"ann", b"bob"] == [r.key for r in read_all(kafka, users)]
    assert "ann\t7" in table()
    forced = samzapy("dlq", "replay", str(file), f"{users}[0]@0", "--over-newer", "--execute")
    assert "1 record sent back" in forced.stderr
    assert [b"ann", b"bob", b"ann", b"bob", b"ann"] == [r.key for r in read_all(kafka, users)]
