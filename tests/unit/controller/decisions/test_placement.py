"""Replica placement: spread over racks, led by the living, fair over many partitions."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.controller.decisions.placement import InvalidReplicationFactorError, UsableBroker, place


def test_one_broker_holds_everything() -> None:
    assert place([UsableBroker(7)], partitions=3, replication_factor=1, random=Random(1)) == [[7], [7], [7]]


def test_more_replicas_than_brokers_is_refused() -> None:
    with pytest.raises(InvalidReplicationFactorError, match="available brokers: 1"):
        place([UsableBroker(1)], partitions=1, replication_factor=2, random=Random(1))


def test_a_cluster_of_fenced_brokers_takes_no_partitions() -> None:
    with pytest.raises(InvalidReplicationFactorError, match="fenced"):
        place([UsableBroker(1, is_fenced=True)], partitions=1, replication_factor=1, random=Random(1))


def test_leaders_are_shared_evenly() -> None:
    brokers = [UsableBroker(node_id) for node_id in range(3)]
    leaders = Counter(replicas[0] for replicas in place(brokers, partitions=30, replication_factor=2, random=Random(3)))
    assert leaders == {0: 10, 1: 10, 2: 10}


brokers_in_racks = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.booleans()), min_size=1, max_size=9).map(
    lambda rows: [UsableBroker(node_id, rack, fenced) for node_id, (rack, fenced) in enumerate(rows)]
)


@given(brokers_in_racks, st.integers(1, 12), st.integers(0, 2**32), st.data())
def test_replicas_are_distinct_led_by_the_living_and_spread_over_racks(
    brokers: list[UsableBroker], partitions: int, seed: int, data: st.DataObject
) -> None:
    alive = {broker.node_id: broker for broker in brokers if not broker.is_fenced}
    if not alive:
        return
    replication_factor = data.draw(st.integers(1, len(brokers)))
    racks_alive = {broker.rack for broker in alive.values()}
    for replicas in place(brokers, partitions=partitions, replication_factor=replication_factor, random=Random(seed)):
        assert len(set(replicas)) == len(replicas) == replication_factor
        assert replicas[0] in alive
        fenced = [node_id for node_id in replicas if node_id not in alive]
        assert len(fenced) == max(0, replication_factor - len(alive))
        used = {alive[node_id].rack for node_id in replicas if node_id in alive}
        assert len(used) == min(len(racks_alive), replication_factor - len(fenced))
