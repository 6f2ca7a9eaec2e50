"""Timestamp extractors: the timestamp of a record is its own, or what an extractor returns.

An extractor is (record, previous timestamp of its partition) -> milliseconds; a record with a negative timestamp is
dropped. Sources may have their own; `default.timestamp.extractor` is for the others. Start at `extractor_named`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.core.errors import InvalidConfigError
from moldau.pipeline.cores.handlers import class_word
from moldau.pipeline.cores.records import InputRecord

__all__ = ["Extractor", "UnknownTimeError", "extractor_named", "partition_time", "skipping"]

Extractor = Callable[[InputRecord, int], int]


class UnknownTimeError(ValueError):
    """No timestamp can be found for a record."""


def skipping(record: InputRecord, previous: int) -> int:
    """The record's own timestamp; a record without one is dropped."""
    return record.timestamp


def partition_time(record: InputRecord, previous: int) -> int:
    """The record's own timestamp, or the largest that its partition has seen."""
    if record.timestamp >= 0:
        return record.timestamp
    if previous < 0:
        raise UnknownTimeError("the record has no timestamp, and none came before it in its partition")
    return previous


_WORDS: dict[str, Extractor | None] = {
    "failoninvalidtimestamp": None,
    "logandskiponinvalidtimestamp": skipping,
    "usepartitiontimeoninvalidtimestamp": partition_time,
}


def extractor_named(given: Any) -> Extractor | None:
    """The extractor that `default.timestamp.extractor` names; None where a record without timestamp is an error."""
    if given is None:
        return None
    if callable(given):
        return given  # type: ignore[no-any-return]
    try:
        return _WORDS[class_word(given)]
    except KeyError:
        raise InvalidConfigError(
            f"default.timestamp.extractor: {given!r} is not a timestamp extractor; give FailOnInvalidTimestamp, "
            "LogAndSkipOnInvalidTimestamp, UsePartitionTimeOnInvalidTimestamp, or a function (record, previous) -> ms"
        ) from None
