"""What metrics tell of a cluster: replication, elections and the quorum. Start at `ClusterFigures`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from moldau.broker.partition import Partition

__all__ = ["ClusterFigures", "QuorumFigures", "ReplicationFigures"]


class ReplicationFigures(NamedTuple):
    isr_shrinks: int
    isr_expands: int
    failed_isr_updates: int
    lags: Sequence[tuple[Partition, int]]
    """How far each partition that is followed here is behind the leader's high watermark."""


class QuorumFigures(NamedTuple):
    state: str
    """By Kafka's names: leader, follower, observer, ..."""
    leader_id: int
    epoch: int
    high_watermark: int
    end_offset: int
    end_epoch: int
    voters: int
    observers: int
    """Known to the leader only."""
    elections: int
    """Leaders of partitions elected here, by the active controller."""
    unclean_elections: int
    silent_brokers: int
    """Brokers fenced here because they fell silent."""
    terms: int
    """How often a controller was seen to take over."""


class ClusterFigures(NamedTuple):
    replication: Callable[[], ReplicationFigures]
    quorum: Callable[[], QuorumFigures]
