"""Where a worker keeps what has to survive it: three topics of a distributed worker, or memory and a file.

Start at `TopicRecords` and `TopicOffsets`; `MemoryRecords` and `FileOffsets` are their standalone counterparts.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from moldau.client.coordination.state_topic import StateTopic
from moldau.client.coordination.topic_log import LogRecord, LogWrite, TopicLog
from moldau.connect.runtime.offset_stores import OffsetFile, decode_key, encode_key, encode_offset

__all__ = ["FileOffsets", "MemoryRecords", "OffsetStore", "Records", "TopicOffsets", "TopicRecords"]

CLOSE_S = 2.0

Offset = Mapping[str, Any]
ApplyRecord = Callable[[str, Any], None]
"""Gets the key and the JSON of each record, in order; None for a tombstone."""

_logger = logging.getLogger("moldau.connect")


class Records(Protocol):
    """Keyed JSON documents that all workers of a cluster apply in the same order."""

    async def start(self, timeout_s: float) -> None:
        """Apply all that is there; raises `StartupError`."""

    async def stop(self) -> None: ...

    async def append(self, records: Sequence[tuple[str, Any]]) -> None:
        """Write, and return when the records are applied here."""

    async def catch_up(self) -> None:
        """Return when all that others have written is applied here."""

    @property
    def cluster_id(self) -> str: ...


class TopicRecords:
    def __init__(self, topic: StateTopic, apply: ApplyRecord, *, timeout_ms: int) -> None:
        self._apply = apply
        self._log = TopicLog(topic, self._apply_record, timeout_ms=timeout_ms, logger=_logger)

    @property
    def cluster_id(self) -> str:
        return self._log.cluster_id

    async def start(self, timeout_s: float) -> None:
        await self._log.start(timeout_s)

    async def stop(self) -> None:
        await self._log.stop(CLOSE_S)

    async def append(self, records: Sequence[tuple[str, Any]]) -> None:
        await self._log.append([LogWrite(key.encode(), _encode(value)) for key, value in records])

    async def catch_up(self) -> None:
        await self._log.read_to_end()

    def _apply_record(self, record: LogRecord) -> None:
        if record.key is not None:
            self._apply(record.key.decode(), None if record.value is None else json.loads(record.value))


def _encode(value: Any) -> bytes | None:
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


class MemoryRecords:
    """For a standalone worker: nothing survives it."""

    cluster_id = ""

    def __init__(self, apply: ApplyRecord) -> None:
        self._apply = apply

    async def start(self, timeout_s: float) -> None: ...

    async def stop(self) -> None: ...

    async def catch_up(self) -> None: ...

    async def append(self, records: Sequence[tuple[str, Any]]) -> None:
        for key, value in records:
            self._apply(key, json.loads(json.dumps(value)))


class OffsetStore(Protocol):
    """Source offsets, as the REST API reads and changes them."""

    async def start(self, timeout_s: float) -> None: ...

    async def stop(self) -> None: ...

    async def read(self, connector: str) -> list[tuple[dict[str, Any], Offset]]:
        """The source partitions of a connector and their offsets."""

    async def write(self, connector: str, changes: Sequence[tuple[Mapping[str, Any], Offset | None]]) -> None:
        """Change offsets, None to remove."""


class TopicOffsets:
    def __init__(self, topic: StateTopic, *, timeout_ms: int) -> None:
        self._log = TopicLog(topic, self._apply, timeout_ms=timeout_ms, logger=_logger)
        self._offsets: dict[str, dict[bytes, Offset]] = {}

    async def start(self, timeout_s: float) -> None:
        await self._log.start(timeout_s)

    async def stop(self) -> None:
        await self._log.stop(CLOSE_S)

    async def read(self, connector: str) -> list[tuple[dict[str, Any], Offset]]:
        await self._log.read_to_end()
        return [(json.loads(key)[1], offset) for key, offset in self._offsets.get(connector, {}).items()]

    async def write(self, connector: str, changes: Sequence[tuple[Mapping[str, Any], Offset | None]]) -> None:
        await self._log.append(
            [LogWrite(encode_key(connector, partition), encode_offset(offset)) for partition, offset in changes]
        )

    def _apply(self, record: LogRecord) -> None:
        parts = decode_key(record.key) if record.key is not None else None
        if parts is None:
            return
        of_connector = self._offsets.setdefault(parts[0], {})
        if record.value is None:
            of_connector.pop(encode_key(*parts), None)
        else:
            of_connector[encode_key(*parts)] = json.loads(record.value)


class FileOffsets:
    def __init__(self, path: str) -> None:
        self._file = OffsetFile(path)

    async def start(self, timeout_s: float) -> None:
        await asyncio.to_thread(self._file.load)  # a file that is not ours is told at the start

    async def stop(self) -> None: ...

    async def read(self, connector: str) -> list[tuple[dict[str, Any], Offset]]:
        found = await asyncio.to_thread(self._file.of, connector)
        return [(json.loads(key)[1], offset) for key, offset in found.items()]

    async def write(self, connector: str, changes: Sequence[tuple[Mapping[str, Any], Offset | None]]) -> None:
        await asyncio.to_thread(
            self._file.update, {encode_key(connector, partition): offset for partition, offset in changes}
        )
