"""Where source offsets are kept: a compacted topic that tasks write in their transactions, or a file.

Keys and values are Kafka Connect's: `["connector", {source partition}]` and the source offset, as JSON. Start at
`read_topic_offsets` and `OffsetFile`.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moldau.client.connection import build, log_report
from moldau.client.errors import UnreachableError, client_error
from moldau.connect.api.errors import ConnectError

__all__ = ["OffsetFile", "StoredOffsets", "decode_key", "encode_key", "encode_offset", "read_topic_offsets"]

QUESTION_S = 10.0
READ_S = 60.0

Offset = Mapping[str, Any]


def encode_key(connector: str, partition: Mapping[str, Any]) -> bytes:
    """The key of a source partition: the same partition always gives the same bytes."""
    return json.dumps([connector, partition], separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def decode_key(key: bytes) -> tuple[str, dict[str, Any]] | None:
    """The connector and the source partition; None for a key that is not ours."""
    try:
        connector, partition = json.loads(key)
    except (ValueError, TypeError):
        return None
    return (connector, partition) if isinstance(connector, str) and isinstance(partition, dict) else None


def encode_offset(offset: Offset | None) -> bytes | None:
    return None if offset is None else json.dumps(offset, separators=(",", ":"), ensure_ascii=False).encode()


class StoredOffsets:
    """The offsets of one connector, read when its task started; an `OffsetReader`."""

    def __init__(self, connector: str, offsets: Mapping[bytes, Offset]) -> None:
        self._connector = connector
        self._offsets = dict(offsets)

    def offset(self, partition: Mapping[str, Any]) -> Offset | None:
        return self._offsets.get(encode_key(self._connector, partition))

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[Offset | None]:
        return [self.offset(partition) for partition in partitions]

    def note(self, key: bytes, offset: Offset | None) -> None:
        """A newer offset, which the task itself has stored."""
        if offset is None:
            self._offsets.pop(key, None)
        else:
            self._offsets[key] = offset


def read_topic_offsets(properties: Mapping[str, str], topic: str, connector: str) -> dict[bytes, Offset]:
    """The last offsets of a connector in the offset topic, read to its end as it is now."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

    client = {
        **properties,
        "group.id": f"connect-offsets-{connector}",  # librdkafka requires one; nothing is ever committed
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": "true",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": "false",
        "fetch.max.wait.ms": "10",
    }
    consumer: Consumer
    consumer, _ = build(Consumer, "consumer", client, report=log_report, title=f"offsets of {connector}")
    found: dict[bytes, Offset] = {}
    try:
        partitions = consumer.list_topics(topic, QUESTION_S).topics[topic].partitions
        ends = {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), QUESTION_S)[1]
            for number in partitions
        }
        waiting = {number for number, end in ends.items() if end > 0}
        consumer.assign([TopicPartition(topic, number, 0) for number in sorted(waiting)])
        for message in _messages(consumer):
            number = message.partition()
            refusal = message.error()
            if refusal is not None and refusal.code() != KafkaError._PARTITION_EOF:
                raise client_error(refusal, about=f"topic {topic}")
            if refusal is None:
                _note(found, connector, message.key(), message.value())
            position = message.offset() + (refusal is None)
            if position >= ends[number]:
                waiting.discard(number)
            if not waiting:
                break
    except KafkaException as error:
        raise client_error(error.args[0], about=f"topic {topic}") from None
    finally:
        consumer.close()
    return found


def _messages(consumer: Any) -> Iterator[Any]:
    import time

    deadline = time.monotonic() + READ_S
    while consumer.assignment():
        message = consumer.poll(0.5)
        if message is not None:
            yield message
        elif time.monotonic() > deadline:
            raise UnreachableError(f"the offset topic could not be read to its end within {READ_S:g} s")


def _note(found: dict[bytes, Offset], connector: str, key: bytes | None, value: bytes | None) -> None:
    parts = decode_key(key) if key is not None else None
    if parts is None or parts[0] != connector:
        return
    own = encode_key(*parts)
    if value is None:
        found.pop(own, None)
    else:
        found[own] = json.loads(value)


class OffsetFile:
    """Offsets of a standalone worker. Several processes may use it at the same time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()

    def load(self) -> dict[bytes, Offset]:
        """All offsets, by key."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        if not text.strip():
            return {}
        try:
            return {encode_key(connector, partition): offset for (connector, partition), offset in json.loads(text)}
        except (ValueError, TypeError):
            raise ConnectError(
                f"{self.path} does not hold offsets of moldau (Kafka Connect's own file is Java's); "
                "set offset.storage.file.filename to another file"
            ) from None

    def of(self, connector: str) -> dict[bytes, Offset]:
        """The offsets of a connector."""
        found = {}
        for key, offset in self.load().items():
            parts = decode_key(key)
            if parts is not None and parts[0] == connector:
                found[key] = offset
        return found

    def update(self, changes: Mapping[bytes, Offset | None]) -> None:
        """Change offsets, None to remove; they are on the disk afterwards."""
        with self._locked():
            merged = self.load()
            for key, offset in changes.items():
                if offset is None:
                    merged.pop(key, None)
                else:
                    merged[key] = offset
            rows = [[json.loads(key), offset] for key, offset in merged.items()]
            written = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
            with written.open("w") as file:
                json.dump(rows, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            written.replace(self.path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_name(f"{self.path.name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
