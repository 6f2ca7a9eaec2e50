"""Into which folder a record goes, and which time it has. Start at `partitioner`."""

from __future__ import annotations

import importlib
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from moldau.connect.api.errors import ConfigError, ConnectError, DataError
from moldau.connect.api.records import SinkRecord
from moldau.connect.api.schemas import DataSchema
from moldau.connect.transforms.date_patterns import DatePattern
from moldau.connect.transforms.field_paths import FieldPath

__all__ = ["Partitioner", "partitioner", "timestamp_extractor"]

HOUR_MS: Final = 3_600_000
DAY_PATTERN: Final = "'year'=YYYY/'month'=MM/'day'=dd"
Extract = Callable[[SinkRecord], int]


class Partitioner(ABC):
    """Derive from it for a partitioner of your own; it gets the connector's typed settings."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    @abstractmethod
    def folder(self, record: SinkRecord) -> str:
        """The folder below the topic's."""


class DefaultPartitioner(Partitioner):
    """By the topic's partition."""

    def folder(self, record: SinkRecord) -> str:
        return f"partition={record.topic_partition.partition}"


class FieldPartitioner(Partitioner):
    """By fields of the value."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._names: list[str] = values["partition.field.name"]
        if not self._names:
            raise ConfigError(["partition.field.name is needed for the FieldPartitioner"])
        self._paths = [FieldPath(name, is_nested=True) for name in self._names]

    def folder(self, record: SinkRecord) -> str:
        parts = []
        for name, path in zip(self._names, self._paths, strict=True):
            found = _field(path, record, name)
            if isinstance(found, (dict, list, bytes, float)):
                raise DataError(f"field {name} cannot name a folder: only numbers, strings and booleans can")
            text = "null" if found is None else str(found).lower() if isinstance(found, bool) else str(found)
            # A value must not lead out of its folder.
            parts.append(f"{name}={re.sub('[/' + chr(92) + chr(92) + ']', '_', text)}")
        return str(self.values["directory.delim"]).join(parts)


class TimeBasedPartitioner(Partitioner):
    """By the record's time, cut to `partition.duration.ms`."""

    def __init__(
        self, values: Mapping[str, Any], duration_ms: int | None = None, path_format: str | None = None
    ) -> None:
        super().__init__(values)
        self._duration_ms: int = duration_ms or values["partition.duration.ms"]
        text = path_format or values["path.format"]
        problems = []
        if self._duration_ms <= 0:
            problems.append("partition.duration.ms must be above 0 for the TimeBasedPartitioner")
        if not text:
            problems.append("path.format is needed for the TimeBasedPartitioner")
        if problems:
            raise ConfigError(problems)
        zone = ZoneInfo(values["timezone"])
        self._zone = zone
        try:
            self._pattern = DatePattern(text, zone)
        except ValueError as error:
            raise ConfigError([f"path.format: {error}"]) from None
        self._extract = timestamp_extractor(values)

    def folder(self, record: SinkRecord) -> str:
        moment = self._extract(record)
        offset = datetime.fromtimestamp(moment / 1000, self._zone).utcoffset()
        shift = 0 if offset is None else int(offset.total_seconds() * 1000)
        local = (moment + shift) // self._duration_ms * self._duration_ms
        return self._pattern.format_ms(local - shift)


class DailyPartitioner(TimeBasedPartitioner):
    """By day."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values, 24 * HOUR_MS, DAY_PATTERN)


class HourlyPartitioner(TimeBasedPartitioner):
    """By hour."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values, HOUR_MS, f"{DAY_PATTERN}/'hour'=HH")


_KNOWN: Final = {
    one.__name__: one
    for one in (DefaultPartitioner, FieldPartitioner, TimeBasedPartitioner, DailyPartitioner, HourlyPartitioner)
}


def partitioner(values: Mapping[str, Any]) -> Partitioner:
    """The partitioner of `partitioner.class`: a known one by its simple name, or a Python class."""
    name: str = values["partitioner.class"]
    known = _KNOWN.get(name.rpartition(".")[2])
    if known is not None:
        return known(values)
    module, _, simple = name.replace(":", ".").rpartition(".")
    try:
        cls = getattr(importlib.import_module(module), simple)
    except (ImportError, AttributeError, ValueError):
        raise ConnectError(
            f"partitioner.class={name} is not known; known are {', '.join(_KNOWN)}, and Python classes"
        ) from None
    made: Partitioner = cls(values)
    return made


def timestamp_extractor(values: Mapping[str, Any]) -> Extract:
    """The function that gives a record's time in milliseconds."""
    name = str(values["timestamp.extractor"]).rpartition(".")[2].removesuffix("TimestampExtractor").lower()
    match name:
        case "wallclock":
            return lambda record: time.time_ns() // 1_000_000
        case "record":
            return _record_time
        case "recordfield":
            field: str = values["timestamp.field"]
            path = FieldPath(field, is_nested=True)
            return lambda record: _moment(_field(path, record, field), field)
    raise ConfigError([f"timestamp.extractor={name} is not known; known are Wallclock, Record and RecordField"])


def _record_time(record: SinkRecord) -> int:
    if record.timestamp is None:
        raise DataError(
            f"record {record.topic_partition}@{record.offset} has no timestamp, which the partitioner needs"
        )
    return record.timestamp


def _field(path: FieldPath, record: SinkRecord, name: str) -> Any:
    schema: DataSchema | None = record.value_schema
    if not isinstance(record.value, Mapping):
        raise DataError(f"a value that is neither struct nor map has no field {name}")
    if schema is None:
        return path.in_map(record.value)
    if path.in_schema(schema) is None:
        raise DataError(f"the value has no field {name}")
    return path.in_struct(schema, record.value, uses_default=True)


def _moment(value: Any, name: str) -> int:
    match value:
        case bool() | None:
            pass
        case int():
            return value
        case str():
            try:
                return int(datetime.fromisoformat(value).timestamp() * 1000)
            except ValueError:
                pass
    raise DataError(f"field {name} holds {value!r}, which is neither milliseconds since the epoch nor an ISO time")
