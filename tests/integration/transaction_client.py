"""A transactional producer that does one request at a time, in whatever version, and sees every code."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from tests.integration.raw_client import RawClient

from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message
from moldau.protocol.record_batch import TRANSACTIONAL_BIT
from moldau.protocol.records import Record, encode_batch

PRODUCE, FIND_COORDINATOR, INIT, ADD, ADD_OFFSETS, END, MARKERS, OFFSETS = 0, 10, 22, 24, 25, 26, 27, 28
DESCRIBE_PRODUCERS, DESCRIBE, LIST = 61, 65, 66


class TransactionClient(RawClient):
    def __init__(self, port: int, transactional_id: str) -> None:
        super().__init__(port)
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.producer_epoch = -1
        self.ask(FIND_COORDINATOR, 4, Message(key_type=1, coordinator_keys=[transactional_id]))

    def init(self, *, version: int = 5, timeout_ms: int = 60_000, expected: tuple[int, int] = (-1, -1)) -> ErrorCode:
        reply = self.ask(
            INIT,
            version,
            Message(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=timeout_ms,
                producer_id=expected[0],
                producer_epoch=expected[1],
            ),
        )
        return self._taken(reply)

    def _taken(self, reply: Message) -> ErrorCode:
        if reply.error_code == 0:
            self.producer_id, self.producer_epoch = reply.producer_id, reply.producer_epoch
        return ErrorCode(reply.error_code)

    def add(self, topic: str, *partitions: int, version: int = 3) -> dict[int, ErrorCode]:
        """Asks again while the transaction before is ending, as clients do; so does `end`."""
        while ErrorCode.CONCURRENT_TRANSACTIONS in (codes := self._added(topic, partitions, version)).values():
            time.sleep(0.005)
        return codes

    def _added(self, topic: str, partitions: Sequence[int], version: int) -> dict[int, ErrorCode]:
        reply = self.ask(
            ADD,
            version,
            Message(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.producer_epoch,
                v3_and_below_topics=[Message(name=topic, partitions=list(partitions))],
            ),
        )
        (results,) = reply.results_by_topic_v3_and_below
        return {one.partition_index: ErrorCode(one.partition_error_code) for one in results.results_by_partition}

    def add_offsets(self, group: str, version: int = 3) -> ErrorCode:
        request = Message(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=group,
        )
        return ErrorCode(self.ask(ADD_OFFSETS, version, request).error_code)

    def commit_offset(self, group: str, topic: str, offset: int, version: int = 3) -> ErrorCode:
        request = Message(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[
                Message(
                    name=topic,
                    partitions=[
                        Message(
                            partition_index=0,
                            committed_offset=offset,
                            committed_leader_epoch=-1,
                            committed_metadata="",
                        )
                    ],
                )
            ],
        )
        reply = self.ask(OFFSETS, version, request)
        return ErrorCode(reply.topics[0].partitions[0].error_code)

    def write(
        self,
        topic: str,
        value: str,
        *,
        partition: int = 0,
        sequence: int = 0,
        version: int = 9,
        is_transactional: bool = True,
    ) -> ErrorCode:
        batch = encode_batch(
            [Record(0, 0, None, value.encode())],
            base_timestamp=int(time.time() * 1000),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            attributes=TRANSACTIONAL_BIT if is_transactional else 0,
        )
        request = Message(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                Message(name=topic, topic_id=uuid.UUID(int=0), partition_data=[Message(index=partition, records=batch)])
            ],
        )
        reply = self.ask(PRODUCE, version, request)
        return ErrorCode(reply.responses[0].partition_responses[0].error_code)

    def end(self, *, is_commit: bool, version: int = 4) -> ErrorCode:
        while (code := self._ended(is_commit, version)) is ErrorCode.CONCURRENT_TRANSACTIONS:
            time.sleep(0.005)
        return code

    def _ended(self, is_commit: bool, version: int) -> ErrorCode:
        reply = self.ask(
            END,
            version,
            Message(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                committed=is_commit,
            ),
        )
        return self._taken(reply) if version >= 5 else ErrorCode(reply.error_code)

    def state(self) -> str:
        (found,) = self.ask(DESCRIBE, 0, Message(transactional_ids=[self.transactional_id])).transaction_states
        return found.transaction_state or ErrorCode(found.error_code).name
