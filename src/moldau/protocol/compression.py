"""The four compression codecs of record batches, in the framings that Kafka's clients write and read.

Works on bytes; the records inside are `protocol.records`. Output is bounded, and the bound is enforced while
decompressing, so that a few malicious bytes never become gigabytes. Each codec's library is imported when it is first
used. Start at `compress` and `decompress`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

from moldau.core.errors import ErrorCode, MoldauError

__all__ = ["DEFAULT_LIMIT", "Codec", "DecompressionError", "compress", "decompress"]

DEFAULT_LIMIT: Final = 104_857_600
"""The default limit of a batch's decompressed size: as much as one whole request may carry."""

Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The low three bits of a batch's attributes; 5 to 7 are undefined."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class DecompressionError(MoldauError):
    """Compressed bytes that are damaged, or decompress to more than allowed."""

    code = ErrorCode.INVALID_RECORD


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data`; `level` is in the codec's own scale, `None` its default. Snappy has no levels."""
    try:
        pack = _COMPRESSORS[codec]
    except KeyError:
        raise ValueError(f"{codec} is not a compression codec") from None
    return pack(data, level)


def decompress(codec: int, data: Buffer, limit: int = DEFAULT_LIMIT) -> bytes:
    """Decompress `data`; raises `DecompressionError` if it is damaged, truncated or larger than `limit`."""
    try:
        unpack = _DECOMPRESSORS[codec]
    except KeyError:
        raise DecompressionError(f"{codec} is not a compression codec") from None
    return unpack(data, limit)


def _too_large(limit: int) -> DecompressionError:
    return DecompressionError(f"the batch unpacks to more than {limit} bytes; send smaller batches")


def _damaged_batch_error(codec: str, why: object) -> DecompressionError:
    return DecompressionError(f"{codec}: {why}")


# --- none -------------------------------------------------------------------------------------------


def _copy(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _copy_bounded(data: Buffer, limit: int) -> bytes:
    if len(data) > limit:
        raise _too_large(limit)
    return bytes(data)


# --- gzip -------------------------------------------------------------------------------------------

_GZIP_WINDOW: Final = 31
_GZIP_PIECE: Final = 65_536
_GZIP_MAX_MEMBERS: Final = 1_000
"""Writers create one member. The limit keeps a batch of thousands of empty ones from taking seconds."""


def _gzip(data: Buffer, level: int | None) -> bytes:
    packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(data) + packer.flush()


def _gunzip(data: Buffer, limit: int) -> bytes:
    """Input is fed in pieces, because zlib copies the bytes left after each member."""
    view, position, left = memoryview(data), 0, limit
    output: list[bytes] = []
    for _ in range(_GZIP_MAX_MEMBERS):
        member = zlib.decompressobj(_GZIP_WINDOW)
        while not member.eof:
            piece: Buffer = member.unconsumed_tail
            if not piece:
                piece = view[position : position + _GZIP_PIECE]
                position += len(piece)
            unpacked = _gunzip_piece(member, piece, left + 1)
            left -= len(unpacked)
            if left < 0:
                raise _too_large(limit)
            output.append(unpacked)
            if not piece and not unpacked and not member.eof:
                raise _damaged_batch_error("gzip", "the data ends early")
        position -= len(member.unused_data)
        if position >= len(view):
            return b"".join(output)
    raise _damaged_batch_error("gzip", f"more than {_GZIP_MAX_MEMBERS} members")


def _gunzip_piece(member: Any, piece: Buffer, max_length: int) -> bytes:
    try:
        unpacked: bytes = member.decompress(piece, max_length)
    except zlib.error as error:
        raise _damaged_batch_error("gzip", error) from None
    return unpacked


# --- snappy -----------------------------------------------------------------------------------------

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + (1).to_bytes(4, "big") * 2
_XERIAL_BLOCK: Final = 32_768
_SNAPPY_MAX_RATIO: Final = 22
"""The densest element, a copy of 64 bytes, takes three: a length beyond this ratio is invalid."""


def _snappy(data: Buffer, level: int | None) -> bytes:
    """As a xerial stream: Kafka's Java clients write it, and old releases read nothing else."""
    import cramjam

    view, parts = memoryview(data), [_XERIAL_HEADER]
    for position in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[position : position + _XERIAL_BLOCK]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _unsnappy(data: Buffer, limit: int) -> bytes:
    """Both existing forms: the xerial stream, recognised by its magic, and one raw block (librdkafka)."""
    view = memoryview(data)
    if bytes(view[:8]) != _XERIAL_MAGIC:
        return _unsnappy_block(view, limit, limit)
    if len(view) < len(_XERIAL_HEADER):
        raise _damaged_batch_error("snappy", "the stream header is cut short")
    position, left = len(_XERIAL_HEADER), limit
    output: list[bytes] = []
    while position < len(view):
        start = position + 4
        size = int.from_bytes(view[position:start], "big")
        position = start + size
        if start > len(view) or position > len(view):
            raise _damaged_batch_error("snappy", "a block is cut short")
        output.append(_unsnappy_block(view[start:position], left, limit))
        left -= len(output[-1])
    return b"".join(output)


def _unsnappy_block(block: memoryview, left: int, limit: int) -> bytes:
    import cramjam

    size = _snappy_size(block)
    if size > left:
        raise _too_large(limit)
    if size > len(block) * _SNAPPY_MAX_RATIO:
        raise _damaged_batch_error("snappy", f"{len(block)} bytes cannot hold {size}")
    try:
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise _damaged_batch_error("snappy", error) from None


def _snappy_size(block: memoryview) -> int:
    size = 0
    for shift, byte in zip(range(0, 35, 7), block, strict=False):
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size
    raise _damaged_batch_error("snappy", "a block has no length")


# --- lz4 --------------------------------------------------------------------------------------------

_LZ4_DEFAULT_LEVEL: Final = 9
_LZ4_PIECE: Final = 262_144


def _lz4(data: Buffer, level: int | None) -> bytes:
    """Independent blocks of 64 KiB without content size: the only frames Kafka's Java readers accept.

    Level 9, Kafka's default, selects the fast compressor there; other levels select the high-compression one.
    """
    import lz4.frame as lz4

    packed: bytes = lz4.compress(
        data,
        compression_level=0 if level in (None, _LZ4_DEFAULT_LEVEL) else level,
        block_size=lz4.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return packed


def _unlz4(data: Buffer, limit: int) -> bytes:
    import lz4.frame as lz4

    frame, piece, left = lz4.LZ4FrameDecompressor(), data, limit
    room = max(_LZ4_PIECE, 4 * len(data))
    output: list[bytes] = []
    while not frame.eof:
        try:
            unpacked = frame.decompress(piece, max_length=min(left + 1, room))
        except RuntimeError as error:
            raise _damaged_batch_error("lz4", error) from None
        left -= len(unpacked)
        if left < 0:
            raise _too_large(limit)
        if not unpacked and not frame.eof:
            raise _damaged_batch_error("lz4", "the frame ends early")
        output.append(unpacked)
        piece, room = b"", 2 * room
    if frame.unused_data:
        raise _damaged_batch_error("lz4", "bytes after the end of the frame")
    return output[0] if len(output) == 1 else b"".join(output)


# --- zstd -------------------------------------------------------------------------------------------

_ZSTD_DEFAULT_LEVEL: Final = 3
_ZSTD_MAX_RATIO: Final = 32_768
"""A run-length block turns four bytes into 128 KiB. Input is fed in pieces sized by what is left of the limit, so
that one piece cannot exceed it by more than the limit itself."""


def _zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard

    packer = zstandard.ZstdCompressor(_ZSTD_DEFAULT_LEVEL if level is None else level)
    return packer.compress(data)


def _unzstd(data: Buffer, limit: int) -> bytes:
    import zstandard

    view, position, left = memoryview(data), 0, limit
    output: list[bytes] = []
    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    while position < len(view):
        if frame.eof:
            frame = decompressor.decompressobj()
        piece = view[position : position + max(64, min(65_536, left // _ZSTD_MAX_RATIO))]
        position += len(piece)
        try:
            unpacked = frame.decompress(piece)
        except zstandard.ZstdError as error:
            raise _damaged_batch_error("zstd", error) from None
        position -= len(frame.unused_data)
        left -= len(unpacked)
        if left < 0:
            raise _too_large(limit)
        output.append(unpacked)
    if not frame.eof:
        raise _damaged_batch_error("zstd", "the frame ends early")
    return b"".join(output)


_COMPRESSORS: Final[dict[int, Callable[[Buffer, int | None], bytes]]] = {
    Codec.NONE: _copy,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESSORS: Final[dict[int, Callable[[Buffer, int], bytes]]] = {
    Codec.NONE: _copy_bounded,
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
