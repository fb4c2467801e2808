"""Which tests stay together where tests run in several processes (`pytest -n 5`).

Everything else is given out test by test, in the order of collection. What is in one group runs in one process, so what its module starts
(Spark sessions, a cluster, a secured broker, a type checker) is started once, and the source, which some read and parse, is read once.
pytest-xdist's own `--dist loadgroup` cannot be used: with pytest 9.2 it groups nothing, and says nothing.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "tests/house/test_errors_table.py": "source",
    "tests/house/test_protocol.py": "source",
    "tests/house/test_reliability.py": "source",
    "tests/house/test_remedies.py": "source",
    "tests/house/test_tree.py": "source",
    "tests/integration/test_spark_launcher.py": "spark",
    "tests/integration/test_spark_cluster.py": "spark",
    "tests/integration/test_launchers_stay_flat.py": "spark",
    "tests/integration/test_secured_kafka.py": "secured",
    "tests/integration/test_other_logins.py": "logins",
    "tests/unit/test_failpoints.py": "source",
    "tests/unit/test_public_names.py": "types",
    "tests/recovery/test_a_broker_is_down.py": "three brokers",
    "tests/recovery/test_hosts.py": "three hosts",
    "tests/recovery/test_recorded.py": "recorded",
    "tests/recovery/test_scale.py": "three hosts",
    "tests/recovery/test_standby.py": "three hosts",
}


def group_of(nodeid: str) -> str:
    """The group of a test; its own id if it is in none."""
    return GROUPS.get(nodeid.partition("::")[0], nodeid)


class SideBySide(LoadScopeScheduling):
    """Groups first, each to one process; then test by test."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
