"""Whole records that are given as JSON: fed as bytes, read back from topics, compared.

Start at `input_record` and `compare_outputs`.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from moldau.formats.row_serde import RowSerde
from moldau.pipeline.ksql.catalogue.sources import Source
from moldau.pipeline.ksql.execution.engine import Engine
from moldau.pipeline.ksql.execution.insert_values import InsertedRecord
from moldau.pipeline.ksql.planning.relation import windowed_serde
from moldau.pipeline.ksql.trial.topics import MemoryRecord, MemoryTopics
from moldau.pipeline.ksql.trial.values import decoded, encoded, is_equal, json_text
from moldau.serdes.schema_source import SchemaSource
from moldau.serdes.windowed import Window, Windowed

__all__ = ["MismatchError", "compare_outputs", "input_record", "inserted", "shown_record", "source_of"]

Json = dict[str, Any]
Headers = Sequence[tuple[str, bytes | None]]


class MismatchError(Exception):
    """An output or a condition is not as expected."""


def source_of(topic: str, engine: Engine) -> Source | None:
    """The source that says how the records of a topic are written; the last one that was created."""
    found = [one for one in engine.catalogue.sources.values() if one.topic == topic]
    return found[-1] if found else None


# --- records in ----------------------------------------------------------------------------------------------


def input_record(record: Json, engine: Engine, schemas: SchemaSource) -> MemoryRecord:
    """A given record as bytes, in the formats of its topic's source."""
    topic, timestamp = record["topic"], int(record.get("timestamp", 0))
    headers = tuple((one["KEY"], _bytes(one["VALUE"])) for one in record.get("headers", ()))
    source = source_of(topic, engine)
    if source is None:
        return MemoryRecord(None, json_text(record.get("value")).encode(), timestamp, headers)
    key = encoded(record.get("key"), source.key_format, source.schema.key, topic, schemas)
    window = record.get("window")
    if window is not None and key is not None:
        bounds = Window(int(window["start"]), int(window["end"]))
        key = windowed_serde(_RawSerde(), source.window).serialize(topic, Windowed(key, bounds))
    value = encoded(record.get("value"), source.value_format, source.schema.value, topic, schemas)
    return MemoryRecord(key, value, timestamp, headers)


def inserted(record: InsertedRecord, schemas: SchemaSource) -> MemoryRecord:
    """A record of INSERT VALUES as bytes."""
    source = record.source

    def serde(row_format: Any, columns: Any) -> RowSerde:
        return RowSerde(row_format, columns).with_schema_source(lambda url, user_info: schemas)

    key = record.key and serde(source.key_format, source.schema.key).codec(source.topic).encode(record.key)
    value = record.value and serde(source.value_format, source.schema.value).codec(source.topic).encode(record.value)
    return MemoryRecord(key or None, value or None, record.timestamp or 0)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


class _RawSerde:
    """Keys that are bytes already."""

    def serialize(self, topic: str, value: bytes, headers: Headers | None = None, /) -> bytes:
        return value

    def deserialize(self, topic: str, data: bytes, headers: Headers | None = None, /) -> bytes:
        return data


# --- records out ---------------------------------------------------------------------------------------------


def compare_outputs(
    outputs: Sequence[Json],
    topics: MemoryTopics,
    engine: Engine,
    schemas: SchemaSource,
    *,
    is_exact: bool,
    has_inputs: bool,
) -> None:
    """Raise `MismatchError` where the records of a topic are not the expected ones.

    Without `is_exact`, numbers may differ a little. Without inputs, records have the time at which they were inserted,
    and an expected time of 0 stands for any.
    """
    expected: dict[str, list[Json]] = {}
    for record in outputs:
        expected.setdefault(record["topic"], []).append(record)
    for topic, records in expected.items():
        source = source_of(topic, engine)
        if source is None:
            raise MismatchError(f"no source has the topic {topic}")
        actual = [shown_record(one, source, schemas) for one in topics.log(topic)]
        for number, (one, wanted) in enumerate(zip(actual, records, strict=False)):
            _compare(f"{topic} {number}", one, wanted, is_exact=is_exact, has_inputs=has_inputs)
        if len(actual) != len(records):
            raise MismatchError(f"{topic}: {len(actual)} records, expected {len(records)}: {actual}")
    if not expected and has_inputs:
        sinks = {query.sink_topic for query in engine.queries.values()}
        written = {topic: len(topics.log(topic)) for topic in sinks if topics.log(topic)}
        if written:
            raise MismatchError(f"records where none are expected: {written}")


def shown_record(record: MemoryRecord, source: Source, schemas: SchemaSource) -> Json:
    """A record in the form in which records are given."""
    key, window = record.key, None
    if source.window is not None and key is not None:
        windowed: Windowed[bytes] = windowed_serde(_RawSerde(), source.window).deserialize(source.topic, key)
        key, window = windowed.key, windowed.window
    return {
        "key": decoded(key, source.key_format, source.schema.key, schemas),
        "value": decoded(record.value, source.value_format, source.schema.value, schemas),
        "window": window,
        "timestamp": record.timestamp,
        "headers": record.headers,
    }


def _compare(where: str, actual: Json, wanted: Json, *, is_exact: bool, has_inputs: bool) -> None:
    for part in ("key", "value"):
        if not is_equal(actual[part], wanted.get(part), exact=is_exact):
            raise MismatchError(f"{where}: {part} {actual[part]!r}, expected {wanted.get(part)!r}")
    window = wanted.get("window")
    bounds = None if window is None else Window(int(window["start"]), int(window["end"]))
    if actual["window"] != bounds:
        raise MismatchError(f"{where}: window {actual['window']}, expected {window}")
    has_any_time = not has_inputs and wanted.get("timestamp") == 0
    if "timestamp" in wanted and not has_any_time and actual["timestamp"] != wanted["timestamp"]:
        raise MismatchError(f"{where}: timestamp {actual['timestamp']}, expected {wanted['timestamp']}")
    headers = tuple((one["KEY"], _bytes(one["VALUE"])) for one in wanted.get("headers", ()))
    if tuple(actual["headers"]) != headers:
        raise MismatchError(f"{where}: headers {actual['headers']}, expected {headers}")
