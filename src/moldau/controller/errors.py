"""An error that the controller returns to a client: error code and message. Start at `RefusedError`."""

from __future__ import annotations

from moldau.core.errors import ErrorCode, InvalidConfigError, MoldauError

__all__ = ["RefusedError", "refusal_of"]


class RefusedError(MoldauError):
    """One item of a request is rejected; the other items may succeed."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


def refusal_of(error: MoldauError) -> tuple[ErrorCode, str]:
    """Return error code and message for any `MoldauError`."""
    if isinstance(error, RefusedError):
        return error.error, str(error)
    if isinstance(error, InvalidConfigError):
        return ErrorCode.INVALID_CONFIG, str(error)
    return error.code, str(error)
