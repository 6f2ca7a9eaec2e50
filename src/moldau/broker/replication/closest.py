"""Which replica a consumer should read from (KIP-392): the closest one, by racks. Start at `ReplicaSelector`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moldau.broker.context import Broker
    from moldau.broker.partition import Partition

__all__ = ["RACK_AWARE", "ReplicaSelector", "closest"]

RACK_AWARE: Final = ("org.apache.kafka.common.replica.RackAwareReplicaSelector", "RackAwareReplicaSelector")
"""The names of the one selector there is, in `replica.selector.class`."""
STAY: Final = -1


def closest(leader: int, rack: str, racks: Mapping[int, str | None], end_offsets: Mapping[int, int]) -> int:
    """The follower to read from, or -1 to stay with the leader; `end_offsets` are those that have the wanted offset."""
    if racks.get(leader) == rack:
        return STAY
    near = [node_id for node_id in end_offsets if racks.get(node_id) == rack]
    return max(near, key=lambda node_id: (end_offsets[node_id], -node_id), default=STAY)


class ReplicaSelector:
    """For one consumer's fetch, on the leader."""

    def __init__(self, broker: Broker, rack: str) -> None:
        self._rack = rack
        self._leader = broker.node_id
        self._racks = {node_id: one.rack for node_id, one in broker.image.brokers.items()}

    def choose(self, partition: Partition, offset: int) -> int:
        """Another replica that has this offset and is closer; -1 if there is none."""
        leading = partition.leading
        if leading is None or not partition.log.log_start_offset <= offset <= partition.log.high_watermark:
            return STAY
        ends = {one: leading.end_offset_of(one) for one in leading.isr if one != self._leader}
        has_it = {one: end for one, end in ends.items() if end >= offset}
        return closest(self._leader, self._rack, self._racks, has_it)
