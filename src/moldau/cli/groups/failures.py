"""Error messages for failed group requests, in Kafka's wording, which scripts expect."""

from __future__ import annotations

from moldau.client.errors import ClientError, java_exception_prefix
from moldau.core.errors import ErrorCode, MoldauError

__all__ = ["java_failure", "plain_failure"]

_WORDS = {
    ErrorCode.GROUP_ID_NOT_FOUND: ("GroupIdNotFoundException", "The group id does not exist."),
    ErrorCode.NON_EMPTY_GROUP: ("GroupNotEmptyException", "The group is not empty."),
    ErrorCode.INVALID_GROUP_ID: ("InvalidGroupIdException", "The configured groupId is invalid."),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "GroupSubscribedToTopicException",
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it.",
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (
        "UnknownTopicOrPartitionException",
        "This server does not host this topic-partition.",
    ),
}


def plain_failure(error: MoldauError) -> str:
    """Kafka's message for an error, or the error's own message."""
    code = error.error_code if isinstance(error, ClientError) else None
    return _WORDS[code][1] if code in _WORDS else str(error)


def java_failure(error: MoldauError) -> str:
    """An error as Java prints the exception: its class and the message."""
    code = error.error_code if isinstance(error, ClientError) else None
    if code in _WORDS:
        name, text = _WORDS[code]
        return f"org.apache.kafka.common.errors.{name}: {text}"
    return f"{java_exception_prefix(error)}{error}"
