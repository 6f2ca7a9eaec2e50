"""Produce and Fetch as we read and write them are what kio reads and writes, in every version."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import io
import struct
import uuid
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_writer

from moldau.protocol.api import MalformedRequestError, MalformedResponseError
from moldau.protocol.fetch import (
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    decode_fetch_request,
    encode_fetch_response,
)
from moldau.protocol.follower_fetch import decode_follower_fetch, encode_follower_fetch
from moldau.protocol.hot_fields import NodeEndpoint
from moldau.protocol.produce import (
    OnePartitionReply,
    ProducedPartition,
    RecordError,
    decode_one_batch,
    decode_produce_request,
    encode_produce_response,
)

PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)

int16s = st.integers(-(2**15), 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
names = st.text("abcXYZ._-", min_size=1, max_size=200)
uuids = st.uuids().filter(lambda value: value.int != 0)
blobs = st.one_of(st.binary(max_size=300), st.just(bytes(20_000)))


def schema(api: str, version: int, kind: str) -> Any:
    return importlib.import_module(f"kio.schema.{api}.v{version}.{kind}")


def written(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def build(cls: type, **values: Any) -> Any:
    """Fill a kio class with those of the values it has a field for."""
    known = {field.name for field in fields(cls)}
    return cls(**{name: value for name, value in values.items() if name in known})


def ms(value: int) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=value)


def topic_key(version: int, first_with_ids: int, name: str, topic_id: uuid.UUID) -> bytes:
    return topic_id.bytes if version >= first_with_ids else name.encode()


produce_topics = st.lists(
    st.tuples(names, uuids, st.lists(st.tuples(int32s, st.none() | blobs), max_size=4)), max_size=4
)


def produce_request(version: int, transactional_id: str | None, acks: int, timeout_ms: int, topics: Any) -> bytes:
    module = schema("produce", version, "request")
    entity = build(
        module.ProduceRequest,
        transactional_id=transactional_id,
        acks=acks,
        timeout=ms(timeout_ms),
        topic_data=tuple(
            build(
                module.TopicProduceData,
                name=name,
                topic_id=topic_id,
                partition_data=tuple(
                    build(module.PartitionProduceData, index=index, records=records) for index, records in partitions
                ),
            )
            for name, topic_id, partitions in topics
        ),
    )
    return written(entity)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@settings(max_examples=40, deadline=None)
@given(st.none() | names, int16s, int32s, produce_topics)
def test_produce_requests_are_read_as_kio_wrote_them(
    version: int, transactional_id: str | None, acks: int, timeout_ms: int, topics: Any
) -> None:
    # Given a request somewhere in a larger buffer, as in a read of several frames
    body = produce_request(version, transactional_id, acks, timeout_ms, topics)
    view = memoryview(bytearray(b"\x01" * 7 + body + b"\x01" * 40))

    read = decode_produce_request(view, 7, 7 + len(body), version)
    one = decode_one_batch(view, 7, 7 + len(body), version)

    if one is not None:
        acks_read, topic, *batch = one
        assert (None, acks_read, timeout_ms, [(topic, [tuple(batch)])]) == read
    assert read[:3] == (transactional_id and transactional_id.encode(), acks, timeout_ms)
    assert [(topic, [(i, bytes(view[a:b])) for i, a, b in partitions]) for topic, partitions in read[3]] == [
        (topic_key(version, 13, name, topic_id), [(index, records or b"") for index, records in partitions])
        for name, topic_id, partitions in topics
    ]


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@pytest.mark.parametrize("size", [61, 200, 100_000])
def test_the_usual_produce_request_is_read_the_short_way(version: int, size: int) -> None:
    body = produce_request(version, None, -1, 30_000, [("orders", uuid.UUID(int=77), [(3, bytes(size))])])
    one = decode_one_batch(memoryview(body), 0, len(body), version)
    assert one is not None
    assert one[:3] == (-1, topic_key(version, 13, "orders", uuid.UUID(int=77)), 3)
    assert one[4] - one[3] == size


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_produce_request_cut_anywhere_is_malformed(version: int) -> None:
    topic = ("orders", uuid.UUID(int=77), [(0, b"x" * 70), (1, b"y" * 3)])
    body = produce_request(version, "payments", -1, 30_000, [topic, topic])
    for cut in range(len(body)):
        with contextlib.suppress(struct.error, MalformedRequestError):
            assert decode_one_batch(memoryview(body), 0, cut, version) is None
        with pytest.raises(MalformedRequestError):
            decode_produce_request(memoryview(body[:cut]), 0, cut, version)
        # What lies behind the frame in the same buffer must not be taken for a part of it.
        with pytest.raises(MalformedRequestError):
            decode_produce_request(memoryview(body), 0, cut, version)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_noise_is_never_more_than_malformed_to_produce(version: int, data: st.DataObject) -> None:
    body = bytearray(produce_request(version, None, -1, 30_000, [("orders", uuid.UUID(int=77), [(0, b"x" * 40)])]))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        _, _, _, topics = decode_produce_request(memoryview(body), 0, len(body), version)
    except MalformedRequestError:
        return
    for _, partitions in topics:
        assert all(0 <= start <= end <= len(body) for _, start, end in partitions)


produced_partitions = st.builds(
    ProducedPartition,
    partition=int32s,
    error_code=st.integers(-1, 133),
    base_offset=int64s,
    log_append_time_ms=st.just(-1) | st.integers(0, 2**41),
    log_start_offset=int64s,
    record_errors=st.lists(st.builds(RecordError, int32s, st.none() | st.text(max_size=40)), max_size=3),
    error_message=st.none() | st.text(max_size=200),
    current_leader=st.none() | st.tuples(int32s, int32s),
)
endpoints = st.lists(
    st.builds(NodeEndpoint, int32s, st.text(max_size=40), int32s, st.none() | st.text(max_size=10)), max_size=3
)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(names, uuids, st.lists(produced_partitions, max_size=3)), max_size=3),
    st.integers(0, 2**31 - 1),
    endpoints,
)
def test_produce_responses_are_written_as_kio_writes_them(
    version: int, topics: Any, throttle_ms: int, nodes: list[NodeEndpoint]
) -> None:
    frame = encode_produce_response(
        version,
        1234,
        [(topic_key(version, 13, name, topic_id), partitions) for name, topic_id, partitions in topics],
        throttle_ms=throttle_ms,
        node_endpoints=nodes,
    )
    header = (1234).to_bytes(4, "big") + (b"\0" if version >= 9 else b"")
    body = kio_produce_response(version, topics, throttle_ms, nodes)
    assert frame == (len(header) + len(body)).to_bytes(4, "big") + header + body


def kio_produce_response(version: int, topics: Any, throttle_ms: int, nodes: list[NodeEndpoint]) -> bytes:
    module = schema("produce", version, "response")

    def partition(done: ProducedPartition) -> Any:
        values = {
            "index": done.partition,
            "error_code": error(done.error_code),
            "base_offset": done.base_offset,
            "log_append_time": moment(done.log_append_time_ms),
            "log_start_offset": done.log_start_offset,
            "error_message": done.error_message,
        }
        if version >= 8:
            values["record_errors"] = tuple(
                module.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                for index, message in done.record_errors
            )
        if version >= 10 and done.current_leader is not None:
            leader_id, leader_epoch = done.current_leader
            values["current_leader"] = module.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
        return build(module.PartitionProduceResponse, **values)

    values: dict[str, Any] = {
        "throttle_time": ms(throttle_ms),
        "responses": tuple(
            build(
                module.TopicProduceResponse,
                name=name,
                topic_id=topic_id,
                partition_responses=tuple(partition(done) for done in partitions),
            )
            for name, topic_id, partitions in topics
        ),
    }
    if version >= 10:
        values["node_endpoints"] = tuple(module.NodeEndpoint(**node._asdict()) for node in nodes)
    return written(build(module.ProduceResponse, **values))


def error(code: int) -> Any:
    from kio.schema.errors import ErrorCode

    return ErrorCode(code)


def moment(timestamp_ms: int) -> Any:
    if timestamp_ms == -1:
        return None
    return datetime.datetime.fromtimestamp(0, datetime.UTC) + ms(timestamp_ms)


@pytest.mark.parametrize("version", range(5, 14))
def test_the_prepared_reply_is_the_general_one(version: int) -> None:
    topic = uuid.UUID(int=5).bytes if version >= 13 else b"orders"
    done = ProducedPartition(3, 0, 1_000_000, 1_700_000_000_000, 17)
    prepared = OnePartitionReply(version, topic)
    frame = prepared.pack(prepared.size, 9, prepared.prefix, 3, 0, 1_000_000, 1_700_000_000_000, 17, prepared.suffix)
    assert frame == encode_produce_response(version, 9, [(topic, [done])])


fetch_partitions = st.tuples(int32s, int32s, int64s, int32s, int64s, int32s)
fetch_topics = st.lists(st.tuples(names, uuids, st.lists(fetch_partitions, max_size=4)), max_size=4)
forgotten_topics = st.lists(st.tuples(names, uuids, st.lists(int32s, max_size=4)), max_size=3)


def fetch_request(version: int, head: tuple[int, ...], topics: Any, forgotten: Any, *, rack: str, extra: bool) -> bytes:
    module = schema("fetch", version, "request")
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch = head

    def partition(fields: tuple[int, ...]) -> Any:
        index, current_leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset, max_bytes = fields
        values: dict[str, Any] = {
            "partition": index,
            "current_leader_epoch": current_leader_epoch,
            "fetch_offset": fetch_offset,
            "last_fetched_epoch": last_fetched_epoch,
            "log_start_offset": log_start_offset,
            "partition_max_bytes": max_bytes,
        }
        if extra:
            values |= {"replica_directory_id": uuid.UUID(int=3), "high_watermark": 12}
        return build(module.FetchPartition, **values)

    values: dict[str, Any] = {
        "replica_id": replica_id,
        "max_wait": ms(max_wait_ms),
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "isolation_level": isolation_level,
        "session_id": session_id,
        "session_epoch": session_epoch,
        "rack_id": rack,
        "topics": tuple(
            build(
                module.FetchTopic,
                topic=name,
                topic_id=topic_id,
                partitions=tuple(partition(fields) for fields in partitions),
            )
            for name, topic_id, partitions in topics
        ),
    }
    if version >= 7:
        values["forgotten_topics_data"] = tuple(
            build(module.ForgottenTopic, topic=name, topic_id=topic_id, partitions=tuple(partitions))
            for name, topic_id, partitions in forgotten
        )
    if extra:
        values["cluster_id"] = "river"
    if version >= 15:
        values["replica_state"] = module.ReplicaState(replica_id=replica_id, replica_epoch=4)
    return written(build(module.FetchRequest, **values))


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@settings(max_examples=40, deadline=None)
@given(
    head=st.tuples(int32s, int32s, int32s, int32s, st.integers(0, 1), int32s, int32s),
    topics=fetch_topics,
    forgotten=forgotten_topics,
    rack=st.text(max_size=20),
    extra=st.booleans(),
)
def test_fetch_requests_are_read_as_kio_wrote_them(
    version: int, head: tuple[int, ...], topics: Any, forgotten: Any, *, rack: str, extra: bool
) -> None:
    body = fetch_request(version, head, topics, forgotten, rack=rack, extra=extra)
    view = memoryview(b"\x01" * 5 + body + b"\x01" * 40)

    read = decode_fetch_request(view, 5, 5 + len(body), version)

    assert (read.replica_id, read.max_wait_ms, read.min_bytes, read.max_bytes, read.isolation_level) == head[:5]
    assert (read.session_id, read.session_epoch) == (head[5:] if version >= 7 else (0, -1))
    assert read.rack_id == (rack if version >= 11 else "")
    assert [(topic, [tuple(p) for p in partitions]) for topic, partitions in read.topics] == [
        (topic_key(version, 13, name, topic_id), [known_fields(version, fields) for fields in partitions])
        for name, topic_id, partitions in topics
    ]
    expected = [(topic_key(version, 13, name, topic_id), list(indexes)) for name, topic_id, indexes in forgotten]
    assert read.forgotten == (expected if version >= 7 else [])


def known_fields(version: int, fields: tuple[int, ...]) -> tuple[int, ...]:
    index, current_leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset, max_bytes = fields
    return (
        index,
        current_leader_epoch if version >= 9 else -1,
        fetch_offset,
        last_fetched_epoch if version >= 12 else -1,
        log_start_offset if version >= 5 else -1,
        max_bytes,
    )


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_fetch_request_cut_anywhere_is_malformed(version: int) -> None:
    topic = ("orders", uuid.UUID(int=77), [(0, 1, 2, 3, 4, 5), (1, 1, 2, 3, 4, 5)])
    forgotten = ("old", uuid.UUID(int=78), [1, 2])
    body = fetch_request(version, (2, 500, 1, 2**20, 1, 9, 8), [topic, topic], [forgotten], rack="rack-1", extra=True)
    for cut in range(len(body)):
        with pytest.raises(MalformedRequestError):
            decode_fetch_request(memoryview(body[:cut]), 0, cut, version)
        with pytest.raises(MalformedRequestError):
            decode_fetch_request(memoryview(body), 0, cut, version)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_noise_is_never_more_than_malformed_to_fetch(version: int, data: st.DataObject) -> None:
    topic = ("orders", uuid.UUID(int=77), [(0, 1, 2, 3, 4, 5)])
    body = bytearray(fetch_request(version, (2, 500, 1, 2**20, 1, 9, 8), [topic], [], rack="", extra=False))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_fetch_request(memoryview(body), 0, len(body), version)
    except MalformedRequestError:
        pass


class FileBytes:
    """Stands for a range of a file that will be sent later."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @property
    def length(self) -> int:
        return len(self.data)


