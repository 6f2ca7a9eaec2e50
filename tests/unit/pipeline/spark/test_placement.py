from __future__ import annotations

from collections import Counter

import pytest

from moldau.pipeline.spark.placement import shuffle_partition, slots


@pytest.mark.parametrize("shuffle_partitions", [1, 2, 3, 8])
def test_units_are_spread_evenly(shuffle_partitions: int) -> None:
    found = slots(24, shuffle_partitions)
    shares = Counter(shuffle_partition(slot, shuffle_partitions) for slot in found)
    assert len(set(found)) == 24
    assert set(shares.values()) == {24 // shuffle_partitions}


def test_more_units_leave_the_slots_of_the_first_ones() -> None:
    assert slots(9, 2)[:4] == slots(4, 2)
