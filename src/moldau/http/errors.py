"""Errors of the HTTP layer, independent of any service. Start at `HttpError`."""

from __future__ import annotations

from http import HTTPStatus

from moldau.core.errors import MoldauError

__all__ = ["ClientGoneError", "HttpError", "MalformedBodyError"]

CLIENT_GONE_STATUS = 499
"""Only used in metrics: the client has disconnected."""


class HttpError(MoldauError):
    """An HTTP status as an exception; the message is for the client."""

    def __init__(self, status: int, message: str | None = None, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(message or f"HTTP {status} {HTTPStatus(status).phrase}")
        self.status = status
        self.headers = headers or {}


class MalformedBodyError(HttpError):
    """A body that is not JSON."""

    def __init__(self, reason: str) -> None:
        super().__init__(400, f"Malformed JSON: {reason}")


class ClientGoneError(HttpError):
    """The client closed the connection before its request was answered."""

    def __init__(self) -> None:
        super().__init__(CLIENT_GONE_STATUS, "The client closed the connection")
