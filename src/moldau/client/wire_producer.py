"""Single records written by the wire client, exactly as they are given.

For what librdkafka cannot write: it takes a timestamp of 0 for "now". A record is a request of its own, and is stored
when `write` returns; where one fails half way, it may be stored although the call raised. Start at
`WireProducer.write`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from moldau.client.admin import Admin
from moldau.client.errors import ClientError, UnreachableError
from moldau.client.wire import WireClient
from moldau.client.wire_admin import raise_for
from moldau.core.errors import ErrorCode
from moldau.core.ids import TopicPartition
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.protocol.records import Record, encode_batch

__all__ = ["WireProducer"]

NAMED_TOPICS = 12
"""The newest version of Produce in which topics have names; later ones have ids."""
ALL_REPLICAS = -1
STALE = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
)


class WireProducer:
    """Finds leaders by an admin client, and keeps a connection to each. May be used by any thread, one at a time."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._leaders: dict[TopicPartition, int] = {}
        self._connections: dict[int, WireClient] = {}
        self._lock = threading.Lock()

    def write(
        self,
        place: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> int:
        """Store one record, and return its offset; raises `ClientError`."""
        batch = encode_batch([Record(0, 0, key, value, tuple(headers))], base_timestamp=timestamp_ms)
        with self._lock:
            try:
                return self._send(place, batch)
            except ClientError as error:
                if not isinstance(error, UnreachableError) and error.error_code not in STALE:
                    raise
                self._forget(place)
            return self._send(place, batch)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()

    def _send(self, place: TopicPartition, batch: bytes) -> int:
        connection = self._connection(self._leader(place))
        topic = Message(name=place.topic, topic_id=None, partition_data=[Message(index=place.partition, records=batch)])
        timeout_ms = round(self._admin.timeout_s * 1000)
        request = Message(transactional_id=None, acks=ALL_REPLICAS, timeout_ms=timeout_ms, topic_data=[topic])
        version = min(NAMED_TOPICS, connection.version_for(ApiKey.PRODUCE))
        (reply,) = connection.send(ApiKey.PRODUCE, request, version).responses[0].partition_responses
        raise_for(reply.error_code, reply.error_message, about=str(place))
        return int(reply.base_offset)

    def _leader(self, place: TopicPartition) -> int:
        if place not in self._leaders:
            [topic] = self._admin.describe_topics([place.topic])
            for partition in topic.partitions:
                if partition.leader is not None:
                    self._leaders[TopicPartition(place.topic, partition.partition)] = partition.leader
        if place not in self._leaders:
            raise ClientError(f"{place} has no leader now; try again later", ErrorCode.LEADER_NOT_AVAILABLE)
        return self._leaders[place]

    def _connection(self, node_id: int) -> WireClient:
        if node_id not in self._connections:
            self._connections[node_id] = self._admin.wire(node_id)
        return self._connections[node_id]

    def _forget(self, place: TopicPartition) -> None:
        node_id = self._leaders.pop(place, None)
        connection = self._connections.pop(node_id, None) if node_id is not None else None
        if connection is not None:
            connection.close()
