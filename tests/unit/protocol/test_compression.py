"""Codecs: what others wrote is read, what is damaged or too large is refused."""

from __future__ import annotations

import gzip
import os
import struct
import time

import cramjam
import lz4.frame
import pytest
import zstandard

from moldau.protocol.compression import Codec, DecompressionError, compress, decompress

PACKING = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"".join(b"%d: the quick brown fox\n" % n for n in range(20_000))
XERIAL = b"\x82SNAPPY\x00"


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("data", [b"", b"x", TEXT, os.urandom(100_000)], ids=["empty", "one", "text", "noise"])
def test_what_is_packed_unpacks_to_the_same(codec: Codec, data: bytes) -> None:
    assert decompress(codec, memoryview(compress(codec, data))) == data


@pytest.mark.parametrize(("codec", "level"), [(Codec.GZIP, 1), (Codec.GZIP, 9), (Codec.LZ4, 1), (Codec.LZ4, 17),
                                              (Codec.ZSTD, -131072), (Codec.ZSTD, 22)])  # fmt: skip
def test_the_whole_scale_of_levels_is_accepted(codec: Codec, level: int) -> None:
    assert decompress(codec, compress(codec, TEXT[:9_000], level)) == TEXT[:9_000]


@pytest.mark.parametrize(("codec", "low", "high"), [(Codec.GZIP, 1, 9), (Codec.LZ4, 9, 12), (Codec.ZSTD, -100, 12)])
def test_a_thorough_level_packs_tighter(codec: Codec, low: int, high: int) -> None:
    assert len(compress(codec, TEXT, high)) < len(compress(codec, TEXT, low))


@pytest.mark.parametrize("codec", PACKING)
def test_data_cut_anywhere_is_damaged_data(codec: Codec) -> None:
    packed = compress(codec, TEXT[:3_000])
    for end in range(len(packed)):
        if codec is Codec.SNAPPY and end == 16:
            continue  # a stream header alone is an empty stream
        with pytest.raises(DecompressionError):
            decompress(codec, packed[:end])


@pytest.mark.parametrize("codec", PACKING)
def test_flipped_bits_give_data_or_one_error(codec: Codec) -> None:
    packed = bytearray(compress(codec, TEXT[:2_000]))
    for position in range(0, len(packed), 3):
        packed[position] ^= 0x41
        try:
            decompress(codec, packed, 1_000_000)
        except DecompressionError:
            pass
        packed[position] ^= 0x41


@pytest.mark.parametrize("codec", list(Codec))
def test_the_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    with pytest.raises(DecompressionError, match="more than"):
        decompress(codec, packed, len(TEXT) - 1)


@pytest.mark.parametrize("codec", PACKING)
def test_a_bomb_is_refused_long_before_it_is_unpacked(codec: Codec) -> None:
    bomb = compress(codec, bytes(60_000_000))
    began = time.process_time()
    with pytest.raises(DecompressionError, match="more than 1000000 bytes"):
        decompress(codec, bomb, 1_000_000)
    assert time.process_time() - began < 1.0


def test_snappy_of_java_is_a_stream_of_32_kib_blocks() -> None:
    packed = compress(Codec.SNAPPY, bytes(40_000))
    assert packed[:16] == XERIAL + struct.pack(">ii", 1, 1)
    (size,) = struct.unpack_from(">i", packed, 16)
    assert len(bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + size]))) == 32_768


def test_snappy_of_librdkafka_is_one_bare_block() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_snappy_streams_with_little_endian_versions_are_read() -> None:
    packed = compress(Codec.SNAPPY, TEXT)
    assert decompress(Codec.SNAPPY, XERIAL + struct.pack("<ii", 1, 1) + packed[16:]) == TEXT


def test_a_snappy_block_that_lies_about_its_size_is_not_believed() -> None:
    with pytest.raises(DecompressionError, match="cannot hold"):
        decompress(Codec.SNAPPY, b"\x80\x80\x80\x20" + bytes(10))


def test_gzip_of_several_members_is_read() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two")) == b"one two"


def test_gzip_of_countless_empty_members_is_refused() -> None:
    with pytest.raises(DecompressionError, match="members"):
        decompress(Codec.GZIP, gzip.compress(b"") * 5_000)


def test_lz4_is_written_in_the_only_frame_java_reads() -> None:
    info = lz4.frame.get_frame_info(compress(Codec.LZ4, TEXT))
    assert info["block_linked"] is False
    assert info["block_size"] == 65_536
    assert (info["content_size"], info["content_checksum"], info["block_checksum"]) == (0, False, False)


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("with_extras", [False, True])
def test_lz4_with_larger_blocks_sizes_and_checksums_is_read(block_size: int, with_extras: bool) -> None:
    packed = lz4.frame.compress(
        TEXT, block_size=block_size, store_size=with_extras, content_checksum=with_extras, block_checksum=with_extras
    )
    assert decompress(Codec.LZ4, packed) == TEXT


def test_zstd_with_and_without_content_size_and_in_several_frames_is_read() -> None:
    with_size = zstandard.ZstdCompressor(write_content_size=True, write_checksum=True).compress(TEXT)
    streaming = zstandard.ZstdCompressor().compressobj()
    without_size = streaming.compress(TEXT) + streaming.flush()
    assert decompress(Codec.ZSTD, with_size + without_size) == TEXT * 2


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_nobody_defined_are_refused(codec: int) -> None:
    with pytest.raises(DecompressionError):
        decompress(codec, b"data")
    with pytest.raises(ValueError, match="not a compression codec"):
        compress(codec, b"data")
