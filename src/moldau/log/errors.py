"""The errors of the log and its cleaner, with the error code a client sees. Start at `StorageError`."""

from __future__ import annotations

import errno
from typing import Final

from moldau.core.errors import ErrorCode, MoldauError

__all__ = [
    "OUT_OF_FILES",
    "TRANSIENT_ERRNOS",
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
TRANSIENT_ERRNOS: Final = OUT_OF_FILES | {errno.ENOSPC, errno.EDQUOT}
"""Errors that may go away when disk space or file descriptors are freed."""


class StorageError(MoldauError):
    """A disk error, or the partition is offline; nothing of the request was written."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class UnexpectedAppendError(MoldauError):
    """An append failed with an unhandled exception, which was logged; nothing of the append was written."""

    code = ErrorCode.UNKNOWN_SERVER_ERROR


class DamagedLogError(StorageError):
    """Records are missing or damaged. Not transient: an operator has to restore files or accept the loss."""


class FatalDiskError(MoldauError):
    """A sync failed: what is on disk is unknown, so the process has to stop."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class OffsetOutOfRangeError(MoldauError):
    """An offset below the log start or above the log end."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class OutOfOrderSequenceError(MoldauError):
    """An idempotent producer skipped a sequence, or repeats one too old to recognise."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpochError(MoldauError):
    """The producer's epoch is older than the one the partition has seen; another instance took over."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnStateError(MoldauError):
    """A non-transactional batch from a producer that has a transaction open in this partition."""

    code = ErrorCode.INVALID_TXN_STATE


class CorruptIndexError(MoldauError):
    """An index file that contradicts itself; it is rebuilt from the log."""


class CorruptSnapshotError(MoldauError):
    """A damaged producer snapshot; the state is replayed from an older one."""


class CleaningFailedError(MoldauError):
    """A cleaning round failed. `kind` is `gone`, `damaged`, `disk`, `died` or `unexpected`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def is_transient(self) -> bool:
        """Whether a retry may succeed."""
        return self.kind in ("gone", "disk", "died")


class CleaningStoppedError(MoldauError):
    """The cleaner was stopped during a round."""
