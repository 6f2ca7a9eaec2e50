"""The toolkit's front door, and the small decisions behind it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from confluent_kafka import KafkaError

import moldau.client as toolkit
from moldau.client import ClientError, Consumer, FencedError, InvalidConfigError, Producer, Record, hashed_partition
from moldau.client.errors import client_error, passes_by_itself
from moldau.client.partitioners import checked_partition
from moldau.client.properties.translation import translate
from moldau.client.rebalancing import is_incremental
from moldau.core.errors import ErrorCode


def test_every_public_name_can_be_had() -> None:
    assert all(getattr(toolkit, name) is not None for name in toolkit.__all__)
    with pytest.raises(AttributeError):
        _ = toolkit.no_such_name


def test_importing_the_package_alone_loads_no_client_library() -> None:
    check = "import sys, moldau.client; sys.exit('confluent_kafka' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(("key", "java_hash"), [(b"21", -973932308), (b"foobar", -790332482), (b"abc", 479470107)])
def test_a_key_hashes_as_in_java(key: bytes, java_hash: int) -> None:
    for count in (1, 3, 7, 1000):
        assert hashed_partition(key, count) == (java_hash & 0x7FFFFFFF) % count


def test_a_partitioner_may_choose_only_what_exists() -> None:
    assert [checked_partition("t", chosen, 3) for chosen in (0, 2, None)] == [0, 2, -1]
    with pytest.raises(ClientError, match="the partitioner chose 3, of partitions 0 to 2"):
        checked_partition("t", 3, 3)
    with pytest.raises(ClientError, match="must return a number or None, not 'a'"):
        checked_partition("t", "a", 3)  # type: ignore[arg-type]
    with pytest.raises(ClientError, match="the topic has 0 partitions"):
        hashed_partition(b"k", 0)


def test_the_last_of_several_headers_counts() -> None:
    record = Record("t", 0, 0, 0, None, None, (("a", b"1"), ("b", None), ("a", b"2")))
    assert (record.header("a"), record.header("b"), record.header("c")) == (b"2", None, None)


def test_what_passes_is_told_from_what_does_not() -> None:
    for code in (KafkaError._ALL_BROKERS_DOWN, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._MAX_POLL_EXCEEDED):
        assert passes_by_itself(KafkaError(code))
    for code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.FENCED_INSTANCE_ID):
        assert not passes_by_itself(KafkaError(code))
    assert not passes_by_itself(KafkaError(KafkaError._TRANSPORT, fatal=True))


def test_errors_say_whether_to_repeat_to_abort_or_to_end() -> None:
    assert client_error(KafkaError(KafkaError._TIMED_OUT, retriable=True)).is_retriable
    assert client_error(KafkaError(KafkaError.ILLEGAL_GENERATION, txn_requires_abort=True)).requires_abort
    assert isinstance(client_error(KafkaError(KafkaError._FENCED, fatal=True)), FencedError)
    stale = client_error(KafkaError(KafkaError.INVALID_PRODUCER_EPOCH, txn_requires_abort=True))
    assert not isinstance(stale, FencedError)
    unsupported = client_error(KafkaError(KafkaError._UNSUPPORTED_FEATURE))
    assert unsupported.error_code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, False),
        ({"partition.assignment.strategy": "range,roundrobin"}, False),
        ({"partition.assignment.strategy": "cooperative-sticky"}, True),
        ({"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"}, True),
        ({"partition.assignment.strategy": "range,cooperative-sticky"}, False),
        ({"group.protocol": "consumer"}, True),
    ],
)
def test_partitions_move_singly_or_all_at_once(properties: dict[str, str], expected: bool) -> None:
    assert is_incremental(properties) is expected


def test_a_transactional_producer_is_less_patient_than_its_transaction() -> None:
    settings = translate({"transactional.id": "t", "transaction.timeout.ms": "10000"}, "producer").settings
    assert settings["delivery.timeout.ms"] == "10000"
    assert translate({}, "producer").settings["delivery.timeout.ms"] == "120000"


def test_the_new_group_protocol_takes_no_settings_of_the_old() -> None:
    settings = translate({"group.protocol": "consumer", "group.id": "g"}, "consumer").settings
    assert not {"session.timeout.ms", "partition.assignment.strategy"} & settings.keys()


def test_settings_that_make_no_sense_are_refused_before_any_connection() -> None:
    with pytest.raises(InvalidConfigError, match="acks must be all"):
        Producer("localhost:9092", {"acks": 1, "enable.idempotence": True})
    with pytest.raises(InvalidConfigError, match="subscribe needs a group"):
        Consumer("localhost:9092").subscribe(["t"])
    with pytest.raises(InvalidConfigError, match="topics must be a list of names"):
        Consumer("localhost:9092", group="g").subscribe("t")
    with pytest.raises(InvalidConfigError, match="by_duration is not supported here"):
        Consumer("localhost:9092", {"auto.offset.reset": "by_duration:PT1H"})


def test_a_closed_consumer_says_so() -> None:
    consumer: Consumer[str, str] = Consumer("localhost:9092", group="g")
    consumer.close()
    consumer.close()
    with pytest.raises(ClientError, match="the consumer is closed"):
        consumer.poll(0)
