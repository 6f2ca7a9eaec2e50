"""Keys find their coordinator where Apache Kafka looks for them."""

from __future__ import annotations

import pytest

from moldau.core.java_hash import java_hash, partition_for


@pytest.mark.parametrize(
    ("key", "partition"),
    [("older", 4), ("third", 39), ("fourth", 12)],
)
def test_keys_are_where_apache_kafka_put_them(key: str, partition: int) -> None:
    assert partition_for(key, 50) == partition


def test_the_number_without_an_absolute_value_is_zero() -> None:
    lowest = "polygenelubricants"
    assert java_hash(lowest) == 1 << 31
    assert partition_for(lowest, 50) == 0
