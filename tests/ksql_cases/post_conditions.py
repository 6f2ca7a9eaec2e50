"""The catalogue after a case: sources with their columns, formats and windows. Start at `check_post`."""

from __future__ import annotations

from typing import Any

from tests.ksql_cases.case_records import MismatchError

from moldau.formats.columns import Column
from moldau.pipeline.ksql.catalogue.sources import Source, WindowKind
from moldau.pipeline.ksql.execution.engine import Engine
from moldau.pipeline.ksql.syntax.parser import parse_column_list
from moldau.pipeline.ksql.syntax.statements import ColumnConstraint

Json = dict[str, Any]


def check_post(post: Json, engine: Engine) -> None:
    """Raise `MismatchError` where the catalogue is not as expected."""
    for wanted in post.get("sources", ()):
        name = wanted["name"]
        source = engine.catalogue.sources.get(name)
        if source is None:
            raise MismatchError(f"post: no source {name}")
        _check_source(wanted, source)
    for wanted in post.get("topics", {}).get("topics", ()):
        if not wanted["name"].startswith("_confluent-ksql-"):
            _check_topic(wanted, engine)


def _check_source(wanted: Json, source: Source) -> None:
    _expect(source.name, "type", source.kind.value.lower(), wanted["type"].lower())
    if "schema" in wanted:
        _check_schema(wanted["schema"], source)
    if "keyFormat" in wanted:
        key = wanted["keyFormat"]
        _expect(source.name, "key format", source.key_format.format.name, key["format"].upper())
        window = source.window
        kind = None if window is None else window.kind
        expected = key.get("windowType")
        _expect(source.name, "window", kind, None if expected is None else WindowKind[expected.upper()])
        if key.get("windowSize") is not None:
            _expect(source.name, "window size", None if window is None else window.size_ms, int(key["windowSize"]))
    if "valueFormat" in wanted:
        value = wanted["valueFormat"]
        name = value if isinstance(value, str) else value["format"]
        _expect(source.name, "value format", source.value_format.format.name, name.upper())
    if wanted.get("keyFeatures") is not None:
        features = {one.value for one in source.key_format.features(source.schema.key)}
        _expect(source.name, "key features", features, set(wanted["keyFeatures"]))
    if wanted.get("valueFeatures") is not None:
        features = {one.value for one in source.value_format.features(source.schema.value)}
        _expect(source.name, "value features", features, set(wanted["valueFeatures"]))
    if wanted.get("isSource") is not None:
        _expect(source.name, "isSource", source.is_read_only, wanted["isSource"])


def _check_schema(text: str, source: Source) -> None:
    from moldau.pipeline.ksql.syntax.statements import SourceKind

    # PRIMARY KEY and KEY mean the same in expected schemas.
    columns = parse_column_list(text.replace("PRIMARY KEY", "KEY"), SourceKind.STREAM)
    key = tuple(Column(one.name, one.type) for one in columns if one.constraint is ColumnConstraint.KEY)
    value = tuple(Column(one.name, one.type) for one in columns if one.constraint is ColumnConstraint.NONE)
    _expect(source.name, "key", _text(source.schema.key), _text(key))
    _expect(source.name, "value", _text(source.schema.value), _text(value))


def _text(columns: tuple[Column, ...]) -> str:
    return ", ".join(map(str, columns))


def _check_topic(wanted: Json, engine: Engine) -> None:
    sources = [one for one in engine.catalogue.sources.values() if one.topic == wanted["name"]]
    for source in sources[:1]:
        if wanted.get("partitions") is not None:
            _expect(source.name, "partitions", source.partitions, int(wanted["partitions"]))
        for member, row_format in (("keyFormat", source.key_format), ("valueFormat", source.value_format)):
            given = wanted.get(member)
            if given is not None:
                name = given if isinstance(given, str) else given["format"]
                _expect(source.name, member, row_format.format.name, name.upper())


def _expect(name: str, what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise MismatchError(f"post: {name} has {what} {actual}, expected {expected}")
