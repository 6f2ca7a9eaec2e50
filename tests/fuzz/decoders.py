"""Every decoder that meets bytes we did not write, as targets: what to feed, what to start from, what it may say.

A target may return anything or raise one of its refusals; all else is a finding. Start at `TARGETS`.
"""

from __future__ import annotations

import dataclasses
import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from crc32c import crc32c
from tests.property.protocol_schemas import api_versions, entity_class, example, written

from moldau.controller.snapshots import decode_snapshot
from moldau.core.ids import TopicPartition, parse_uuid
from moldau.core.properties import parse_properties
from moldau.log.directories.checkpoints import parse_checkpoint, render_checkpoint
from moldau.log.directories.meta_properties import MetaProperties
from moldau.log.dump.dump_coordinators import decode_record
from moldau.log.errors import CorruptIndexError, CorruptSnapshotError
from moldau.log.leader_epochs import LeaderEpochs
from moldau.log.producer_state import ProducerStates, read_marker
from moldau.log.segments.offset_index import OffsetIndex
from moldau.log.segments.record_spans import record_spans, unpacked_body
from moldau.log.segments.time_index import TimeIndex
from moldau.log.segments.txn_index import TxnIndex
from moldau.protocol.api import (
    APIS,
    ApiKey,
    MalformedRequestError,
    MalformedResponseError,
    decode_request_header,
    decode_response_header,
    encode_request_header,
)
from moldau.protocol.compression import Codec, DecompressionError, compress, decompress
from moldau.protocol.consumer_protocol import decode_assignment, decode_subscription
from moldau.protocol.control_records import decode_control, encode_control
from moldau.protocol.coordinator_records import GROUP_KEYS, TRANSACTION_KEYS, RecordKey
from moldau.protocol.fetch import decode_fetch_request
from moldau.protocol.messages import Message, decode_request, decode_response
from moldau.protocol.metadata_records import (
    METADATA_RECORDS,
    decode_metadata_record,
    encode_metadata_record,
)
from moldau.protocol.produce import decode_produce_request
from moldau.protocol.record_schemas import MalformedRecordError
from moldau.protocol.records import (
    ControlType,
    InvalidRecordError,
    Record,
    control_batch,
    decode_records,
    encode_batch,
    end_transaction_marker,
    split_batches,
    validated_records,
)

LIMIT = 1 << 20
"""Bytes that a batch may unpack to here."""


class Target(NamedTuple):
    name: str
    feed: Callable[[bytes], object]
    seeds: Sequence[bytes]
    refusals: tuple[type[Exception], ...]


# --- frames -----------------------------------------------------------------------------------------


def feed_frame(frame: bytes) -> None:
    """The way of a request: header first, then the decoder of its API."""
    header = decode_request_header(memoryview(frame))
    known = APIS.get(header.api_key)
    if known is None or not known.first <= header.api_version <= known.last:
        return
    view = memoryview(frame)
    decode_request(header.api_key, header.api_version, view[header.body_position :])
    if header.api_key == ApiKey.PRODUCE:
        decode_produce_request(view, header.body_position, len(view), header.api_version)
    if header.api_key == ApiKey.FETCH:
        decode_fetch_request(view, header.body_position, len(view), header.api_version)


@functools.cache
def frames() -> list[bytes]:
    return [
        encode_request_header(api_key, version, 7, "fuzz") + written(example(entity_class(api_key, version, "request")))
        for api_key, version in api_versions()
    ]


def hot_frames() -> list[bytes]:
    return [
        encode_request_header(api_key, version, 7, "fuzz")
        + written(example(entity_class(api_key, version, "request"), seed))
        for api_key, version in api_versions()
        if api_key in (ApiKey.PRODUCE, ApiKey.FETCH)
        for seed in range(3)
    ]


def feed_response(data: bytes) -> None:
    """Two bytes choose the API and its version, the rest is a response frame."""
    if len(data) < 2:
        return
    api_key = list(APIS)[data[0] % len(APIS)]
    known = APIS[api_key]
    version = known.first + data[1] % (known.last - known.first + 1)
    _, position = decode_response_header(api_key, version, data[2:])
    decode_response(api_key, version, data[2 + position :])