epochs_and_offsets = st.tuples(int32s, int64s)
fetched_partitions = st.builds(
    FetchedPartition,
    partition=int32s,
    error_code=st.integers(-1, 133),
    high_watermark=int64s,
    last_stable_offset=int64s,
    log_start_offset=int64s,
    aborted=st.none() | st.lists(st.tuples(int64s, int64s), max_size=3),
    preferred_read_replica=int32s,
    records=blobs | st.builds(FileBytes, blobs),
    diverging_epoch=st.none() | epochs_and_offsets,
    current_leader=st.none() | st.tuples(int32s, int32s),
    snapshot_id=st.none() | st.tuples(int64s, int32s),
)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@settings(max_examples=40, deadline=None)
@given(
    topics=st.lists(st.tuples(names, uuids, st.lists(fetched_partitions, max_size=3)), max_size=3),
    throttle_ms=st.integers(0, 2**31 - 1),
    error_code=st.integers(-1, 133),
    session_id=int32s,
    nodes=endpoints,
)
def test_fetch_responses_are_written_as_kio_writes_them(
    version: int, topics: Any, *, throttle_ms: int, error_code: int, session_id: int, nodes: list[NodeEndpoint]
) -> None:
    parts, size = encode_fetch_response(
        version,
        1234,
        [(topic_key(version, 13, name, topic_id), partitions) for name, topic_id, partitions in topics],
        error_code=error_code,
        session_id=session_id,
        throttle_ms=throttle_ms,
        node_endpoints=nodes,
    )
    frame = b"".join(part if isinstance(part, bytes) else part.data for part in parts)
    header = (1234).to_bytes(4, "big") + (b"\0" if version >= 12 else b"")
    body = kio_fetch_response(
        version, topics, throttle_ms=throttle_ms, error_code=error_code, session_id=session_id, nodes=nodes
    )
    assert frame == (len(header) + len(body)).to_bytes(4, "big") + header + body
    assert size == len(frame)


