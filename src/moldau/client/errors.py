"""What can go wrong on the way to a cluster, as one family of errors.

librdkafka reports broker errors by Kafka's codes and its own troubles by negative ones; both become
a `ClientError` here, so that callers never look at the library's types. Start at `client_error`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.core.errors import ErrorCode, MoldauError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

__all__ = ["ClientError", "UnreachableError", "client_error", "java_exception_prefix"]


class ClientError(MoldauError):
    """A request was answered with an error; `error_code` is Kafka's, or `None` for a trouble on our side."""

    def __init__(self, message: str, error_code: ErrorCode | None = None) -> None:
        super().__init__(message)
        self.error_code = error_code


class UnreachableError(ClientError):
    """No broker answered in time."""


_UNREACHABLE = frozenset({"_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_WAIT_COORD"})


def client_error(error: KafkaError, *, about: str = "") -> ClientError:
    """Translate librdkafka's error; `about` names the subject where the broker's text does not."""
    text = error.str()
    if error.name() in _UNREACHABLE:
        return UnreachableError(f"{about}: {text}" if about else text)
    try:
        code = ErrorCode(error.code())
    except ValueError:
        code = None
    # Without a text of the broker's own, librdkafka gives "Broker: <general description>".
    text = text.removeprefix("Broker: ").removeprefix("Local: ")
    return ClientError(f"{about}: {text}" if about else text, code)


_JAVA_NAMES = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
}


def java_exception_prefix(error: MoldauError) -> str:
    """`<class a Java client would have thrown>: `, which scripts look for; empty for what no broker said."""
    if isinstance(error, UnreachableError):
        return "org.apache.kafka.common.errors.TimeoutException: "
    code = error.error_code if isinstance(error, ClientError) else None
    if code is None:
        return ""
    kind = _JAVA_NAMES.get(code) or "".join(word.capitalize() for word in code.name.split("_")) + "Exception"
    return f"org.apache.kafka.common.errors.{kind}: "