@functools.cache
def responses() -> list[bytes]:
    keys = list(APIS)
    return [
        bytes([keys.index(api_key), version - APIS[api_key].first])
        + bytes(4)
        + b"\0" * (version >= APIS[api_key].flexible_from and api_key != ApiKey.API_VERSIONS)
        + written(example(entity_class(api_key, version, "response")))
        for api_key, version in api_versions()
    ]


# --- batches and records ----------------------------------------------------------------------------


def feed_batches(data: bytes) -> None:
    """All that open a batch see it; what one refuses, the next must still refuse or read."""
    for header, batch in split_batches(data):
        for read in (
            lambda: list(decode_records(batch, header, limit=LIMIT)),  # noqa: B023 (called at once)
            lambda: validated_records(batch, header, limit=LIMIT),  # noqa: B023
            lambda: list(record_spans(unpacked_body(batch, header, LIMIT), header)),  # noqa: B023
            lambda: read_marker(batch, header),  # noqa: B023
        ):
            try:
                read()
            except InvalidRecordError:
                pass


def batches() -> list[bytes]:
    records = [Record(n, n, b"key", b"value" * n, (("h", b"x"), ("n", None))) for n in range(4)]
    return [
        *(encode_batch(records, base_timestamp=1_000, codec=codec) for codec in Codec),
        end_transaction_marker(ControlType.COMMIT, timestamp=1, producer_id=1, producer_epoch=0, coordinator_epoch=0),
        encode_batch(records, base_timestamp=0) + encode_batch([], base_timestamp=0),
    ]


def feed_compressed(data: bytes) -> None:
    if data:
        decompress(data[0] % 8, data[1:], LIMIT)


def compressed() -> list[bytes]:
    texts = (b"", b"moldau " * 400, bytes(range(256)) * 3)
    return [bytes([codec]) + compress(codec, text) for codec in Codec for text in texts]


SAMPLES = {"string": "name", "bytes": b"bytes", "bool": True, "float64": 0.5, "uuid": UUID(int=1 << 99)}


def sample_record(cls: Any) -> Any:
    """A record with something in every field, by the wire types that the fields carry."""

    def value(wire: Any) -> Any:
        one = SAMPLES.get(wire.type, 3) if isinstance(wire.type, str) else sample_record(wire.type)
        return (one, one) if wire.is_array else one

    return cls(**{field.name: value(field.metadata["wire"]) for field in dataclasses.fields(cls)})


def metadata_values() -> list[bytes]:
    return [
        encode_metadata_record(sample_record(cls), version)
        for cls in METADATA_RECORDS.values()
        for version in range(cls.NEWEST + 1)
    ]


def control_values() -> list[bytes]:
    change = Message(leader_id=1, voters=[Message(voter_id=1)], granting_voters=[])
    header = Message(last_contained_log_timestamp=4)
    return [
        bytes([2]) + encode_control(ControlType.LEADER_CHANGE, change),
        bytes([2]) + encode_control(ControlType.LEADER_CHANGE, change, 1),
        bytes([3]) + encode_control(ControlType.SNAPSHOT_HEADER, header),
        bytes([6]) + encode_control(ControlType.KRAFT_VOTERS, Message(voters=[Message(voter_id=1)])),
    ]


def snapshots() -> list[bytes]:
    header = encode_control(ControlType.SNAPSHOT_HEADER, Message(last_contained_log_timestamp=4))
    footer = encode_control(ControlType.SNAPSHOT_FOOTER, Message())
    values = [Record(n, 0, None, value) for n, value in enumerate(metadata_values()[:4])]
    return [
        control_batch(ControlType.SNAPSHOT_HEADER, header, timestamp=1)
        + encode_batch(values, base_timestamp=1)
        + control_batch(ControlType.SNAPSHOT_FOOTER, footer, timestamp=1)
    ]


# --- coordinators -----------------------------------------------------------------------------------

MEMBER_KEY = "000500066b697038343800164466436a6467486751374738425a5568467930417751"
GROUP_RECORDS = {
    "000100066b69703834380002743200000000": (
        "000400000000000000070000000001000001a1e08c5f80010010d3dc6586c4b04897a1b0fdc62ab4ec4a"
    ),
    MEMBER_KEY: "000000000872646b61666b610b2f3132372e302e302e31030c66697273745f746f70696303743201000493e00001000100",
    "000800066b697038343800164466436a6467486751374738425a5568467930417751": (
        "00000000000200000000000346c77985bb32441884cbdb7d101a1ef60400000000000000010000000201000d0400000002000000020000"
        "0002d3dc6586c4b04897a1b0fdc62ab4ec4a020000000001000502000000020100"
    ),
}
"""Keys and values of `__consumer_offsets` as Apache Kafka wrote them."""


