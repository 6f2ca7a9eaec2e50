"""Topics that want registered schema ids: what their records carry is checked before anything is appended."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    header_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.integration.raw_client import RawClient, batch_of
from tests.integration.registry.messages import message_class

from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message as WireMessage
from moldau.testing import Broker
from moldau.testing.registry import SchemaRegistry

PACKAGE = "io.confluent.kafka.serializers.subject."
STRATEGIES = {
    "TopicNameStrategy": topic_subject_name_strategy,
    "RecordNameStrategy": record_subject_name_strategy,
    "TopicRecordNameStrategy": topic_record_subject_name_strategy,
}
VALIDATED = {"confluent.value.schema.validation": "true"}
CODECS = ("gzip", "snappy", "lz4", "zstd")
_serial = itertools.count()


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[SchemaRegistry]:
    """The broker is told of no registry: it finds the one that announces itself."""
    with SchemaRegistry(broker.bootstrap_servers) as running:
        yield running


@pytest.fixture(scope="module")
def client(registry: SchemaRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


@pytest.fixture
def raw(broker: Broker, registry: SchemaRegistry) -> Iterator[RawClient]:
    with RawClient(broker.port) as raw:
        yield raw


def new_topic(raw: RawClient, **configs: str) -> str:
    name = f"checked-{next(_serial)}"
    raw.create_topic(name, **{**VALIDATED, **configs})
    return name


def avro_schema(name: str = "Order") -> str:
    return json.dumps(
        {"type": "record", "name": name, "namespace": "shop", "fields": [{"name": "amount", "type": "int"}]}
    )


def order(client: SchemaRegistryClient, topic: str, amount: int = 1, field: Any = MessageField.VALUE) -> bytes:
    """An Avro record as its serializer writes it, which registers the schema."""
    written = AvroSerializer(client, avro_schema())({"amount": amount}, SerializationContext(topic, field))
    assert written is not None
    return written


def producer(broker: Broker, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 20, **settings})


def sent(producing: Producer, topic: str, *values: bytes | None, key: bytes | None = None) -> list[str | None]:
    """Produce values as one batch; the name of each one's error, `None` for those that were taken."""
    outcomes: list[tuple[KafkaError | None, Message]] = []
    for value in values:
        producing.produce(topic, value, key, on_delivery=lambda *outcome: outcomes.append(outcome))
    assert producing.flush(30) == 0
    return [None if error is None else error.name() for error, _ in outcomes]


def stored(broker: Broker, topic: str) -> list[bytes | None]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes | None] = []
        while True:
            message = consumer.poll(20)
            assert message is not None
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                return values
            values.append(message.value())
    finally:
        consumer.close()


def written_as(format: str, client: SchemaRegistryClient, topic: str, strategy: str) -> bytes:
    """A record of one of the formats, as its serializer writes it."""
    settings = {"subject.name.strategy": STRATEGIES[strategy]}
    context = SerializationContext(topic, MessageField.VALUE)
    if format == "AVRO":
        written = AvroSerializer(client, avro_schema("Basket"), conf=settings)({"amount": 1}, context)
    elif format == "JSON":
        schema = json.dumps({"title": "shop.Note", "type": "object"})
        written = JSONSerializer(schema, client, conf=settings)({"text": "hello"}, context)
    else:
        kind = message_class("people.Person")
        written = ProtobufSerializer(kind, client, conf=settings)(kind(name="Ada"), context)
    assert written is not None
    return written


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("format", ["AVRO", "JSON", "PROTOBUF"])
def test_records_of_the_serializers_are_taken(
    broker: Broker, raw: RawClient, client: SchemaRegistryClient, format: str, strategy: str
) -> None:
    topic = new_topic(raw, **{"confluent.value.subject.name.strategy": f"{PACKAGE}{strategy}"})
    written = written_as(format, client, topic, strategy)
    assert sent(producer(broker), topic, written, None, written) == [None] * 3
    assert stored(broker, topic) == [written, None, written]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_schema_of_another_strategys_subject_is_refused(
    broker: Broker, raw: RawClient, client: SchemaRegistryClient, strategy: str
) -> None:
    topic = new_topic(raw, **{"confluent.value.subject.name.strategy": strategy})
    for name, other in STRATEGIES.items():
        if name != strategy:
            schema = avro_schema(f"Other{next(_serial)}")
            written = AvroSerializer(client, schema, conf={"subject.name.strategy": other})(
                {"amount": 1}, SerializationContext(topic, MessageField.VALUE)
            )
            assert sent(producer(broker), topic, written) == ["INVALID_RECORD"]
    assert stored(broker, topic) == []


