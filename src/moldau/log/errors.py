"""What can go wrong in the log, each with the code a client sees. Start at `StorageError`."""

from __future__ import annotations

import errno
from typing import Final

from moldau.core.errors import ErrorCode, MoldauError

__all__ = [
    "OUT_OF_FILES",
    "PASSING",
    "CleaningFailedError",
    "CleaningStoppedError",
    "CorruptIndexError",
    "CorruptSnapshotError",
    "DamagedLogError",
    "FatalDiskError",
    "InvalidProducerEpochError",
    "InvalidTxnStateError",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceError",
    "StorageError",
    "UnexpectedAppendError",
]


OUT_OF_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE})
PASSING: Final = OUT_OF_FILES | {errno.ENOSPC, errno.EDQUOT}
"""Errors that go away again when somebody makes room."""


class StorageError(MoldauError):
    """The disk refused, or the partition is offline; nothing of the request was kept."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class UnexpectedAppendError(MoldauError):
    """An append failed with an unhandled exception, which is in the log; nothing of the append was kept."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class DamagedLogError(StorageError):
    """Records are missing or damaged. It does not pass by itself: an operator restores files or accepts the loss."""


class FatalDiskError(MoldauError):
    """A sync failed: what the disk holds is unknown, so the process has to stop rather than pretend."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class OffsetOutOfRangeError(MoldauError):
    """An offset below the log start or above the log end."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class OutOfOrderSequenceError(MoldauError):
    """An idempotent producer skipped a sequence, or repeats one too old to recognise."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpochError(MoldauError):
    """A producer with an older epoch than the partition has seen; another instance took over."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnStateError(MoldauError):
    """A plain batch from a producer whose transaction is open here."""

    code = ErrorCode.INVALID_TXN_STATE


class CorruptIndexError(MoldauError):
    """An index file that contradicts itself; it is rebuilt from the log."""


class CorruptSnapshotError(MoldauError):
    """A producer snapshot that does not check; state is replayed from an older one."""


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