TRANSACTION = {
    "0000000474782d31": "0001000000000000000000000000ea600401000001a1e08b8c7a000001a1e08b8c510100080000000000000000",
}


def feed_coordinator_record(known: Mapping[int, type[RecordKey]]) -> Callable[[bytes], None]:
    def feed(data: bytes) -> None:
        """One byte tells how long the key is; the rest is the value."""
        size = data[0] if data else 0
        found = decode_record(data[1 : 1 + size], data[1 + size :], known)
        assert found is None or found.value is not None

    return feed


def coordinator_records(records: Mapping[str, str]) -> list[bytes]:
    return [bytes([len(key) // 2]) + bytes.fromhex(key + value) for key, value in records.items()]


def feed_consumer_protocol(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        try:
            decode(data)
        except MalformedRecordError:
            continue


# --- files ------------------------------------------------------------------------------------------


def feed_producer_snapshot(data: bytes) -> None:
    """With the checksum put right, since otherwise no change would get past it."""
    ProducerStates.decode(data)
    ProducerStates.decode(data[:2] + struct.pack(">I", crc32c(data[6:])) + data[6:])


def producer_snapshots() -> list[bytes]:
    entry = struct.pack(">qhiqiqiq", 1, 0, 5, 100, 3, 1_000, -1, -1)
    return [struct.pack(">hIi", 1, crc32c(struct.pack(">i", n) + entry * n), n) + entry * n for n in (0, 1, 3)]


def text(parse: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: parse(data.decode("utf-8", "replace"))


PROPERTIES = b"version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n"

TARGETS = [
    Target("request frames", feed_frame, frames(), (MalformedRequestError,)),
    Target("produce and fetch frames", feed_frame, hot_frames(), (MalformedRequestError,)),
    Target("response frames", feed_response, responses(), (MalformedResponseError,)),
    Target("record batches", feed_batches, batches(), (InvalidRecordError,)),
    Target("compressed bodies", feed_compressed, compressed(), (DecompressionError,)),
    Target("metadata records", decode_metadata_record, metadata_values(), (MalformedRecordError,)),
    Target(
        "control records",
        lambda data: decode_control(data[0], data[1:]) if data else None,
        control_values(),
        (MalformedRecordError,),
    ),
    Target(
        "records of groups",
        feed_coordinator_record(GROUP_KEYS),
        coordinator_records(GROUP_RECORDS),
        (MalformedRecordError,),
    ),
    Target(
        "records of transactions",
        feed_coordinator_record(TRANSACTION_KEYS),
        coordinator_records(TRANSACTION),
        (MalformedRecordError,),
    ),
    Target(
        "consumer protocol",
        feed_consumer_protocol,
        [
            b"\0\1\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\2xy",
            b"\0\3\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0\0\0\0\7\0\1r",
        ],
        (),
    ),
    Target("metadata snapshots", decode_snapshot, snapshots(), (MalformedRecordError, InvalidRecordError)),
    Target("producer snapshots", feed_producer_snapshot, producer_snapshots(), (CorruptSnapshotError,)),
    Target("offset indexes", lambda data: OffsetIndex.decode(0, data), [bytes(range(24))], (CorruptIndexError,)),
    Target("time indexes", lambda data: TimeIndex.decode(0, data), [bytes(range(36))], (CorruptIndexError,)),
    Target("transaction indexes", TxnIndex.decode, [bytes(34), bytes(68)], (CorruptIndexError,)),
    Target(
        "offset checkpoints",
        text(parse_checkpoint),
        [render_checkpoint({TopicPartition("t", 0): 5, TopicPartition("a-1", 2): 7}).encode()],
        (ValueError,),
    ),
    Target("leader epoch checkpoints", text(LeaderEpochs.parse), [b"0\n2\n0 0\n3 17\n"], (ValueError,)),
    Target("meta.properties", text(MetaProperties.parse), [PROPERTIES], (ValueError,)),
    Target("property files", text(parse_properties), [PROPERTIES, b"a\\u0041 : b\\\n  c\n#x\n!y\n"], ()),
    Target("ids", text(parse_uuid), [b"AAAAAAAAAAAAAAAAAAAAAQ"], (ValueError,)),
]
