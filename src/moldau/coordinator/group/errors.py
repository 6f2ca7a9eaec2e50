"""A group's refusal: the code that the request is answered with."""

from __future__ import annotations

from moldau.core.errors import ErrorCode

__all__ = ["RefusedError"]


class RefusedError(Exception):
    """Raised inside the core, turned into a reply at its edge."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message
