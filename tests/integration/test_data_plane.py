"""Produce, Fetch and their relatives, seen from the wire."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Iterator

import pytest
from tests.integration.raw_client import RawClient, batch_of, fetch_request, produce_request

from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message
from moldau.protocol.record_batch import BatchHeader
from moldau.protocol.records import decode_records, split_batches
from moldau.testing.broker import Broker

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
DELETE_RECORDS, INIT_PRODUCER_ID, OFFSET_FOR_LEADER_EPOCH = 21, 22, 23


@pytest.fixture(scope="module", params=["false", "true"], ids=["loop appends", "thread appends"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    settings = {"message.max.bytes": "2000000", "auto.create.topics.enable": "false"}
    with Broker(settings | {"moldau.append.thread": request.param}) as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker.port) as connected:
        yield connected


@pytest.fixture
def topic(client: RawClient) -> str:
    name = f"t-{uuid.uuid4().hex[:10]}"
    client.create_topic(name)
    return name


def values(records: bytes) -> list[bytes | None]:
    batches = split_batches(records)
    return [record.value for header, batch in batches for record in decode_records(batch, header)]


def topic_id_of(client: RawClient, topic: str) -> uuid.UUID:
    request = Message(topics=[Message(name=topic, topic_id=None)], allow_auto_topic_creation=False)
    topic_id: uuid.UUID = client.ask(METADATA, 12, request).topics[0].topic_id
    return topic_id


# Produce


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_appends_and_tells_the_offset(client: RawClient, topic: str, version: int) -> None:
    assert client.produce(topic, batch_of(b"a", b"b"), version=version).base_offset == 0
    second = client.produce(topic, batch_of(b"c"), version=version)
    assert (second.error_code, second.base_offset, second.log_append_time_ms) == (0, 2, -1)
    assert values(client.fetch(topic, 0).records) == [b"a", b"b", b"c"]


def test_version_13_names_topics_by_id(client: RawClient, topic: str) -> None:
    request = produce_request(topic, batch_of(b"a"))
    request.topic_data[0].topic_id = topic_id_of(client, topic)
    done = client.ask(PRODUCE, 13, request).responses[0]
    assert (done.topic_id, done.partition_responses[0].error_code) == (request.topic_data[0].topic_id, 0)

    request.topic_data[0].topic_id = uuid.uuid4()
    done = client.ask(PRODUCE, 13, request).responses[0]
    assert done.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_offsets_and_leader_epoch_are_stamped_into_the_batch(client: RawClient, topic: str) -> None:
    client.produce(topic, batch_of(b"a", b"b"))
    client.produce(topic, batch_of(b"c"))
    second = next(split_batches(client.fetch(topic, 2).records))[0]
    assert (second.base_offset, second.partition_leader_epoch) == (2, 0)


def test_one_request_may_serve_many_partitions_and_each_has_its_own_fate(client: RawClient) -> None:
    client.create_topic("many", partitions=2)
    request = produce_request("many", batch_of(b"a"))
    request.topic_data[0].partition_data += [
        Message(index=1, records=batch_of(b"b")),
        Message(index=7, records=batch_of(b"c")),
    ]
    request.topic_data.append(Message(name="nowhere", partition_data=[Message(index=0, records=batch_of(b"d"))]))
    done = client.ask(PRODUCE, 8, request).responses
    assert [(one.index, one.error_code) for one in done[0].partition_responses] == [(0, 0), (1, 0), (7, 3)]
    assert done[1].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_acks_zero_is_not_answered_and_a_failure_closes(client: RawClient, topic: str) -> None:
    client.send(client.frame(PRODUCE, 7, produce_request(topic, batch_of(b"quiet"), acks=0)))
    assert client.produce(topic, batch_of(b"loud"), version=7).base_offset == 1
    client.send(client.frame(PRODUCE, 7, produce_request("nowhere", batch_of(b"x"), acks=0)))
    assert client.is_closed_by_broker()


def test_acks_are_minus_one_zero_or_one(client: RawClient, topic: str) -> None:
    assert client.produce(topic, batch_of(b"x"), acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_a_batch_sent_again_gets_the_offset_of_the_first(client: RawClient, topic: str) -> None:
    producer = client.ask(INIT_PRODUCER_ID, 4, Message(transactional_id=None, transaction_timeout_ms=1000))
    fields = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    first = batch_of(b"a", b"b", base_sequence=0, **fields)
    assert client.produce(topic, first).base_offset == 0
    assert client.produce(topic, batch_of(b"c", base_sequence=2, **fields)).base_offset == 2
    assert client.produce(topic, first).base_offset == 0
    gap = client.produce(topic, batch_of(b"e", base_sequence=9, **fields))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert values(client.fetch(topic, 0).records) == [b"a", b"b", b"c"]


def test_producer_ids_are_never_given_twice(client: RawClient) -> None:
    request = Message(transactional_id=None, transaction_timeout_ms=1000)
    ids = [client.ask(INIT_PRODUCER_ID, version, request).producer_id for version in (0, 1, 2, 3, 4, 5) * 3]
    assert len(set(ids)) == len(ids)


def test_transactional_ids_have_no_coordinator_yet(client: RawClient) -> None:
    request = Message(transactional_id="payments", transaction_timeout_ms=1000)
    assert client.ask(INIT_PRODUCER_ID, 4, request).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_append_time_topics_get_the_brokers_time(client: RawClient) -> None:
    client.create_topic("stamped", **{"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    done = client.produce("stamped", batch_of(b"a", timestamp=1))
    header = next(split_batches(client.fetch("stamped", 0).records))[0]
    assert before <= done.log_append_time_ms == header.max_timestamp
    assert header.has_log_append_time


def test_compacted_topics_refuse_records_without_key(client: RawClient) -> None:
    client.create_topic("keyed", **{"cleanup.policy": "compact"})
    refused = client.produce("keyed", batch_of(b"a", b"b", key=None))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.record_errors] == [0, 1]
    assert "key" in refused.error_message
    assert client.produce("keyed", batch_of(b"a")).base_offset == 0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("sent_codec", [0, 1, 3])
def test_topics_with_a_codec_of_their_own_recompress(client: RawClient, codec: str, sent_codec: int) -> None:
    name = f"packed-{codec}-{sent_codec}"
    client.create_topic(name, **{"compression.type": codec})
    lines = [b"line %d " % number * 10 for number in range(100)]
    for expected in (0, 100, 200):
        assert client.produce(name, batch_of(*lines, codec=sent_codec)).base_offset == expected
    records = client.fetch(name, 0).records
    codecs = {header.codec for header, _ in split_batches(records)}
    assert codecs == {["uncompressed", "gzip", "snappy", "lz4", "zstd"].index(codec)}
    assert values(records) == lines * 3


def test_order_is_kept_where_bodies_are_opened_in_threads(client: RawClient) -> None:
    client.create_topic("ordered", **{"compression.type": "gzip"})
    sizes = [200_000, 10, 50_000, 1, 100_000, 5]
    for number, size in enumerate(sizes):
        client.send(client.frame(PRODUCE, 9, produce_request("ordered", batch_of(b"%d" % number, bytes(size)))))
    offsets = [client.receive(PRODUCE, 9).responses[0].partition_responses[0].base_offset for _ in sizes]
    assert offsets == [0, 2, 4, 6, 8, 10]
    assert values(client.fetch("ordered", 0).records)[::2] == [b"%d" % number for number in range(6)]


def test_timestamps_too_far_ahead_are_named_record_by_record(client: RawClient, topic: str) -> None:
    ahead = int(time.time() * 1000) + 2 * 3_600_000
    refused = client.produce(topic, batch_of(b"a", timestamp=ahead))
    assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in refused.record_errors] == [0]


def test_flush_on_ack_answers_after_the_disk_has_it_and_in_order(broker: Broker, client: RawClient) -> None:
    client.create_topic("durable", **{"moldau.flush.on.ack": "true"})
    for number in range(50):
        client.send(client.frame(PRODUCE, 9, produce_request("durable", batch_of(b"%d" % number)), number))
    frames = [client.receive_frame() for _ in range(50)]
    assert [int.from_bytes(frame[:4], "big") for frame in frames] == list(range(50))
    assert broker.node is not None
    assert broker.node.broker is not None
    log = next(one.log for one in broker.node.broker.partitions if one.topic.name == "durable")
    assert log.recovery_point == 50


# Fetch


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_fetches(client: RawClient, topic: str, version: int) -> None:
    client.produce(topic, batch_of(b"a", b"b"))
    found = client.fetch(topic, 1, version=version)
    assert (found.error_code, found.high_watermark, values(found.records)) == (0, 2, [b"a", b"b"])
    assert client.fetch(topic, 2, version=version).records == b""


@pytest.mark.parametrize("version", range(13, 19))
def test_versions_with_topic_ids_fetch(client: RawClient, topic: str, version: int) -> None:
    client.produce(topic, batch_of(b"a"))
    request = fetch_request(topic)
    request.topics[0].topic_id = topic_id_of(client, topic)
    assert values(client.ask(FETCH, version, request).responses[0].partitions[0].records) == [b"a"]
    request.topics[0].topic_id = uuid.uuid4()
    answer = client.ask(FETCH, version, request).responses[0].partitions[0]
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_offsets_outside_of_the_log_are_out_of_range(client: RawClient, topic: str) -> None:
    client.produce(topic, batch_of(b"a"))
    for offset in (-1, 2, 100):
        assert client.fetch(topic, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.fetch(topic, 1).error_code == 0


def test_leader_epochs_are_compared(client: RawClient, topic: str) -> None:
    client.produce(topic, batch_of(b"a"))
    assert client.fetch(topic, 0, current_leader_epoch=0).error_code == 0
    assert client.fetch(topic, 0, current_leader_epoch=5).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_an_empty_partition_is_waited_for_and_no_longer_than_asked(client: RawClient, topic: str) -> None:
    began = time.monotonic()
    found = client.fetch(topic, 0, max_wait_ms=300)
    assert 0.29 <= time.monotonic() - began < 2
    assert (found.error_code, found.records) == (0, b"")


def test_a_waiting_fetch_wakes_when_data_comes(broker: Broker, client: RawClient, topic: str) -> None:
    with RawClient(broker.port) as reader:
        reader.send(reader.frame(FETCH, 11, fetch_request(topic, max_wait_ms=20_000)))
        began = time.monotonic()
        client.produce(topic, batch_of(b"news"))
        found = reader.receive(FETCH, 11).responses[0].partitions[0]
        assert time.monotonic() - began < 5
        assert values(found.records) == [b"news"]


def test_a_fetch_waits_for_min_bytes(broker: Broker, client: RawClient, topic: str) -> None:
    with RawClient(broker.port) as reader:
        reader.send(reader.frame(FETCH, 11, fetch_request(topic, max_wait_ms=20_000, min_bytes=300)))
        for _ in range(3):
            client.produce(topic, batch_of(bytes(60)))
        found = reader.receive(FETCH, 11).responses[0].partitions[0]
        assert len(found.records) >= 300


def test_nobody_waits_for_more_than_may_be_sent(client: RawClient, topic: str) -> None:
    client.produce(topic, batch_of(bytes(5000)))
    began = time.monotonic()
    client.fetch(topic, 0, max_wait_ms=20_000, min_bytes=2**30, max_bytes=2000)
    assert time.monotonic() - began < 10


def test_requests_behind_a_parked_fetch_wait_for_it(broker: Broker, client: RawClient, topic: str) -> None:
    with RawClient(broker.port) as reader:
        reader.send(
            reader.frame(FETCH, 11, fetch_request(topic, max_wait_ms=20_000), 1)
            + reader.frame(PRODUCE, 9, produce_request(topic, batch_of(b"late")), 2)
            + reader.frame(FETCH, 11, fetch_request(topic), 3)
        )
        client.produce(topic, batch_of(b"early"))
        frames = [reader.receive_frame() for _ in range(3)]
        assert [int.from_bytes(frame[:4], "big") for frame in frames] == [1, 2, 3]
    assert values(client.fetch(topic, 0).records) == [b"early", b"late"]


def test_a_deleted_topic_wakes_its_readers(broker: Broker, client: RawClient, topic: str) -> None:
    with RawClient(broker.port) as reader:
        reader.send(reader.frame(FETCH, 11, fetch_request(topic, max_wait_ms=20_000)))
        client.ask(20, 4, Message(topic_names=[topic], timeout_ms=10_000))
        found = reader.receive(FETCH, 11).responses[0].partitions[0]
        assert found.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_the_first_batch_is_whole_whatever_the_limits(client: RawClient, topic: str) -> None:
    client.produce(topic, batch_of(bytes(1_500_000)))
    found = client.fetch(topic, 0, partition_max_bytes=100, max_bytes=100)
    assert [len(value or b"") for value in values(found.records)] == [1_500_000]


def test_limits_are_shared_by_the_partitions_of_a_fetch(client: RawClient) -> None:
    client.create_topic("limited", partitions=3)
    for partition in range(3):
        client.produce("limited", batch_of(bytes(50_000)), partition=partition)
    answer = client.ask(FETCH, 11, fetch_request("limited", partitions=(2, 0, 1), max_bytes=60_000))
    assert [(one.partition_index, len(one.records) > 0) for one in answer.responses[0].partitions] == [
        (2, True),
        (0, False),
        (1, False),
    ]


def test_large_replies_are_whole_even_to_a_reader_that_takes_its_time(client: RawClient, topic: str) -> None:
    batches = [batch_of(bytes([number]) * 900_000) for number in range(12)]
    for batch in batches:
        client.produce(topic, batch)
    client.send(client.frame(FETCH, 12, fetch_request(topic, partition_max_bytes=2**25)) * 2)
    for _ in range(2):
        found = client.receive(FETCH, 12).responses[0].partitions[0]
        assert [value[:1] for value in values(found.records) if value] == [bytes([number]) for number in range(12)]


def test_a_reader_that_does_not_read_stalls_nobody(broker: Broker, client: RawClient, topic: str) -> None:
    for _ in range(8):
        client.produce(topic, batch_of(bytes(1_000_000)))
    with RawClient(broker.port) as lazy:
        lazy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.send(lazy.frame(FETCH, 11, fetch_request(topic, partition_max_bytes=2**25)) * 50)
        began = time.monotonic()
        for _ in range(100):
            client.produce(topic, batch_of(b"busy"))
        assert time.monotonic() - began < 10


def test_read_committed_readers_get_the_last_stable_offset(client: RawClient, topic: str) -> None:
    client.produce(topic, batch_of(b"a"))
    found = client.fetch(topic, 0, isolation_level=1)
    assert (found.last_stable_offset, found.aborted_transactions, values(found.records)) == (1, [], [b"a"])
    assert client.fetch(topic, 0).aborted_transactions is None


# Sessions


def test_a_session_tells_only_what_changed(client: RawClient) -> None:
    client.create_topic("watched", partitions=3)
    opened = client.ask(FETCH, 11, fetch_request("watched", partitions=(0, 1, 2), session=(0, 0)))
    assert opened.session_id > 0
    assert len(opened.responses[0].partitions) == 3

    quiet = client.ask(FETCH, 11, fetch_request(None, session=(opened.session_id, 1)))
    assert (quiet.error_code, quiet.session_id, quiet.responses) == (0, opened.session_id, [])

    client.produce("watched", batch_of(b"a"), partition=1)
    news = client.ask(FETCH, 11, fetch_request(None, session=(opened.session_id, 2)))
    assert [(one.partition_index, values(one.records)) for one in news.responses[0].partitions] == [(1, [b"a"])]

    wrong = client.ask(FETCH, 11, fetch_request(None, session=(opened.session_id, 9)))
    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    unknown = client.ask(FETCH, 11, fetch_request(None, session=(1, 9)))
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


# Offsets


def list_offset(client: RawClient, topic: str, timestamp: int, version: int = 11, **fields: int) -> Message:
    wanted = Message(partition_index=0, timestamp=timestamp, **fields)
    request = Message(
        replica_id=-1, isolation_level=0, topics=[Message(name=topic, partitions=[wanted])], timeout_ms=1000
    )
    answer: Message = client.ask(LIST_OFFSETS, version, request).topics[0].partitions[0]
    return answer


def test_offsets_are_found_by_time(client: RawClient, topic: str) -> None:
    for timestamp in (1000, 3000, 2000):
        client.produce(topic, batch_of(b"a", b"b", timestamp=timestamp))
    found = {timestamp: list_offset(client, topic, timestamp) for timestamp in (-1, -2, -3, -4, 0, 1001, 3000, 3001)}
    assert {timestamp: answer.offset for timestamp, answer in found.items()} == {
        -1: 6,
        -2: 0,
        -3: 2,
        -4: 0,
        0: 0,
        1001: 2,
        3000: 2,
        3001: -1,
    }
    assert (found[-3].timestamp, found[-1].timestamp, found[-1].leader_epoch) == (3000, -1, 0)


@pytest.mark.parametrize(("special", "first_version"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_special_timestamps_need_their_version(client: RawClient, topic: str, special: int, first_version: int) -> None:
    older = list_offset(client, topic, special, version=first_version - 1)
    assert older.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert list_offset(client, topic, special, version=first_version).error_code == 0


def test_a_partition_asked_for_twice_is_an_invalid_request(client: RawClient, topic: str) -> None:
    wanted = Message(partition_index=0, timestamp=-1)
    topics = [Message(name=topic, partitions=[wanted, wanted])]
    answer = client.ask(LIST_OFFSETS, 5, Message(replica_id=-1, isolation_level=0, topics=topics))
    assert {one.error_code for one in answer.topics[0].partitions} == {ErrorCode.INVALID_REQUEST}


def delete_records(client: RawClient, topic: str, offset: int) -> Message:
    topics = [Message(name=topic, partitions=[Message(partition_index=0, offset=offset)])]
    answer: Message = client.ask(DELETE_RECORDS, 2, Message(topics=topics, timeout_ms=1000)).topics[0].partitions[0]
    return answer


def test_deleted_records_are_out_of_range(client: RawClient, topic: str) -> None:
    client.produce(topic, batch_of(b"a", b"b", b"c"))
    assert delete_records(client, topic, 2).low_watermark == 2
    assert client.fetch(topic, 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert list_offset(client, topic, -2).offset == 2
    assert delete_records(client, topic, -1).low_watermark == 3
    assert delete_records(client, topic, 4).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_compacted_topics_do_not_delete_records(client: RawClient) -> None:
    client.create_topic("kept", **{"cleanup.policy": "compact"})
    assert delete_records(client, "kept", 0).error_code == ErrorCode.POLICY_VIOLATION


def test_an_epoch_ends_where_the_next_begins(client: RawClient, topic: str) -> None:
    client.produce(topic, batch_of(b"a", b"b"))

    def end_of(leader_epoch: int) -> tuple[int, int]:
        wanted = Message(partition=0, current_leader_epoch=-1, leader_epoch=leader_epoch)
        request = Message(replica_id=-1, topics=[Message(topic=topic, partitions=[wanted])])
        answer = client.ask(OFFSET_FOR_LEADER_EPOCH, 4, request).topics[0].partitions[0]
        return answer.leader_epoch, answer.end_offset

    assert end_of(0) == (0, 2)
    assert end_of(7) == (-1, -1)


# Many at once


def test_many_connections_append_without_losing_order(broker: Broker, client: RawClient) -> None:
    client.create_topic("busy")

    def run(writer: int) -> None:
        with RawClient(broker.port) as one:
            for number in range(200):
                one.send(one.frame(PRODUCE, 9, produce_request("busy", batch_of(b"%d %d" % (writer, number)))))
            for _ in range(200):
                assert one.receive(PRODUCE, 9).responses[0].partition_responses[0].error_code == 0

    threads = [threading.Thread(target=run, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = values(client.fetch("busy", 0, partition_max_bytes=2**24).records)
    assert len(read) == 1600
    for writer in range(8):
        own = [value for value in read if value is not None and value.startswith(b"%d " % writer)]
        assert own == [b"%d %d" % (writer, number) for number in range(200)]


def test_the_log_holds_what_was_sent(client: RawClient, topic: str) -> None:
    batch = batch_of(b"a", b"b", codec=4)
    client.produce(topic, batch)
    records = client.fetch(topic, 0).records
    assert BatchHeader.at(records)._replace(partition_leader_epoch=-1) == BatchHeader.at(batch)
    assert records[21:] == batch[21:]
