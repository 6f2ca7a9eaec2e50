"""Broken replication, to show that the rules of its simulation can fail: each breaks one thing that safety rests on.

A mutant replaces a function of a core, or is a node whose shell does not keep its word. It names the rules that may
catch it; being caught by an exception does not count. Start at `MUTANTS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from moldau.broker.replication import following
from moldau.broker.replication.leading import Leading
from moldau.controller import broker_sessions
from moldau.controller.broker_sessions import BrokerSessions
from moldau.controller.decisions import elections
from moldau.controller.decisions.partition_changes import PartitionDraft
from moldau.controller.image import MetadataImage, TopicImage
from moldau.core.errors import ErrorCode
from moldau.testing.simulation.replica_cluster import ACKNOWLEDGED_STAYS, CALM, ONE_CONTENT, ONE_LEADER, REPLICAS_AGREE
from moldau.testing.simulation.replica_node import Fetch, FetchAnswer, ReplicaNode

__all__ = ["MUTANTS", "Mutant"]

LOSS = frozenset({ACKNOWLEDGED_STAYS, ONE_CONTENT, REPLICAS_AGREE})


@dataclass(frozen=True)
class Mutant:
    name: str
    rules: frozenset[str] = LOSS
    node: type[ReplicaNode] = ReplicaNode
    target: Any = None
    attribute: str = ""
    replacement: Any = None
    first_seed: int = 0
    """Where to begin to look for a run that shows it: some need a rare order of events."""

    @contextmanager
    def broken(self) -> Iterator[None]:
        if self.target is None:
            yield
        else:
            with patch.object(self.target, self.attribute, self.replacement):
                yield

    def __str__(self) -> str:
        return self.name


# --- shells that do not keep their word -------------------------------------------------------------


class AcknowledgesAtOnce(ReplicaNode):
    """A leader that answers acks=all before the high watermark."""

    def produce(self, value: int) -> None:
        super().produce(value)
        for entry in self.waits:
            self.cluster.on_acknowledged(self, entry)
        self.waits.clear()


class CountsBeforeComparing(ReplicaNode):
    """A leader that takes an offset for an acknowledgement without comparing epochs."""

    def on_fetch(self, fetch: Fetch) -> FetchAnswer:
        if self.leading is not None and self.partition is not None and fetch.offset <= self.log.end_offset:
            self.leading.on_fetch(
                fetch.node_id,
                fetch.offset,
                fetch.broker_epoch,
                leader_end=self.log.end_offset,
                now_ms=self.cluster.kernel.now_ms,
            )
            self._advance()
        return super().on_fetch(fetch)


class ServesWithOldMetadata(ReplicaNode):
    """A broker that leads again by metadata from before its restart."""

    def is_registered_in(self, image: MetadataImage) -> bool:
        return True


class CutsToTheWatermark(ReplicaNode):
    """A follower that truncates to its high watermark in each new epoch, as Kafka did before leader epochs."""

    def on_image(self, image: MetadataImage) -> None:
        before = -1 if self.partition is None else self.partition.leader_epoch
        super().on_image(image)
        if self.partition is not None and not self.is_leader and self.partition.leader_epoch > before:
            self.log.truncate_to(self.high_watermark)
            self.epochs.truncate_end(self.high_watermark)


# --- cores ------------------------------------------------------------------------------------------


def _ignores_followers(self: Leading, leader_end: int, now_ms: int, lag_ms: int, may_join: Any) -> int:
    return leader_end


def _ignores_one_follower(self: Leading, leader_end: int, now_ms: int, lag_ms: int, may_join: Any) -> int:
    ends = sorted([leader_end, *(one.end_offset for one in self._followers.values())])
    return ends[len(ends) // 2]


def _keeps_everything(log: following.EpochEnds, epoch: int, end_offset: int) -> int:
    return log.log_end_offset


def _joins_at_once(self: Leading, *args: Any) -> Any:
    for follower in self._followers.values():
        follower.end_offset = max(follower.end_offset, args[1], self.epoch_start)
    return WISH(self, *args)


def _any_partition_epoch(image: MetadataImage, topic: TopicImage, number: int, proposal: Any) -> Any:
    """Accepts proposals that rest on an older state of the partition, from whoever leads or led."""
    partition = topic.partitions[number]
    members = {one for one, _ in proposal.isr}
    if partition.leader not in members:
        return ErrorCode.INVALID_REQUEST
    current = proposal._replace(
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=tuple((one, -1) for one, _ in proposal.isr),
    )
    return DECIDE_ISR(image, topic, number, current)


def _anyone(self: PartitionDraft) -> None:
    """Elects replicas that are not in sync."""
    self.may_lose_data = True
    LEAD_UNCLEANLY(self)


def _drops_the_last(image: MetadataImage, node_id: int, may_lose_data: Any = None, **orderly: bool) -> Any:
    """Lets another replica lead when the last one in sync goes."""
    return LEAVE(image, node_id, lambda topic: True, **orderly)


def _always_orderly(image: MetadataImage, node_id: int, may_lose_data: Any = None, *, is_orderly: bool = True) -> Any:
    """A broker that was not stopped in order stays eligible to lead, whatever its disk has lost."""
    return LEAVE(image, node_id, lambda topic: False)


def _forgets_old_registration(self: BrokerSessions, image: Any, broker: Any, epoch: int, now_ms: int) -> Any:
    """A broker that comes back as another process keeps what it led and its place in the ISR."""
    records, error = REGISTER(self, image, broker, epoch, now_ms)
    return records[:1], error


WISH = Leading.wish
DECIDE_ISR = elections.decide_isr
LEAD_UNCLEANLY = PartitionDraft._lead_uncleanly
LEAVE = broker_sessions.leave
REGISTER = BrokerSessions.register


MUTANTS = [
    Mutant("acknowledges before the high watermark", node=AcknowledgesAtOnce),
    Mutant("counts a follower before epochs are compared", node=CountsBeforeComparing, first_seed=85),
    Mutant(
        "serves with metadata from before its restart", LOSS | {ONE_LEADER}, node=ServesWithOldMetadata, first_seed=90
    ),
    Mutant("truncates to the high watermark", node=CutsToTheWatermark),
    Mutant(
        "the high watermark ignores followers",
        target=Leading,
        attribute="high_watermark",
        replacement=_ignores_followers,
    ),
    Mutant(
        "the high watermark is a majority's",
        target=Leading,
        attribute="high_watermark",
        replacement=_ignores_one_follower,
    ),
    Mutant(
        "skips truncation",
        LOSS | {CALM},
        target=following,
        attribute="cut_for_divergence",
        replacement=_keeps_everything,
    ),
    Mutant("followers join before they have caught up", target=Leading, attribute="wish", replacement=_joins_at_once),
    Mutant(
        "proposals of older epochs are accepted",
        target=elections,
        attribute="decide_isr",
        replacement=_any_partition_epoch,
        first_seed=288,
    ),
    Mutant(
        "replicas that are not in sync are elected",
        target=PartitionDraft,
        attribute="_lead_uncleanly",
        replacement=_anyone,
    ),
    Mutant(
        "the last in-sync replica is given up", target=broker_sessions, attribute="leave", replacement=_drops_the_last
    ),
    Mutant(
        "a restarted broker keeps its place in the ISR",
        target=BrokerSessions,
        attribute="register",
        replacement=_forgets_old_registration,
        first_seed=66,
    ),
    Mutant(
        "a broker is eligible to lead after an unclean shutdown",
        target=broker_sessions,
        attribute="leave",
        replacement=_always_orderly,
        first_seed=3203,
    ),
]
