"""librdkafka's errors as ours."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from moldau.client.errors import (
    ClientError,
    UnreachableError,
    client_error,
    error_name,
    java_exception_prefix,
    noted_on,
)
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


def test_what_fails_while_closing_is_raised_where_nothing_failed_before() -> None:
    with pytest.raises(ClientError, match="no broker"), noted_on(None, "closing"):
        raise ClientError("no broker")


def test_what_fails_while_closing_after_an_error_is_a_note_on_that_error() -> None:
    first = ValueError("the first")
    with noted_on(first, "closing the consumer"):
        raise ClientError("no broker")
    assert first.__notes__ == ["while closing the consumer: no broker"]


def test_only_errors_of_the_client_become_notes() -> None:
    with pytest.raises(KeyError), noted_on(ValueError("the first"), "closing"):
        raise KeyError
