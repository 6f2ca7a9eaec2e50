"""A client nobody vouches for: sends any bytes over a real socket and looks at what comes back.

`Stranger` speaks; `Witness` is the well-behaved neighbour who works on meanwhile and notices when it is made to
wait or when something it was promised is gone. Start at `Stranger`.
"""

from __future__ import annotations

import itertools
import resource
import socket
import struct
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from moldau.protocol.api import (
    ApiKey,
    decode_response_header,
    encode_request_header,
)
from moldau.protocol.messages import Message, decode_response, encode_request
from moldau.protocol.record_batch import BATCH_OVERHEAD, HEADER, LOG_OVERHEAD, BatchHeader
from moldau.protocol.records import Record, crc_of, decode_records, encode_batch, split_batches

__all__ = ["Stranger", "Witness", "batch_of", "forged", "frame", "produce_body", "resident_bytes"]

PRODUCE_VERSION = 8


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Stranger:
    """One connection; a context manager."""

    def __init__(self, port: int, *, timeout_s: float = 10, receive_buffer_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(timeout_s)
        self.socket.connect(("127.0.0.1", port))
        self._correlation = itertools.count(1)

    def __enter__(self) -> Stranger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_request(self, api_key: int, version: int, body: bytes, client_id: str | None = "stranger") -> int:
        """Send one request and return its correlation id; nothing is waited for."""
        correlation_id = next(self._correlation)
        self.send(frame(encode_request_header(api_key, version, correlation_id, client_id) + body))
        return correlation_id

    def receive_frame(self) -> bytes:
        """The next response without its size; raises `ConnectionError` when the broker has closed."""
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def ask(self, api_key: int, version: int, request: Message | None = None, **fields: Any) -> Message:
        """One request and its answer, e.g. `ask(ApiKey.METADATA, 12, topics=None)`."""
        sent = self.send_request(api_key, version, encode_request(api_key, version, request or Message(**fields)))
        return self.answer(api_key, version, sent)

    def answer(self, api_key: int, version: int, correlation_id: int) -> Message:
        received = self.receive_frame()
        answered, position = decode_response_header(api_key, version, received)
        assert answered == correlation_id
        return decode_response(api_key, version, received[position:])

    def is_served(self) -> bool:
        """Whether this very connection still works."""
        return int(self.ask(ApiKey.API_VERSIONS, 0).error_code) == 0

    def is_closed(self) -> bool:
        """Whether the broker ends the connection, without another word, before the time-out."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def leaves_in_peace(self) -> bool:
        """Say no more, take what still comes, and see the broker end the connection too."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
            while self.socket.recv(1 << 16):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True

    def create_topic(self, name: str, partitions: int = 1, **configs: Any) -> None:
        settings = [Message(name=key.replace("_", "."), value=str(value)) for key, value in configs.items()]
        topic = Message(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=settings)
        answer = self.ask(ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout_ms=10_000, validate_only=False)
        assert answer.topics[0].error_code == 0, answer

    def produce(self, topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1) -> Message:
        """Send `records` as they are to one partition; returns what the broker says of that partition."""
        sent = self.send_produce(topic, records, partition=partition, acks=acks)
        response: Message = self.answer(ApiKey.PRODUCE, PRODUCE_VERSION, sent).responses[0].partition_responses[0]
        return response

    def send_produce(self, topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1) -> int:
        return self.send_request(
            ApiKey.PRODUCE, PRODUCE_VERSION, produce_body(topic, records, partition=partition, acks=acks)
        )

    def fetch(self, topic: str, offset: int, *, max_bytes: int = 50_000_000, max_wait_ms: int = 1000) -> Message:
        sent = self.send_fetch(topic, offset, max_bytes=max_bytes, max_wait_ms=max_wait_ms)
        response: Message = self.answer(ApiKey.FETCH, 11, sent).responses[0].partitions[0]
        return response

    def send_fetch(self, topic: str, offset: int, *, max_bytes: int = 50_000_000, max_wait_ms: int = 1000) -> int:
        partition = Message(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = Message(
            replica_id=-1,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            topics=[Message(topic=topic, partitions=[partition])],
        )
        return self.send_request(ApiKey.FETCH, 11, encode_request(ApiKey.FETCH, 11, request))

    def values(self, topic: str) -> list[bytes | None]:
        """Every record value of partition 0, read to the end."""
        return [record.value for record in self.records(topic)]

    def records(self, topic: str) -> list[Record]:
        found: list[Record] = []
        offset = 0
        while True:
            answer = self.fetch(topic, offset, max_wait_ms=0)
            assert answer.error_code == 0, answer
            batches = list(split_batches(answer.records or b""))
            if not batches:
                return found
            for header, batch in batches:
                found += list(decode_records(batch, header))
                offset = header.last_offset + 1

    def _receive(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(min(1 << 20, size - len(parts)))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)


def produce_body(topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1) -> bytes:
    """A Produce request before the flexible versions, whatever `records` holds."""
    name = topic.encode()
    start = struct.pack(">hhiih", -1, acks, 10_000, 1, len(name)) + name + struct.pack(">ii", 1, partition)
    return start + (struct.pack(">i", -1) if records is None else struct.pack(">i", len(records)) + records)


def resident_bytes() -> int:
    """What this process holds in memory; the broker of these tests lives in it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def batch_of(
    *values: bytes | None, key: bytes | None = b"key", timestamp_ms: int | None = None, **fields: int
) -> bytes:
    """A good batch, one record a value."""
    now_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    records = [Record(delta, 0, key, value) for delta, value in enumerate(values)]
    return encode_batch(records, base_timestamp=now_ms, **fields)


def forged(batch: bytes, *, body: bytes | None = None, **fields: int) -> bytes:
    """The batch with header fields, and maybe the body, replaced and a CRC that is right unless given."""
    content = batch[BATCH_OVERHEAD:] if body is None else body
    length = BATCH_OVERHEAD - LOG_OVERHEAD + len(content)
    header = BatchHeader.at(batch)._replace(**{"batch_length": length, **fields})
    changed = bytearray(HEADER.pack(*header) + content)
    if "crc" not in fields:
        changed[17:21] = crc_of(changed).to_bytes(4, "big")
    return bytes(changed)


class Witness:
    """A neighbour who produces one record at a time all the while, and in the end wants to see them all."""

    def __init__(self, port: int, topic: str = "witness") -> None:
        self._port, self._topic = port, topic
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="witness")
        self.acknowledged: list[bytes] = []
        self.longest_wait_s = 0.0

    def __enter__(self) -> Witness:
        with Stranger(self._port) as stranger:
            stranger.create_topic(self._topic)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if kind is not None:
            return
        assert self._failure is None, f"the witness was not served: {self._failure!r}"
        assert self.acknowledged, "the witness got nothing acknowledged"
        with Stranger(self._port) as stranger:
            assert stranger.values(self._topic) == self.acknowledged

    def wait_until_served(self, times: int = 100) -> None:
        """Wait until so many more of its records are acknowledged."""
        wanted = len(self.acknowledged) + times
        while len(self.acknowledged) < wanted:
            self._thread.join(0.01)
            assert self._thread.is_alive(), f"the witness was not served: {self._failure!r}"

    def _work(self) -> None:
        try:
            with Stranger(self._port) as stranger:
                for number in itertools.count():
                    value = b"record %d" % number
                    asked = time.monotonic()
                    answer = stranger.produce(self._topic, batch_of(value))
                    assert answer.error_code == 0, answer
                    assert answer.base_offset == number
                    self.longest_wait_s = max(self.longest_wait_s, time.monotonic() - asked)
                    self.acknowledged.append(value)
                    if self._over.wait(0.002):
                        return
        except BaseException as error:
            self._failure = error
