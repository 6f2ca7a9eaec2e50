"""Errors of all clients, as one family of exceptions.

librdkafka reports broker errors by Kafka's codes and its own failures by negative ones. Both become a `ClientError`
here, so that callers never see the library's types. Start at `client_error`; `passes_by_itself` says which consumer
errors librdkafka recovers from without the application.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moldau.core.errors import ErrorCode, MoldauError
from moldau.serdes.schema_source import SchemaSourceError

__all__ = [
    "ClientError",
    "FencedError",
    "SchemaRegistryError",
    "SerializationError",
    "UnreachableError",
    "client_error",
    "error_name",
    "java_exception_prefix",
    "noted_on",
    "passes_by_itself",
]

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


class ClientError(MoldauError):
    """A request was answered with an error; `error_code` is Kafka's, or `None` for a failure on our side."""

    is_retriable: bool = False
    """The same call may succeed when made again."""
    requires_abort: bool = False
    """The transaction can only be aborted; the next one may succeed."""

    def __init__(self, message: str, error_code: ErrorCode | None = None) -> None:
        super().__init__(message)
        self.error_code = error_code


class UnreachableError(ClientError):
    """No broker answered in time."""


class FencedError(ClientError):
    """Another client took over this one's transactional id or static membership: this one must be closed."""


class SerializationError(ClientError):
    """A key or a value could not be turned into bytes, or back; `__cause__` is what the serde raised.

    `partition` and `offset` identify a record that was read; both are -1 for one that was to be sent.
    """

    def __init__(self, message: str, topic: str, part: str, partition: int = -1, offset: int = -1) -> None:
        super().__init__(message)
        self.topic = topic
        self.part = part
        self.partition = partition
        self.offset = offset

    @classmethod
    def of_writing(cls, topic: str, part: str, cause: Exception) -> SerializationError:
        return cls(f"Topic {topic}: the {part} cannot be serialized: {cause}", topic, part)

    @classmethod
    def of_reading(cls, topic: str, part: str, cause: Exception, partition: int, offset: int) -> SerializationError:
        place = f"Record {offset} of {topic}-{partition}"
        return cls(f"{place}: the {part} cannot be deserialized: {cause}", topic, part, partition, offset)


class SchemaRegistryError(ClientError, SchemaSourceError):
    """The schema registry cannot be reached, or rejects a schema. The record itself may be fine."""


@contextmanager
def noted_on(first: BaseException | None, doing: str) -> Iterator[None]:
    """For `__exit__`: a `ClientError` raised inside becomes a note on `first`, if there is a first error.

    The first error is the one to report: later ones are mostly its consequences.
    """
    try:
        yield
    except ClientError as second:
        if first is None:
            raise
        first.add_note(f"while {doing}: {second}")


_UNREACHABLE = frozenset({"_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_WAIT_COORD"})
_FENCED = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "FENCED_INSTANCE_ID"})


def client_error(error: KafkaError, *, about: str = "") -> ClientError:
    """Translate librdkafka's error; `about` names the topic, group or the like that the broker's text lacks."""
    text = error.str()
    if error.name() in _UNREACHABLE:
        return _with_flags(UnreachableError(f"{about}: {text}" if about else text), error)
    code = _kafka_code(error)
    # Without a text of the broker's own, librdkafka gives "Broker: <general description>".
    text = text.removeprefix("Broker: ").removeprefix("Local: ")
    kind = FencedError if error.name() in _FENCED and not error.txn_requires_abort() else ClientError
    return _with_flags(kind(f"{about}: {text}" if about else text, code), error)


def _with_flags(translated: ClientError, error: KafkaError) -> ClientError:
    translated.is_retriable, translated.requires_abort = error.retriable(), error.txn_requires_abort()
    return translated


def error_name(error: KafkaError) -> str:
    """Kafka's name of an error; librdkafka shortens some, and has its own for local errors."""
    code = _kafka_code(error)
    return code.name if code is not None else error.name()


def _kafka_code(error: KafkaError) -> ErrorCode | None:
    if error.name() == "_UNSUPPORTED_FEATURE":
        return ErrorCode.UNSUPPORTED_VERSION
    try:
        return ErrorCode(error.code())
    except ValueError:
        return None


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
    """`<class a Java client would have thrown>: `, which scripts look for; empty for errors without a broker's code."""
    if isinstance(error, UnreachableError):
        return "org.apache.kafka.common.errors.TimeoutException: "
    code = error.error_code if isinstance(error, ClientError) else None
    if code is None:
        return ""
    kind = _JAVA_NAMES.get(code) or "".join(word.capitalize() for word in code.name.split("_")) + "Exception"
    return f"org.apache.kafka.common.errors.{kind}: "


_PASSING = frozenset(
    {
        "_ALL_BROKERS_DOWN",
        "_TRANSPORT",
        "_RESOLVE",
        "_TIMED_OUT",
        "_PARTITION_EOF",
        # Removed from the group; the next poll joins again.
        "_MAX_POLL_EXCEEDED",
        # The topic of a subscription may be created later.
        "_UNKNOWN_TOPIC",
        "_UNKNOWN_PARTITION",
        "UNKNOWN_TOPIC_OR_PART",
        "UNKNOWN_TOPIC_ID",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "REBALANCE_IN_PROGRESS",
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "REQUEST_TIMED_OUT",
        "NETWORK_EXCEPTION",
    }
)


def passes_by_itself(error: KafkaError) -> bool:
    """Whether librdkafka retries by itself and will succeed once the cluster has recovered."""
    return not error.fatal() and (error.retriable() or error.name() in _PASSING)