def kio_fetch_response(
    version: int, topics: Any, *, throttle_ms: int, error_code: int, session_id: int, nodes: list[NodeEndpoint]
) -> bytes:
    module = schema("fetch", version, "response")

    def partition(done: FetchedPartition[FileBytes]) -> Any:
        aborted = done.aborted
        values: dict[str, Any] = {
            "partition_index": done.partition,
            "error_code": error(done.error_code),
            "high_watermark": done.high_watermark,
            "last_stable_offset": done.last_stable_offset,
            "log_start_offset": done.log_start_offset,
            "aborted_transactions": aborted
            and tuple(module.AbortedTransaction(producer_id=a, first_offset=b) for a, b in aborted),
            "preferred_read_replica": done.preferred_read_replica,
            "records": done.records if isinstance(done.records, bytes) else done.records.data,
        }
        if aborted is not None:
            values["aborted_transactions"] = values["aborted_transactions"] or ()
        if version >= 12:
            if done.diverging_epoch is not None:
                epoch, end_offset = done.diverging_epoch
                values["diverging_epoch"] = module.EpochEndOffset(epoch=epoch, end_offset=end_offset)
            if done.current_leader is not None:
                leader_id, leader_epoch = done.current_leader
                values["current_leader"] = module.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
            if done.snapshot_id is not None:
                end_offset, epoch = done.snapshot_id
                values["snapshot_id"] = module.SnapshotId(end_offset=end_offset, epoch=epoch)
        return build(module.PartitionData, **values)

    values: dict[str, Any] = {
        "throttle_time": ms(throttle_ms),
        "error_code": error(error_code),
        "session_id": session_id,
        "responses": tuple(
            build(
                module.FetchableTopicResponse,
                topic=name,
                topic_id=topic_id,
                partitions=tuple(partition(done) for done in partitions),
            )
            for name, topic_id, partitions in topics
        ),
    }
    if version >= 16:
        values["node_endpoints"] = tuple(module.NodeEndpoint(**node._asdict()) for node in nodes)
    return written(build(module.FetchResponse, **values))


