"""Why a round of cleaning did not come to its end."""

from __future__ import annotations

from moldau.core.errors import MoldauError

__all__ = ["CleaningFailedError", "CleaningStoppedError"]


class CleaningFailedError(MoldauError):
    """The round could not be finished. `kind` is `gone`, `damaged`, `disk`, `died` or `unexpected`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def is_passing(self) -> bool:
        """Whether another try may well succeed."""
        return self.kind in ("gone", "disk", "died")


class CleaningStoppedError(MoldauError):
    """The cleaner was stopped in the middle of a round."""
