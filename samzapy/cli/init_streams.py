"""The files that `samzapy init --streams` writes: a program of streams, its job file, its test, and how to see it work."""

from __future__ import annotations

PROGRAM = '''"""Counts the visits of each user, and tells which users are not known."""

from dataclasses import dataclass

from samzapy.streams import App, agg


@dataclass
class Visit:
    page: str
    seconds: float = 0.0


app = App()
visits = app.stream("{job}-visits", key=str, value=Visit)
users = app.table("{job}-users", key=str, value=str, broadcast=True)

(visits
    .aggregate("totals", visits=agg.count(), seconds=agg.sum(lambda visit: visit.seconds), last=agg.last(lambda visit: visit.page))
    .to("{job}-totals", partitions=2))

known, unknown = visits.lookup(users).branch(lambda pair: pair[1] is not None)
known.map(lambda pair, key: {{"user": key, "name": pair[1], "page": pair[0].page}}).to("{job}-known", partitions=2)
unknown.map(lambda pair: pair[0], value=Visit).to("{job}-unknown", partitions=2)
'''

JOB = """# All keys: `samzapy schema`, or the reference of samzapy. Inputs, outputs and stores are what the program says.
job: {job}
app: {module}:app                         # module:name; this folder is importable
kafka: {{bootstrap.servers: "${{KAFKA_BOOTSTRAP:-localhost:9092}}"}}
"""

TEST = """from pathlib import Path

import {module}
from samzapy.testing import Harness

JOB = Path(__file__).with_name("{module}.yaml")


def test_totals_go_on_after_a_crash():
    with Harness(JOB) as h:
        h.send("{job}-visits", {module}.Visit("/a", 1.5), key="ada")
        h.run()
        h.crash()
        h.send("{job}-visits", {module}.Visit("/b", 2.0), key="ada")
        h.run()
        assert h.output("{job}-totals") == [
            ("ada", {{"visits": 1, "seconds": 1.5, "last": "/a"}}),
            ("ada", {{"visits": 2, "seconds": 3.5, "last": "/b"}}),
        ]


def test_a_visit_is_known_by_the_users_of_the_moment():
    with Harness(JOB, tasks=2) as h:
        h.send("{job}-users", "Ada L.", key="ada")
        h.send("{job}-visits", {module}.Visit("/a"), key="ada")
        h.send("{job}-visits", {module}.Visit("/b"), key="bob")
        h.run()
        assert h.output("{job}-known") == [("ada", {{"user": "ada", "name": "Ada L.", "page": "/a"}})]
        assert h.output("{job}-unknown") == [("bob", {module}.Visit("/b"))]
"""

README = """# {job}

`{module}.py` is the program, `{module}.yaml` the job, `test_{module}.py` its tests: `pytest` runs them on an in-memory Kafka.
`samzapy plan {module}.yaml --graph text` shows the program as a tree, `--code` what runs.

To see it work, with a Kafka (`samzapy dev kafka start` gives you one on localhost:9092; `KAFKA_BOOTSTRAP=HOST:PORT` names another):

```sh
printf 'ada\\tAda L.\\n' | samzapy send {job}-users --key --partitions 2
printf 'ada\\t{{"page": "/a", "seconds": 1.5}}\\nbob\\t{{"page": "/b"}}\\n' | samzapy send {job}-visits --key --partitions 2
samzapy topics {module}.yaml --create && samzapy run {module}.yaml --local --until-end
samzapy tail {job}-totals --from-beginning
samzapy tail {job}-known --from-beginning
```

Without `--until-end` it runs until Ctrl-C, without `--local` on Spark; `samzapy status {module}.yaml` shows how many records each operator received and passed on.
"""