# --- followers: the other side of the codecs above -----------------------------------------------------

FOLLOWER_VERSIONS = range(15, 19)
follower_topics = st.lists(
    st.tuples(uuids.map(lambda value: value.bytes), st.lists(fetch_partitions.map(FetchPartition._make), max_size=4)),
    max_size=4,
)


@pytest.mark.parametrize("version", FOLLOWER_VERSIONS)
@settings(max_examples=40, deadline=None)
@given(
    request=st.builds(
        FetchRequest,
        replica_id=int32s,
        max_wait_ms=int32s,
        min_bytes=int32s,
        max_bytes=int32s,
        session_id=int32s,
        session_epoch=int32s,
        topics=follower_topics,
        forgotten=st.lists(st.tuples(uuids.map(lambda value: value.bytes), st.lists(int32s, max_size=4)), max_size=3),
        rack_id=st.text("abc-", max_size=20),
        replica_epoch=int64s,
    )
)
def test_what_a_follower_asks_is_what_its_leader_reads(version: int, request: FetchRequest) -> None:
    body = encode_follower_fetch(version, request)
    assert decode_fetch_request(memoryview(body), 0, len(body), version) == request


@pytest.mark.parametrize("version", FOLLOWER_VERSIONS)
@settings(max_examples=40, deadline=None)
@given(
    topics=st.lists(st.tuples(uuids, st.lists(fetched_partitions, max_size=3)), max_size=3),
    error_code=st.integers(-1, 133),
    session_id=int32s,
    nodes=endpoints,
)
def test_what_a_leader_answers_is_what_its_follower_reads(
    version: int, topics: Any, *, error_code: int, session_id: int, nodes: list[NodeEndpoint]
) -> None:
    for _, partitions in topics:
        for done in partitions:
            done.aborted = None
    parts, _ = encode_fetch_response(
        version,
        7,
        [(topic_id.bytes, partitions) for topic_id, partitions in topics],
        error_code=error_code,
        session_id=session_id,
        node_endpoints=nodes,
    )
    frame = b"".join(part if isinstance(part, bytes) else part.data for part in parts)
    body = frame[9:]

    read = decode_follower_fetch(memoryview(body))

    assert (read.error_code, read.session_id) == (error_code, session_id)
    assert [(*one[:6], bytes(one.records)) for one in read.answers] == [
        (
            topic_id.bytes,
            done.partition,
            done.error_code,
            done.high_watermark,
            done.log_start_offset,
            done.diverging_epoch,
            done.records if isinstance(done.records, bytes) else done.records.data,
        )
        for topic_id, partitions in topics
        for done in partitions
    ]
    for cut in range(0, len(body), max(1, len(body) // 20)):
        with pytest.raises(MalformedResponseError):
            decode_follower_fetch(memoryview(body[:cut]))


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_noise_is_never_more_than_malformed_to_a_follower(data: st.DataObject) -> None:
    answer = FetchedPartition(0, records=b"x" * 40, diverging_epoch=(3, 4))
    parts, _ = encode_fetch_response(17, 7, [(bytes(16), [answer])])  # type: ignore[type-var]
    body = bytearray(b"".join(part for part in parts if isinstance(part, bytes))[9:])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedResponseError):
        decode_follower_fetch(memoryview(body))
