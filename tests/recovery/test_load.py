"""The load is the same for the same seed, reaches every partition, and is all delivered when `stop` returns."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.broker import create_topic, read_all
from tests.integration.processes import until
from tests.recovery.load import Load, records


def test_the_same_seed_makes_the_same_records() -> None:
    first, again, other = (list(islice(records(seed, keys=10, partitions=4), 1000)) for seed in (7, 7, 8))

    assert first == again
    assert first != other


def test_a_key_belongs_to_one_partition_and_every_partition_has_keys() -> None:
    made = list(islice(records(1, keys=2, partitions=6), 2000))
    homes = {(r.key, r.partition) for r in made if r.key is not None}

    assert 6 == len(homes) == len({key for key, _ in homes})
    assert {0, 1, 2, 3, 4, 5} == {r.partition for r in made}
    assert {True} == {any(r.key is None for r in made), any(r.value is None for r in made)}


@pytest.mark.kafka
def test_everything_is_delivered_in_order_when_stop_returns(kafka: str, unique: str) -> None:
    create_topic(kafka, unique, 3)
    with Load(kafka, unique, partitions=3, rate=2000, keys=30, seed=5) as load:
        assert until(lambda: sum(load.sent.values()) >= 500, "500 records")
        sent = load.stop()
    found = read_all(kafka, unique)
    expected = list(islice(records(5, keys=30, partitions=3), sum(sent.values())))

    assert sent == {p: len([r for r in found if r.partition == p]) for p in sent}
    for partition in range(3):
        assert [(r.key, r.value) for r in expected if r.partition == partition] == [
            (r.key, r.value) for r in found if r.partition == partition
        ]
