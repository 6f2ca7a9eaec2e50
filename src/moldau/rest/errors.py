"""Errors of answers: the proxy's codes, and how errors of clients and schemas become one. Start at `RestError`.

The first three digits of a code are the HTTP status, but for the few in `_STATUSES`.
"""

from __future__ import annotations

from http import HTTPStatus

from moldau.client.errors import ClientError, SchemaRegistryError, UnreachableError
from moldau.core.errors import ErrorCode, MoldauError
from moldau.http.calls import Answer
from moldau.http.errors import HttpError

__all__ = [
    "RestError",
    "broker_error",
    "instance_not_found",
    "partition_not_found",
    "record_error_code",
    "render_error",
    "titled",
    "topic_not_found",
]

_STATUSES = {40001: 422, 50101: 500}
KAFKA_FATAL, KAFKA_RETRIABLE, BROKER_NOT_AVAILABLE = 50002, 50003, 50302


class RestError(MoldauError):
    """A refusal with the proxy's code."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code

    @property
    def status(self) -> int:
        return _STATUSES.get(self.error_code, int(str(self.error_code)[:3]))


def titled(status: int, message: str) -> RestError:
    """An error of version 3: its message starts with the words of the status."""
    return RestError(status, f"{HTTPStatus(status).phrase}: {message}")


def topic_not_found() -> RestError:
    return RestError(40401, "Topic not found.")


def partition_not_found() -> RestError:
    return RestError(40402, "Partition not found.")


def instance_not_found() -> RestError:
    return RestError(40403, "Consumer instance not found.")


_BROKER_REFUSALS = frozenset(
    {
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.SECURITY_DISABLED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.TOPIC_DELETION_DISABLED,
        ErrorCode.INVALID_GROUP_ID,
    }
)
_AUTHENTICATION = frozenset({ErrorCode.SASL_AUTHENTICATION_FAILED})
_AUTHORIZATION = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
_UNAVAILABLE = frozenset({ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE})


def broker_error(error: ClientError) -> RestError:
    """What a broker refused, or that none answered, with the proxy's code."""
    code = error.error_code
    if isinstance(error, UnreachableError) or code in _UNAVAILABLE:
        return RestError(BROKER_NOT_AVAILABLE, f"Broker not available: {error}")
    if isinstance(error, SchemaRegistryError):
        return RestError(40801, str(error))
    if code in _AUTHENTICATION:
        return RestError(40101, str(error))
    if code in _AUTHORIZATION:
        return RestError(40301, str(error))
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return RestError(40403, "This server does not host this topic-partition.")
    if code is ErrorCode.LEADER_NOT_AVAILABLE:
        return RestError(40404, str(error))
    if code is ErrorCode.GROUP_ID_NOT_FOUND:
        return RestError(40405, str(error))
    if code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
        return RestError(413, str(error))
    if code in _BROKER_REFUSALS:
        return RestError(40002, str(error))
    return RestError(KAFKA_RETRIABLE if error.is_retriable else KAFKA_FATAL, str(error))


def record_error_code(error: ClientError) -> int:
    """The code of one record that could not be stored, in versions 1 and 2."""
    if error.error_code in _AUTHENTICATION:
        return 40101
    if error.error_code in _AUTHORIZATION:
        return 40301
    is_retriable = error.is_retriable or isinstance(error, UnreachableError)
    return KAFKA_RETRIABLE if is_retriable else KAFKA_FATAL


def render_error(error: Exception) -> Answer:
    """Status and document of any error."""
    if isinstance(error, HttpError):
        return Answer({"error_code": error.status, "message": str(error)}, status=error.status)
    if isinstance(error, ClientError):
        error = broker_error(error)
    if isinstance(error, RestError):
        return Answer({"error_code": error.error_code, "message": str(error)}, status=error.status)
    return Answer({"error_code": 500, "message": "Internal Server Error: see the log of the REST proxy"}, status=500)
