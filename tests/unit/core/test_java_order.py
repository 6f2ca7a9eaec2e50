"""Java's order of hash map keys, which people's notes of describe lines contain."""

from __future__ import annotations

from moldau.core.java_hash import java_hash
from moldau.core.java_order import java_hash_order


def test_the_hash_of_a_string_is_javas() -> None:
    assert java_hash("") == 0
    assert java_hash("a") == 97
    assert java_hash("hello") == 99162322


def test_configs_stand_in_the_order_of_the_training_notes() -> None:
    assert java_hash_order(["cleanup.policy", "min.cleanable.dirty.ratio", "segment.ms"]) == [
        "cleanup.policy",
        "segment.ms",
        "min.cleanable.dirty.ratio",
    ]
    assert java_hash_order(["cleanup.policy", "compression.type", "segment.bytes"]) == [
        "compression.type",
        "cleanup.policy",
        "segment.bytes",
    ]


def test_many_keys_spread_over_more_buckets() -> None:
    keys = [f"k{number}" for number in range(13)]
    assert sorted(java_hash_order(keys)) == sorted(keys)
