"""Record batches, magic 2: the 61-byte header and what may be changed in it.

A batch is stored and sent as the bytes the producer sent: the broker reads its header, sets base offset and leader
epoch in place, and never rebuilds it. The records inside are `protocol.records`.
Start at `BatchHeader`.

    offset  size  field                     offset  size  field
    0       8     base offset               23      4     last offset delta
    8       4     batch length (after it)   27      8     base timestamp
    12      4     partition leader epoch    35      8     max timestamp
    16      1     magic                     43      8     producer id
    17      4     crc                       51      2     producer epoch
    21      2     attributes                53      4     base sequence
                                            57      4     records count
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

__all__ = ["BATCH_OVERHEAD", "HEADER", "LOG_OVERHEAD", "BatchHeader"]

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""The whole header; unpack with `HEADER.unpack_from(view, position)` or `BatchHeader.at`."""

BATCH_OVERHEAD: Final = 61
LOG_OVERHEAD: Final = 12
"""Bytes before and including the batch length field, which does not count them."""

MAGIC: Final = 2
NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

ATTRIBUTES_OFFSET: Final = 21
"""The CRC covers everything from here on. Base offset and leader epoch lie before it, so the leader
can set both on append without computing the CRC again."""


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @classmethod
    def at(cls, buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
        """Read the header at `position`; raises `struct.error` where fewer than 61 bytes are left."""
        return cls._make(HEADER.unpack_from(buffer, position))

    @property
    def size_in_bytes(self) -> int:
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may remove the tombstones and markers of this batch; `None` while not set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_sequence(self) -> int:
        """Sequences wrap to 0 after 2147483647."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF
