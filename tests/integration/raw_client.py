"""A client that sends exactly the bytes a test wants and shows exactly what came back."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

from moldau.protocol.api import decode_response_header, encode_request_header
from moldau.protocol.messages import Message, decode_response, encode_request
from moldau.protocol.records import Record, encode_batch

TIMEOUT_S = 20


class RawClient:
    def __init__(self, port: int, client_id: str = "raw", host: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def frame(self, api_key: int, version: int, request: Message, correlation_id: int | None = None) -> bytes:
        if correlation_id is None:
            self._correlation_id += 1
            correlation_id = self._correlation_id
        header = encode_request_header(api_key, version, correlation_id, self.client_id)
        body = header + encode_request(api_key, version, request)
        return struct.pack(">i", len(body)) + body

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def receive(self, api_key: int, version: int) -> Message:
        frame = self.receive_frame()
        _, position = decode_response_header(api_key, version, frame)
        return decode_response(api_key, version, frame[position:])

    def ask(self, api_key: int, version: int, request: Message) -> Message:
        self.send(self.frame(api_key, version, request))
        return self.receive(api_key, version)

    def is_closed_by_broker(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError(f"closed after {len(data)} of {size} bytes")
            data += piece
        return bytes(data)

    # Requests that many tests make

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        settings = [Message(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = Message(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings)
        answer = self.ask(19, 5, Message(topics=[topic], timeout_ms=10_000, validate_only=False))
        assert answer.topics[0].error_code == 0, answer

    def produce(self, topic: str, batch: bytes, *, version: int = 9, partition: int = 0, acks: int = -1) -> Message:
        """Produce one batch and return its partition's part of the response."""
        answer = self.ask(0, version, produce_request(topic, batch, partition=partition, acks=acks))
        partition_response: Message = answer.responses[0].partition_responses[0]
        return partition_response

    def fetch(self, topic: str, offset: int, *, version: int = 11, **values: Any) -> Message:
        """Fetch one partition and return its part of the response."""
        partition_data: Message = (
            self.ask(1, version, fetch_request(topic, offset, **values)).responses[0].partitions[0]
        )
        return partition_data


def batch_of(*values: bytes | None, key: bytes | None = b"k", timestamp: int | None = None, **fields: Any) -> bytes:
    now = int(time.time() * 1000) if timestamp is None else timestamp
    records = [Record(index, 0, key, value) for index, value in enumerate(values)]
    return encode_batch(records, base_timestamp=now, **fields)


def produce_request(topic: str, batch: bytes | None, *, partition: int = 0, acks: int = -1) -> Message:
    partitions = [Message(index=partition, records=batch)]
    return Message(
        transactional_id=None,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[Message(name=topic, partition_data=partitions)],
    )


def fetch_request(
    topic: str | None,
    offset: int = 0,
    *,
    partitions: Sequence[int] = (0,),
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 2**25,
    partition_max_bytes: int = 2**20,
    session: tuple[int, int] = (0, -1),
    isolation_level: int = 0,
    **fields: Any,
) -> Message:
    wanted = [
        Message(partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes, **fields)
        for index in partitions
    ]
    return Message(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=[] if topic is None else [Message(topic=topic, partitions=wanted)],
        forgotten_topics_data=[],
        rack_id="",
    )
