"""A refusal by the controller: the code and the line a client is sent. Start at `RefusedError`."""

from __future__ import annotations

from moldau.core.errors import ErrorCode, InvalidConfigError, MoldauError

__all__ = ["RefusedError", "refusal_of"]


class RefusedError(MoldauError):
    """One item of a request cannot be done; the others may be."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


def refusal_of(error: MoldauError) -> tuple[ErrorCode, str]:
    """Code and message for any error our own code raises on purpose."""
    if isinstance(error, RefusedError):
        return error.error, str(error)
    if isinstance(error, InvalidConfigError):
        return ErrorCode.INVALID_CONFIG, str(error)
    return error.code, str(error)
