"""librdkafka's errors as ours."""

from __future__ import annotations

from confluent_kafka import KafkaError

from moldau.client.errors import ClientError, UnreachableError, client_error, error_name, java_exception_prefix
from moldau.core.errors import ErrorCode, InvalidConfigError


def test_a_brokers_error_keeps_its_code_and_text() -> None:
    error = client_error(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS, "Topic 'x' already exists."))
    assert error.error_code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert str(error) == "Topic 'x' already exists."


def test_no_broker_is_an_error_of_its_own_kind() -> None:
    assert isinstance(client_error(KafkaError(KafkaError._TRANSPORT)), UnreachableError)
    assert client_error(KafkaError(KafkaError._STATE)).error_code is None
    assert error_name(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_java_names_what_it_throws() -> None:
    prefix = "org.apache.kafka.common.errors."
    assert java_exception_prefix(ClientError("x", ErrorCode.TOPIC_ALREADY_EXISTS)) == f"{prefix}TopicExistsException: "
    assert java_exception_prefix(ClientError("x", ErrorCode.POLICY_VIOLATION)) == f"{prefix}PolicyViolationException: "
    assert java_exception_prefix(UnreachableError("x")) == f"{prefix}TimeoutException: "
    assert java_exception_prefix(InvalidConfigError("x")) == ""
