"""Leaders ask the controller to change their in-sync replicas: AlterPartition, in batches, until it is answered.

A proposal stays in effect for the high watermark until the metadata says what became of it (`Leading.follow_metadata`)
or the controller has refused it for certain. Start at `IsrChanges.look`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from moldau.broker.cluster.controller_channel import ControllerChannel, ControllerUnavailableError
from moldau.broker.replication.leading import IsrWish
from moldau.core.config.sections import ReplicationSettings
from moldau.core.errors import ErrorCode
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.broker.partition import Partition

__all__ = ["IsrChanges"]

log = logging.getLogger(__name__)

RETRY_S: Final = 0.1
TIMEOUT_S: Final = 10.0
LONGEST_ROUND_S: Final = 5.0


class IsrChanges:
    """One for each broker, used on the loop."""

    def __init__(self, broker: Broker, channel: ControllerChannel, broker_epoch: Callable[[], int]) -> None:
        self._broker = broker
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._wishes: dict[Partition, tuple[int, IsrWish]] = {}
        """What is to be proposed, with the leader epoch in which it was decided."""
        self._wake = asyncio.Event()
        self._tasks = [asyncio.ensure_future(self._propose()), asyncio.ensure_future(self._keep_looking())]
        self.shrinks = 0
        self.expands = 0
        self.failed_updates = 0

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    # --- deciding ---------------------------------------------------------------------------------------

    def look(self, partition: Partition) -> None:
        """Propose another ISR for a partition, if it should have one."""
        leading = partition.leading
        if leading is None or not partition.is_leader or leading.is_proposing:
            return
        partition_log = partition.log
        lag_ms = partition.events.lag_ms
        now_ms = self._broker.clock.monotonic_ms()
        wish = leading.wish(partition_log.log_end_offset, partition_log.high_watermark, now_ms, lag_ms, self.may_join)
        if wish is None:
            return
        if len(wish.isr) > len(partition.isr):
            self.expands += 1
        else:
            self.shrinks += 1
        log.info("%s: proposing %s as in sync", partition.topic_partition, [one for one, _ in wish.isr])
        self._wishes[partition] = (partition.leader_epoch, wish)
        self._wake.set()

    def may_join(self, node_id: int, broker_epoch: int) -> bool:
        """Whether a broker is active, and registered with the epoch under which it fetched."""
        broker = self._broker.image.brokers.get(node_id)
        return broker is not None and broker.is_active and broker.epoch == broker_epoch

    async def _keep_looking(self) -> None:
        """Followers that fell silent do not fetch: they are looked for."""
        while True:
            lag_s = self._broker.config.section(ReplicationSettings).lag_time_max_ms / 1000
            await asyncio.sleep(min(LONGEST_ROUND_S, lag_s / 2))
            self.look_at_all()

    def look_at_all(self) -> None:
        for partition in self._broker.partitions:
            if partition.leading is not None:
                self.look(partition)
                partition.advance()

    # --- asking -----------------------------------------------------------------------------------------

    async def _propose(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            wishes, self._wishes = self._wishes, {}
            current = {
                partition: wish
                for partition, (leader_epoch, wish) in wishes.items()
                if partition.is_leader
                and partition.leader_epoch == leader_epoch
                and partition.partition_epoch == wish.partition_epoch
            }
            if not current:
                continue
            again: Iterable[Partition] = current
            try:
                again = await self._ask(current)
            except ControllerUnavailableError as error:
                log.warning("in-sync replicas are not changed for now: %s", error)
            except Exception:
                log.exception("in-sync replicas could not be proposed, will retry")
            again = [one for one in again if one not in self._wishes]
            if again:
                self.failed_updates += len(again)
                for partition in again:
                    self._wishes[partition] = (partition.leader_epoch, current[partition])
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    async def _ask(self, current: dict[Partition, IsrWish]) -> list[Partition]:
        """Send the proposals; returns those that have to be sent again."""
        by_key = {(one.topic.topic_id, one.index): one for one in current}
        topics: dict[object, list[Message]] = {}
        for partition, wish in current.items():
            topics.setdefault(partition.topic.topic_id, []).append(
                Message(
                    partition_index=partition.index,
                    leader_epoch=partition.leader_epoch,
                    new_isr=[one for one, _ in wish.isr],
                    new_isr_with_epochs=[
                        Message(broker_id=one, broker_epoch=self._epoch_of(one, epoch)) for one, epoch in wish.isr
                    ],
                    leader_recovery_state=0,
                    partition_epoch=wish.partition_epoch,
                )
            )
        answer = await self._channel.send(
            ApiKey.ALTER_PARTITION,
            Message(
                broker_id=self._broker.node_id,
                broker_epoch=self._broker_epoch(),
                topics=[Message(topic_id=key, partitions=partitions) for key, partitions in topics.items()],
            ),
            timeout_s=TIMEOUT_S,
        )
        if answer.error_code:
            log.warning("the controller refuses in-sync replicas: %s", ErrorCode(answer.error_code).name)
            return list(current)
        again = []
        for topic in answer.topics:
            for one in topic.partitions:
                partition = by_key[topic.topic_id, one.partition_index]
                if self._is_open(partition, ErrorCode(one.error_code)):
                    again.append(partition)
        return again

    def _epoch_of(self, node_id: int, fetched_under: int) -> int:
        return self._broker_epoch() if node_id == self._broker.node_id else fetched_under

    @staticmethod
    def _is_open(partition: Partition, error: ErrorCode) -> bool:
        """Whether a proposal has to be made again; the metadata ends those that were accepted or overtaken."""
        if error is ErrorCode.NOT_CONTROLLER:
            return True
        if error in (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST) and partition.leading is not None:
            # Compared with the controller's epochs first, so nothing proposed before has taken effect.
            partition.leading.refused()
        return False
