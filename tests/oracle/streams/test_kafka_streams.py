"""Generated topologies make the same of generated inputs in moldau as in Kafka Streams.

A few seeds of every family; `scripts/streams-oracle` runs as many as one likes, and makes a case that differs small.
What may differ, and why, is in differences.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.oracle.streams.comparison import differences, oracle_result
from tests.oracle.streams.families import FAMILIES, draw_case
from tests.oracle.streams.jvm import KafkaStreamsOracle, needs_kafka_streams
from tests.oracle.streams.running import run

pytestmark = pytest.mark.java
SEEDS = 10


@pytest.fixture(scope="module")
def kafka_streams() -> Iterator[KafkaStreamsOracle]:
    needs_kafka_streams()
    with KafkaStreamsOracle() as oracle:
        yield oracle


@pytest.mark.parametrize("family", FAMILIES)
def test_outputs_order_state_and_description_equal_kafka_streams(
    kafka_streams: KafkaStreamsOracle, family: str
) -> None:
    refused = 0
    for seed in range(SEEDS):
        case = draw_case(family, seed)
        kafka_streams.send(case)
        ours = run(case)
        theirs = oracle_result(kafka_streams.receive())
        found = differences(theirs, ours, is_partitioned=case.get("partitions", 1) > 1)
        assert not found, "\n".join([f"{case['id']} differs:", *found])
        refused += theirs.error is not None
    assert refused <= SEEDS // 3, f"{family} draws cases that nobody runs"
