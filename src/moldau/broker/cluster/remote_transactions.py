"""Transactions whose coordinator, or whose partitions, are on other brokers.

The coordinator sends markers to the leaders of the partitions (WriteTxnMarkers), and leaders ask the coordinator about
transactional batches (AddPartitionsToTxn, version 4 and later). Both are asked again by their callers while the answer
is that somebody else leads. Start at `RemoteTransactions.write_marker`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import TYPE_CHECKING, Any

from moldau.broker.cluster.peers import BrokerPeers, PeerUnavailableError
from moldau.controller.image import NO_LEADER
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.broker.coordination.transaction_markers import Marker
    from moldau.coordinator.transaction.requests import Owner

__all__ = ["RemoteTransactions"]

Verdicts = dict[TopicPartition, ErrorCode]


class RemoteTransactions:
    """Used on the loop only."""

    def __init__(self, broker: Broker, peers: BrokerPeers) -> None:
        self._broker = broker
        self._peers = peers
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- markers ----------------------------------------------------------------------------------------

    def write_marker(self, target: TopicPartition, marker: Marker, done: Callable[[ErrorCode], None]) -> None:
        """Have the leader of a partition append a marker; `done` hears its answer, or why there is none."""
        self._start(self._write_marker(target, marker, done))

    async def _write_marker(self, target: TopicPartition, marker: Marker, done: Callable[[ErrorCode], None]) -> None:
        partition = self._broker.image.partition(*target)
        if partition is None or partition.leader in (NO_LEADER, self._broker.node_id):
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        request = Message(
            markers=[
                Message(
                    producer_id=marker.producer_id,
                    producer_epoch=marker.producer_epoch,
                    transaction_result=marker.is_commit,
                    topics=[Message(name=target.topic, partition_indexes=[target.partition])],
                    coordinator_epoch=marker.coordinator_epoch,
                    transaction_version=marker.version,
                )
            ]
        )
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        try:
            answer = await self._peers.send(partition.leader, ApiKey.WRITE_TXN_MARKERS, request)
            code = ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)
        except (PeerUnavailableError, IndexError):
            pass
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._broker.image.partition(*target) is not None:
            # That broker's metadata is behind ours; a topic that is gone here is gone.
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        done(code)

    # --- the coordinator --------------------------------------------------------------------------------

    def ask_coordinator(
        self,
        coordinator: int,
        transactional_id: str,
        owner: Owner,
        partitions: Collection[TopicPartition],
        *,
        is_verified_only: bool,
        then: Callable[[Verdicts], None],
    ) -> None:
        """Have partitions verified, or added to a transaction, by the broker that coordinates it."""
        self._start(self._ask(coordinator, transactional_id, owner, partitions, is_verified_only, then))

    async def _ask(  # noqa: PLR0917
        self,
        coordinator: int,
        transactional_id: str,
        owner: Owner,
        partitions: Collection[TopicPartition],
        is_verified_only: bool,
        then: Callable[[Verdicts], None],
    ) -> None:
        by_topic: dict[str, list[int]] = {}
        for one in partitions:
            by_topic.setdefault(one.topic, []).append(one.partition)
        transaction = Message(
            transactional_id=transactional_id,
            producer_id=owner.producer_id,
            producer_epoch=owner.producer_epoch,
            verify_only=is_verified_only,
            topics=[Message(name=name, partitions=numbers) for name, numbers in by_topic.items()],
        )
        verdicts: Verdicts = dict.fromkeys(partitions, ErrorCode.NOT_COORDINATOR)
        try:
            answer = await self._peers.send(
                coordinator, ApiKey.ADD_PARTITIONS_TO_TXN, Message(transactions=[transaction])
            )
            for result in answer.results_by_transaction:
                for topic in result.topic_results:
                    for one in topic.results_by_partition:
                        target = TopicPartition(topic.name, one.partition_index)
                        verdicts[target] = ErrorCode(one.partition_error_code)
        except PeerUnavailableError:
            pass
        then(verdicts)