@pytest.mark.parametrize("codec", ["none", *CODECS])
def test_a_plain_producer_is_refused_and_nothing_of_its_batch_is_kept(
    broker: Broker, raw: RawClient, client: SchemaRegistryClient, codec: str
) -> None:
    topic = new_topic(raw)
    good = order(client, topic)
    plain = producer(broker, **{"compression.type": codec})
    innocent, guilty = "_INVALID_DIFFERENT_RECORD", "INVALID_RECORD"
    outcomes = sent(plain, topic, good, b"plain" * 30, None, b"\0\0\0\0", good)
    assert outcomes == [innocent, guilty, innocent, guilty, innocent]
    assert stored(broker, topic) == []
    assert sent(plain, topic, good * 20, None) == [None, None]
    assert stored(broker, topic) == [good * 20, None]


def test_the_answer_names_the_records_and_what_is_wrong_with_each(raw: RawClient, client: SchemaRegistryClient) -> None:
    topic, other = new_topic(raw), new_topic(raw)
    good = order(client, topic)
    elsewhere = AvroSerializer(client, avro_schema("Elsewhere"))(
        {"amount": 1}, SerializationContext(other, MessageField.VALUE)
    )
    assert elsewhere is not None
    number = int.from_bytes(elsewhere[1:5])
    batch = batch_of(good, b"plain", None, b"\0\0\x0f\xff\xffx", elsewhere)
    answer = raw.produce(topic, batch)
    assert ErrorCode(answer.error_code) is ErrorCode.INVALID_RECORD
    assert answer.base_offset == -1
    assert answer.error_message == "3 of 5 records refused, the first because its value carries no schema id"
    assert [(one.batch_index, one.batch_index_error_message) for one in answer.record_errors] == [
        (1, "record 1: its value carries no schema id"),
        (3, "record 3: schema 1048575 of its value is not registered"),
        (4, f"record 4: schema {number} of its value is not registered under {topic}-value"),
    ]
    assert raw.produce(topic, batch_of(good)).base_offset == 0


def test_one_refused_partition_leaves_the_others_of_its_request_alone(
    raw: RawClient, client: SchemaRegistryClient
) -> None:
    checked, free = new_topic(raw), f"free-{next(_serial)}"
    raw.create_topic(free)
    topics = [
        WireMessage(name=name, partition_data=[WireMessage(index=0, records=batch_of(b"plain"))])
        for name in (checked, free)
    ]
    answer = raw.ask(0, 9, WireMessage(transactional_id=None, acks=-1, timeout_ms=10_000, topic_data=topics))
    assert [(one.name, one.partition_responses[0].error_code) for one in answer.responses] == [
        (checked, ErrorCode.INVALID_RECORD),
        (free, 0),
    ]


def test_keys_are_checked_where_the_topic_asks_for_it(
    broker: Broker, raw: RawClient, client: SchemaRegistryClient
) -> None:
    topic = new_topic(raw, **{"confluent.key.schema.validation": "true", "confluent.value.schema.validation": "false"})
    key = order(client, topic, field=MessageField.KEY)
    producing = producer(broker)
    assert sent(producing, topic, b"any value", key=key) == [None]
    assert sent(producing, topic, b"any value", key=None) == [None]
    assert sent(producing, topic, b"any value", key=b"plain") == ["INVALID_RECORD"]


def test_a_compacted_topic_wants_both_keys_and_ids(raw: RawClient, client: SchemaRegistryClient) -> None:
    topic = new_topic(raw, **{"cleanup.policy": "compact"})
    good = order(client, topic)
    assert raw.produce(topic, batch_of(good)).error_code == 0
    assert raw.produce(topic, batch_of(good, key=None)).error_code == ErrorCode.INVALID_RECORD
    assert raw.produce(topic, batch_of(b"plain")).error_code == ErrorCode.INVALID_RECORD


def test_recompressed_topics_check_too(raw: RawClient, client: SchemaRegistryClient) -> None:
    topic = new_topic(raw, **{"compression.type": "zstd"})
    assert raw.produce(topic, batch_of(order(client, topic) * 50)).error_code == 0
    assert raw.produce(topic, batch_of(b"plain" * 50, codec=1)).error_code == ErrorCode.INVALID_RECORD


def test_an_idempotent_producer_goes_on_after_a_refusal(
    broker: Broker, raw: RawClient, client: SchemaRegistryClient
) -> None:
    topic = new_topic(raw)
    good = order(client, topic)
    producing = producer(broker, **{"enable.idempotence": True})
    assert sent(producing, topic, good, good) == [None, None]
    assert "INVALID_RECORD" in sent(producing, topic, b"plain", good)
    for _ in range(3):
        assert sent(producing, topic, good) == [None]
    assert stored(broker, topic) == [good] * 5


