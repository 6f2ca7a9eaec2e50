"""Errors of answers, by ksqlDB's codes; the HTTP status is the code divided by 100. Start at `RequestError`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from moldau.core.errors import MoldauError

__all__ = ["ErrorKind", "NotHereError", "RequestError", "StatementError"]


class ErrorKind(IntEnum):
    """ksqlDB's error codes."""

    BAD_REQUEST = 40000
    BAD_STATEMENT = 40001
    QUERY_ENDPOINT = 40002
    MAX_PUSH_QUERIES = 40003
    HTTP2_ONLY = 40004
    UNAUTHORIZED = 40100
    FORBIDDEN = 40300
    NOT_FOUND = 40400
    ASSERTION_FAILED = 41700
    NO_SCHEMA_REGISTRY = 42801
    TOO_MANY_REQUESTS = 42900
    SERVER_ERROR = 50000
    COMMAND_QUEUE_TIMEOUT = 50301
    NOT_READY = 50302
    SHUTTING_DOWN = 50303


class NotHereError(MoldauError):
    """Another server holds what a query asks for: send the request there."""

    def __init__(self, url: str) -> None:
        super().__init__(f"the table is held by the server at {url}")
        self.url = url


class RequestError(MoldauError):
    """A request that cannot be served, for a reason that is about no statement."""

    def __init__(self, message: str, kind: ErrorKind = ErrorKind.BAD_REQUEST) -> None:
        super().__init__(message)
        self.kind = kind


class StatementError(RequestError):
    """A statement that was refused, or failed; `entities` are the answers to the statements before it."""

    def __init__(
        self,
        message: str,
        statement: str,
        kind: ErrorKind = ErrorKind.BAD_STATEMENT,
        entities: Sequence[dict[str, Any]] = (),
    ) -> None:
        super().__init__(message, kind)
        self.statement = statement
        self.entities = entities