def test_a_refused_batch_leaves_no_gap_and_no_duplicate_behind(raw: RawClient, client: SchemaRegistryClient) -> None:
    """A producer that numbers on, one that sends again under the same numbers, and one that repeats itself."""
    topic = new_topic(raw)
    good = order(client, topic)

    def produce(value: bytes, sequence: int) -> tuple[int, int]:
        answer = raw.produce(topic, batch_of(value, producer_id=4711, producer_epoch=0, base_sequence=sequence))
        return answer.error_code, answer.base_offset

    assert produce(good, 0) == (0, 0)
    assert produce(b"plain", 1) == (ErrorCode.INVALID_RECORD, -1)
    assert produce(good, 2) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1), "1 was never taken"
    assert produce(good, 1) == (0, 1)
    assert produce(good, 1) == (0, 1), "a duplicate is told where it went"


def committed(producing: Producer, topic: str, *values: bytes) -> bool:
    """Whether a transaction with these values went through; if not it is aborted."""
    producing.begin_transaction()
    for value in values:
        sent(producing, topic, value)
    try:
        producing.commit_transaction(30)
    except KafkaException:
        producing.abort_transaction(30)
        return False
    return True


def test_a_transaction_with_a_refused_record_is_aborted_and_a_later_one_commits(
    broker: Broker, raw: RawClient, client: SchemaRegistryClient
) -> None:
    topic = new_topic(raw)
    good = order(client, topic)
    producing = producer(broker, **{"transactional.id": topic})
    producing.init_transactions(30)
    assert committed(producing, topic, good)
    assert not committed(producing, topic, good, b"plain")
    # librdkafka numbers on past the refused batch, and asks for a new epoch only when the next one is out of order.
    assert committed(producing, topic, good + b"2") or committed(producing, topic, good + b"2")
    assert stored(broker, topic) == [good, good + b"2"]


def test_a_topic_can_begin_and_cease_to_check(broker: Broker, raw: RawClient, client: SchemaRegistryClient) -> None:
    topic = new_topic(raw, **{"confluent.value.schema.validation": "false"})

    def check(value: str) -> None:
        change = WireMessage(name="confluent.value.schema.validation", config_operation=0, value=value)
        resource = WireMessage(resource_type=2, resource_name=topic, configs=[change])
        answer = raw.ask(44, 1, WireMessage(resources=[resource], validate_only=False))
        assert answer.responses[0].error_code == 0, answer

    assert raw.produce(topic, batch_of(b"plain")).error_code == 0
    check("true")
    assert raw.produce(topic, batch_of(b"plain")).error_code == ErrorCode.INVALID_RECORD
    check("false")
    assert raw.produce(topic, batch_of(b"plain")).error_code == 0


def test_a_schema_registered_later_counts(raw: RawClient, client: SchemaRegistryClient) -> None:
    topic, other = new_topic(raw), new_topic(raw)
    good = order(client, other)
    assert raw.produce(topic, batch_of(good)).error_code == ErrorCode.INVALID_RECORD
    assert order(client, topic) == good, "the same schema has the same id"
    deadline = time.monotonic() + 20
    while raw.produce(topic, batch_of(good)).error_code:
        assert time.monotonic() < deadline


def test_a_strategy_that_does_not_exist_is_refused(raw: RawClient) -> None:
    settings = [WireMessage(name="confluent.value.subject.name.strategy", value="com.example.MyStrategy")]
    topic = WireMessage(name="odd", num_partitions=1, replication_factor=1, assignments=[], configs=settings)
    answer = raw.ask(19, 5, WireMessage(topics=[topic], timeout_ms=10_000, validate_only=False)).topics[0]
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert "TopicNameStrategy" in answer.error_message


def test_guids_in_headers_are_ids_too(broker: Broker, raw: RawClient, client: SchemaRegistryClient) -> None:
    topic = new_topic(raw)
    headers: list[tuple[str, bytes]] = []
    serializer = AvroSerializer(
        client, avro_schema("Guided"), conf={"schema.id.serializer": header_schema_id_serializer}
    )
    written = serializer({"amount": 1}, SerializationContext(topic, MessageField.VALUE, headers))
    assert headers
    outcomes: list[KafkaError | None] = []
    producing = producer(broker)
    for sent_headers in (headers, []):
        producing.produce(topic, written, headers=sent_headers, on_delivery=lambda error, _: outcomes.append(error))
        assert producing.flush(30) == 0
    assert [None if error is None else error.name() for error in outcomes] == [None, "INVALID_RECORD"]
